"""The low-rank part: rows, precisions, predictions, discounted statistics."""
