"""Noise and outlier models: residuals in, weights and targets out."""
