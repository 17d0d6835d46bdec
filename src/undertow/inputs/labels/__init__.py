"""What modes and their rows are called: labelled slices in, labelled results out."""
