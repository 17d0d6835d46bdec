"""A model that compiles nothing, as the adapters need it; the suites with real ones are marked full."""

import numpy as np


class Mean:
    """Running mean and variance of every entry, with the methods of `undertow.RobustCP`."""

    def __init__(self):
        self.count, self.mean, self.square = 0, None, None

    def __repr__(self):
        return "Mean()"  # names of tests are made of it: every worker must find the same

    def get_params(self, deep=True):
        return {}

    def fit(self, X):
        self.__init__()
        return self.partial_fit(X)

    def partial_fit(self, X):
        for x in X:
            self.update(x)
        return self

    def __copy__(self):
        other = Mean()
        other.count, other.mean, other.square = self.count, self.mean, self.square
        return other

    def update(self, x):
        mean = np.zeros(x.shape) if self.mean is None else self.mean
        square = np.ones(x.shape) if self.square is None else self.square
        self.count += 1
        off = np.where(np.isnan(x), 0, x - mean)
        self.mean = mean + off / self.count
        self.square = square + (off**2 - square) / (self.count + 5)
        return Found(self.mean, 1 - np.exp(-(off**2) / (8 * square + 1e-9)))


class Found:
    def __init__(self, mean, outlier_probability):
        self.mean, self.outlier_probability = mean, outlier_probability
