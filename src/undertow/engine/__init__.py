"""The host's side of inference: state, functional API, history, pipeline, capacity, batching."""
