"""How fast: cases, rivals on the same slices, growth with size, a history of runs; see the README in this folder."""
