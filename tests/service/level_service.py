"""A service with a model that compiles nothing, as a process of its own: ``level_service.py STORE PORT``."""

import os
import sys
from types import SimpleNamespace

import numpy as np
from stubs import Named, StubStatus

from undertow.serialization import container
from undertow.service.hosted import Models
from undertow.service.server import Server
from undertow.service.settings import Limits, Settings


class Level:
    """An exponential mean with its spread, for every entry; predicts before it learns, as a tracker does."""

    def __init__(self):
        self.mean = self.spread = None
        self.steps = 0

    def update(self, x):
        seen = ~np.isnan(x)
        if self.mean is None:
            self.mean, self.spread = np.where(seen, x, np.nanmean(x)), np.ones(x.shape)
        std = np.sqrt(self.spread)
        innovations = (x - self.mean) / std
        away = np.where(seen, np.clip(innovations, -3, 3) * std, 0)
        self.steps += 1
        self.mean = self.mean + 0.1 * away
        self.spread = np.where(seen, self.spread + 0.02 * (away**2 - self.spread), self.spread)
        probability = np.where(seen & (np.abs(innovations) > 4), 1.0, 0.0)
        return SimpleNamespace(
            mean=self.mean.copy(),
            std=std,
            outliers=np.where(probability > 0, innovations * std, 0),
            outlier_probability=probability,
            innovations=innovations,
            rank=1,
            noise_std=float(std.mean()),
            weights={"level": 0.75, "other": 0.25},
            events=Named(),
            status=StubStatus(()),
        )

    def extend(self, shape):
        """New rows begin as the others are on average."""
        wide = tuple(map(slice, self.mean.shape))
        for name in ("mean", "spread"):
            before = getattr(self, name)
            setattr(self, name, np.full(shape, before.mean()))
            getattr(self, name)[wide] = before

    def to_bytes(self):
        return container.to_bytes({"steps": self.steps}, {"mean": self.mean, "spread": self.spread})

    @classmethod
    def load(cls, content):
        header, arrays = container.from_bytes(content, "of the level")
        model = cls()
        model.mean, model.spread, model.steps = arrays["mean"], arrays["spread"], header["steps"]
        return model


if __name__ == "__main__":
    subscribe, publish, deliver = (
        tuple(filter(None, [os.environ.get(f"UNDERTOW_TEST_{name}")])) for name in ("SUBSCRIBE", "PUBLISH", "DELIVER")
    )
    settings = Settings(
        sys.argv[1],
        port=int(sys.argv[2]),
        limits=Limits(checkpoint_every=20),
        subscribe=subscribe,
        publish=publish,
        deliver=deliver,
    )
    Server(settings, Models(Level, Level.load)).run(lambda address: print(address, flush=True))
