"""What is done to the slices of any source: selection, masks, sizes, times."""
