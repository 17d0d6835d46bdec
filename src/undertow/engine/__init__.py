"""The host's side of inference: state, functional API, selection of settings, pipeline, capacity, batching."""
