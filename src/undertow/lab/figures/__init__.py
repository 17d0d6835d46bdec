"""The figures of the paper's section "Numerical Results", run honestly: same mask for all, error of the low rank."""
