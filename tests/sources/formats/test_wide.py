"""Wide tables in files: read without a word about columns, with every usual way of writing numbers and times."""

import numpy as np
import pandas as pd
import pytest

from undertow.sources import StreamError, open_stream

TIMES = pd.date_range("2024-05-01", periods=30, freq="h", name="time")
VALUES = np.random.default_rng(0).normal(20, 1, (30, 4)).round(2)
FRAME = pd.DataFrame(VALUES, index=TIMES, columns=["a", "b", "c", "d"])
LONG = FRAME.rename_axis("sensor", axis=1).stack().rename("value").reset_index()


def written(folder, text, name="table.csv"):
    (folder / name).write_text(text)
    return folder / name


def same(path, times=TIMES, **options):
    """The stream, whose slices are those of `FRAME`."""
    stream = open_stream(path, **options)
    slices = list(stream.slices())
    np.testing.assert_array_equal([one.values for one in slices], VALUES)
    assert stream.shape == (4,)
    assert stream.labels == (("a", "b", "c", "d"),)
    if times is not None:
        assert [np.datetime64(one.time) for one in slices] == list(times.to_numpy())
    return stream


@pytest.mark.parametrize(
    "text",
    [
        FRAME.to_csv(),
        FRAME.rename_axis(None).to_csv(),
        FRAME.to_csv(sep="\t"),
        FRAME.rename_axis("Datum").to_csv(sep=";", decimal=","),
        FRAME.set_index(TIMES.strftime("%d.%m.%Y %H:%M").rename("Datum")).to_csv(sep=";", decimal=","),
        FRAME.set_index(TIMES.strftime("%Y/%m/%d %H:%M:%S").rename("when")).to_csv(),
    ],
    ids=["commas", "index without a name", "tabs", "decimal commas", "days first", "years first"],
)
def test_a_wide_csv_needs_no_options(tmp_path, text):
    assert same(written(tmp_path, text)).notices == []


@pytest.mark.parametrize("order", ["%d/%m/%Y", "%m/%d/%Y"])
@pytest.mark.parametrize("clock", ["", " %H:%M", " %H:%M:%S"])
def test_which_number_is_the_day_is_found(tmp_path, order, clock):
    days = pd.date_range("2024-05-01", periods=30)
    texts = days.strftime(order + clock)
    same(written(tmp_path, FRAME.set_index(texts.rename("when")).to_csv()), times=days)
    long = LONG.assign(time=LONG.time.map(dict(zip(TIMES, texts, strict=True))))
    same(written(tmp_path, long.to_csv(index=False)), times=days)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            FRAME.set_index(TIMES.strftime("%d/%m/%Y %H:%M")).to_csv(),
            "dates such as 01/05/…, whose day and month may be",
        ),
        (FRAME.to_csv(header=False), "must begin with a line of column names, got values, '2024-05-01 00:00:00' first"),
        (FRAME.iloc[:0].to_csv(), "has no rows below its line of column names"),
        (
            FRAME.set_index(pd.Index([f"{one}Z" if row % 2 else f"{one}" for row, one in enumerate(TIMES)])).to_csv(),
            "times with a zone, such as 2024-05-01 01:00:00Z, and without, such as 2024-05-01 00:00:00",
        ),
    ],
)
def test_what_would_be_misread_is_refused(tmp_path, text, message):
    with pytest.raises(StreamError, match=message):
        open_stream(written(tmp_path, text))


def test_days_alone_and_no_times(tmp_path):
    days = pd.date_range("2024-05-01", periods=30, name="date")
    same(written(tmp_path, FRAME.set_index(days).to_csv()), times=days)
    stream = same(written(tmp_path, FRAME.to_csv(index=False)), times=None)
    assert {one.time for one in stream.slices()} == {None}


@pytest.mark.parametrize("text", [LONG.to_csv(index=False), LONG.to_csv(index=False, sep=";", decimal=",")])
def test_a_long_csv_whose_columns_are_clear_needs_none_either(tmp_path, text):
    stream = same(written(tmp_path, text))
    assert stream.dims == ("sensor",)


