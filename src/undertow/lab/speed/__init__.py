"""How fast: workloads, baselines on the same slices, growth with size, a history of runs."""
