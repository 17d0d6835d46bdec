"""``make record``: record programs and results anew, after a change that is meant.

Checkpoints and stores stay as they are, for files of earlier versions must go on being read; absent ones are written.
"""

import json

import jax
from recorded import programs, streams, trackers
from recorded.test_recorded import HERE, RECORDED, summary

import undertow as ut


def of_models():
    """Results of `RobustCP` by model and array."""
    recorded = {}
    for name, (params, stream) in streams.MODELS.items():
        model = ut.RobustCP(**params)
        results = [model.update(x) for x in stream()]
        recorded[name] = {array: numbers([getattr(one, array) for one in results]) for array in RECORDED[name]}
    return recorded


def of_trackers():
    """Results of `Tracker` by stream and array."""
    return {name: {array: numbers(part) for array, part in trackers.arrays(name).items()} for name in trackers.STREAMS}


def numbers(parts):
    """`summary`, as JSON has it."""
    return [float(number) for number in summary(parts)]


def write(name, found):
    """One file."""
    (HERE / name).write_text(json.dumps(found, indent=1))


def main():
    """Write all of them."""
    version = {"jax": jax.__version__}
    write("programs.json", version | {"programs": programs.digests()})
    write("results.json", of_models())
    write("trackers.json", version | {"programs": trackers.digests(), "results": of_trackers()})
    trackers.write_files()


if __name__ == "__main__":
    main()
