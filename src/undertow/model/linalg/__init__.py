"""Small symmetric matrices, many at a time."""
