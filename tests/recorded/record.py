"""``PYTHONPATH=tests python -m recorded.record``: record programs and results anew, after a change that is meant.

Checkpoints and the store stay as they are: files of earlier versions must go on being read.
"""

import json

import jax
from recorded.programs import digests
from recorded.streams import MODELS
from recorded.test_recorded import HERE, RECORDED, summary

import undertow as ut


def main():
    """Write both files."""
    (HERE / "programs.json").write_text(json.dumps({"jax": jax.__version__, "programs": digests()}, indent=1))
    recorded = {}
    for name, (params, stream) in MODELS.items():
        model = ut.RobustCP(**params)
        results = [model.update(x) for x in stream()]
        recorded[name] = {array: [float(number) for number in summary(results, array)] for array in RECORDED[name]}
    (HERE / "results.json").write_text(json.dumps(recorded, indent=1))


if __name__ == "__main__":
    main()
