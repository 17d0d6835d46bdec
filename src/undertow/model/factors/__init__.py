"""The low-rank part: rows, precisions, predictions, memory past the window."""