def test_a_long_csv_whose_columns_are_not_clear_says_which_there_are(tmp_path):
    path = written(tmp_path, LONG.assign(other=1.0).to_csv(index=False))
    with pytest.raises(StreamError, match=r"table\.csv has the columns 'time', 'sensor', 'value', 'other'.*not clear"):
        open_stream(path)
    same(path, value="value")


def test_parquet_too(tmp_path):
    FRAME.to_parquet(tmp_path / "wide.parquet")
    LONG.to_parquet(tmp_path / "long.parquet")
    same(tmp_path / "wide.parquet")
    assert same(tmp_path / "long.parquet").dims == ("sensor",)


@pytest.mark.parametrize("form", ["wide.csv", "long.csv", "wide.parquet", "long.parquet"])
def test_the_zone_of_the_times_is_kept(tmp_path, form):
    path, zoned = tmp_path / form, TIMES.tz_localize("Europe/Berlin")
    frame = FRAME.set_index(zoned) if "wide" in form else LONG.assign(time=LONG.time.dt.tz_localize("Europe/Berlin"))
    if "csv" in form:
        frame.to_csv(path, index="wide" in form)
    else:
        frame.to_parquet(path)
    stream = same(path, times=zoned.tz_convert("UTC").tz_localize(None))
    assert stream.attributes["time_zone"] == ("UTC+02:00" if "csv" in form else "Europe/Berlin")


def test_a_cell_that_is_no_number_is_named_or_left_out(tmp_path):
    frame = FRAME.astype(object)
    frame.iloc[3, 1] = "broken"
    path = written(tmp_path, frame.to_csv())
    with pytest.raises(StreamError, match=r"has 'broken' in column 'b' of row 4, which is no number.*--on-bad skip"):
        open_stream(path)
    stream = open_stream(path, on_bad="skip")
    assert stream.notices == [
        "1 cell of table.csv could not be used and was left out, the first: 'broken' in column 'b' "
        "of row 4, which is no number"
    ]
    fourth = [one.values for one in stream.slices()][3]
    np.testing.assert_array_equal(fourth, np.where([False, True, False, False], np.nan, VALUES[3]))


@pytest.mark.parametrize("option", [{"follow": True}, {"duplicates": "sum"}])
def test_what_wide_tables_cannot_do_is_said(tmp_path, option):
    with pytest.raises(StreamError, match=r"wide|name its columns"):
        open_stream(written(tmp_path, FRAME.to_csv()), **option)


def test_duplicates_are_no_option_of_a_wide_frame():
    with pytest.raises(StreamError, match="duplicates is for long tables, and the frame is a wide one: leave it out"):
        open_stream(FRAME, duplicates="sum")


def test_texts_of_a_frame_that_are_dates_are_dates():
    """As `pandas.read_csv` leaves them."""
    texts = ["2026-03-01 00:00", "2026-03-01T01:00", "2026-03-01T03:00Z"]
    frame = pd.DataFrame({"time": texts, "a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    hours = [np.datetime64("2026-03-01T00"), np.datetime64("2026-03-01T01"), np.datetime64("2026-03-01T03")]
    assert [item.time for item in open_stream(frame).slices()] == hours
    frame["time"] = ["2026-03-01", "Monday", "later"]
    assert [item.time for item in open_stream(frame).slices()] == frame["time"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_wide_table_that_takes_far_more_memory_than_it_is_large_is_refused(tmp_path, name, monkeypatch):
    wide = pd.DataFrame(np.ones((2, 16_384)), columns=[f"c{number}" for number in range(16_384)])
    wide.insert(0, "time", [0, 1])
    path = tmp_path / name
    wide.to_csv(path, index=False) if name == "a.csv" else wide.to_parquet(path)
    with pytest.raises(StreamError, match=r"has 16385 columns, more than 16384: write one row per entry"):
        open_stream(path)
    monkeypatch.setattr(f"undertow.sources.formats.{'wide' if name == 'a.csv' else 'parquet'}.MAX_LOADED_BYTES", 500)
    path = tmp_path / f"b{path.suffix}"
    FRAME.to_csv(path) if name == "a.csv" else FRAME.to_parquet(path)
    with pytest.raises(StreamError, match="bytes"):
        open_stream(path)


def test_names_that_fill_a_block_leave_room_for_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("undertow.sources.formats.lines.BLOCK_BYTES", 16)
    same(written(tmp_path, FRAME.to_csv()))
