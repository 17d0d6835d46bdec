"""Outlier models, exchangeable: residuals in, weights and targets out."""
