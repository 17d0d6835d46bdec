"""Options: one list of names for Python and the command line, and fingerprints that old checkpoints still match."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
from stream_files import SHAPE, labelled, make_csv, numbers

from undertow.cli.source_options import FollowingOptions
from undertow.sources import StreamError, open_stream
from undertow.sources.options import Preparation, SourceOptions, parse_frame_size, parse_labels, parse_numbers

KEYWORDS = set(inspect.signature(open_stream).parameters) - {"source"}


def test_every_keyword_is_an_option_of_reading_or_of_preparation():
    held = [field.name for field in (*fields(SourceOptions), *fields(Preparation))]
    assert len(held) == len(set(held))
    assert {*held, "idle", "poll"} == KEYWORDS  # these two are part of ``follow``


def test_the_command_line_has_every_keyword_with_its_help():
    assert {field.name for field in fields(FollowingOptions)} == KEYWORDS - {"poll"}
    options = inspect.get_annotations(
        FollowingOptions, eval_str=True, globals=vars(inspect.getmodule(FollowingOptions))
    )
    assert all(len(each.__metadata__[0].help) > 20 for each in options.values())


FINGERPRINTS = [
    ({}, "ed005ed42a4e4d81"),
    ({"late": "skip"}, "83d3d46c08b85fe5"),
    ({"missing_value": "3,4"}, "916f8c82cbe0a85f"),
    ({"resize": "3x2"}, "4463e87ff7fc35da"),
    ({"select": {"time": "1:6:2"}}, "3d6e562b8f9e1a02"),
    (
        {"mask": (np.arange(30).reshape(SHAPE) % 3 > 0).astype(float)},
        "21aa348ce58664fc",
    ),
    ({"modes": "a,b", "labels": ["a=1,2,3,4,5,6"]}, "0ef3971e90beffce"),
]


@pytest.mark.parametrize(("options", "fingerprint"), FINGERPRINTS)
def test_fingerprints_are_those_of_earlier_versions(options, fingerprint):
    assert was_called(open_stream(numbers(), **options), fingerprint)


def was_called(stream, fingerprint):
    return any(each.startswith(fingerprint) for each in (stream.fingerprint, *stream.former_fingerprints))


def test_fingerprints_of_filled_gaps_and_tables(tmp_path):
    filled = open_stream(labelled(), gaps="fill", step="5min")
    assert was_called(filled, "6ba9dbad302a52cf")
    made = make_csv(tmp_path)
    assert was_called(open_stream(made.path, **made.options), "c52f9e6d57527360")


def test_another_source_or_option_has_another_fingerprint(tmp_path):
    made = make_csv(tmp_path)
    base = open_stream(made.path, **made.options).fingerprint
    assert open_stream(made.path, **made.options).fingerprint == base
    assert open_stream(made.path, **made.options, select={"src": "0:3"}).fingerprint != base
    assert open_stream(made.path, **made.options, missing_value=0).fingerprint != base
    assert open_stream(numbers()).fingerprint != open_stream(numbers(seed=1)).fingerprint


@pytest.mark.parametrize(
    "remedy",
    [
        {"on_bad": "skip"},
        {"missing_value": "inf,-inf"},
        {"late": "skip"},
        {"gaps": "fill", "step": 1},
        {"duplicates": "sum"},
    ],
)
def test_what_only_treats_bad_input_does_not_make_another_source(tmp_path, remedy):
    made = make_csv(tmp_path)
    base = open_stream(made.path, **made.options).fingerprint
    assert open_stream(made.path, **made.options | remedy).fingerprint == base


@pytest.mark.parametrize(
    "options",
    [
        {"on_bad": "maybe"},
        {"late": "maybe"},
        {"gaps": 3},
        {"duplicates": "both"},
        {"missing_value": "none"},
        {"size": "3"},
        {"modes": "a"},
        {"modes": "a,a"},
        {"labels": {"mode_1": ["a"]}},
        {"labels": {"mode_1": ["a"] * 6}},
        {"time_axis": 3},
        {"time_axis": "when"},
        {"variable": "x"},
        {"colour": True},
        {"follow": True},
        {"follow": True, "idle": -1},
        {"follow": True, "poll": 0},
    ],
)
def test_bad_options_are_one_sentence(options):
    with pytest.raises(StreamError) as caught:
        open_stream(numbers(), **options)
    assert "\n" not in str(caught.value)


def test_modes_and_labels_can_be_given():
    stream = open_stream(numbers(), modes="from,to", labels=["to=a,b,c,d,e"], select={"to": "b,e"})
    assert stream.dims == ("from", "to")
    assert stream.labels == (None, ("b", "e"))


def test_texts_from_a_command_line_mean_the_same_as_values():
    assert parse_frame_size("176x144") == parse_frame_size((176, 144)) == (176, 144)
    assert parse_numbers("missing_value", "-999,inf") == parse_numbers("missing_value", [-999, float("inf")])
    assert parse_labels(["src=A,B"]) == parse_labels({"src": ["A", "B"]}) == {"src": ("A", "B")}
