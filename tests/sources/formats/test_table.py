"""Long tables: labels, duplicates, order, dialects."""

import errno
import gzip
import json
import os

import numpy as np
import pytest
from stream_files import LENGTH, SOURCES, TABLE, csv_text, make_parquet, numbers

from undertow.sources import StreamError, open_stream
from undertow.sources.formats import lines

SMALL = {"time": "t", "modes": "a,b", "value": "x"}


def table(tmp_path, text, name="small.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_missing_rows_and_empty_values_are_missing_entries(tmp_path):
    path = table(tmp_path, "t,a,b,x\n0,p,u,1\n0,q,v,2\n1,p,u,\n1,p,v,NaN\n1,q,u,4\n")
    stream = open_stream(path, **SMALL)
    first, second = stream.slices()
    np.testing.assert_array_equal(first.values, [[1, np.nan], [np.nan, 2]])
    np.testing.assert_array_equal(second.values, [[np.nan, np.nan], [4, np.nan]])
    assert (first.time, second.time) == (0, 1)
    assert stream.length == 2
    assert stream.labels == (("p", "q"), ("u", "v"))
    assert stream.time_name == "t"


def test_duplicates_are_refused_or_summed(tmp_path):
    path = table(tmp_path, "t,a,b,x\n0,p,u,1\n0,p,u,2\n0,q,u,5\n")
    with pytest.raises(StreamError, match=r"two rows for p, u at t 0"):
        list(open_stream(path, **SMALL).slices())
    (item,) = open_stream(path, **SMALL, duplicates="sum").slices()
    np.testing.assert_array_equal(item.values, [[3], [5]])
    (item,) = open_stream(path, **SMALL, duplicates="mean").slices()
    np.testing.assert_array_equal(item.values, [[1.5], [5]])
    (item,) = open_stream(path, **SMALL, duplicates="last").slices()
    np.testing.assert_array_equal(item.values, [[2], [5]])


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_noticed(tmp_path, separator):
    text = "t,a,b,x|0,p,u,1.5|1,p,u,-2.25|1,q,u,3".replace(",", separator).replace(".", ",").replace("|", "\n")
    first, second = open_stream(table(tmp_path, text), **SMALL).slices()
    np.testing.assert_array_equal(first.values, [[1.5], [np.nan]])
    np.testing.assert_array_equal(second.values, [[-2.25], [3]])
    points = text.replace("1,5", "1.5").replace("-2,25", "-2.25")
    first, _ = open_stream(table(tmp_path, points), **SMALL).slices()
    np.testing.assert_array_equal(first.values, [[1.5], [np.nan]])


def test_given_labels_fix_order_and_size(tmp_path):
    path = table(tmp_path, "t,a,b,x\n0,p,1,1\n0,q,2,2\n")
    stream = open_stream(path, **SMALL, labels={"a": ["r", "q", "p"], "b": [2, 1]})
    (item,) = stream.slices()
    np.testing.assert_array_equal(item.values, [[np.nan, np.nan], [2, np.nan], [np.nan, 1]])
    assert stream.labels == (("r", "q", "p"), (2, 1))


def test_labels_from_a_file(tmp_path):
    path = table(tmp_path, "t,a,b,x\n0,p,u,1\n")
    table(tmp_path, "p\nq\n", "names.txt")
    assert open_stream(path, **SMALL, labels=[f"a=@{tmp_path / 'names.txt'}"]).shape == (2, 1)


def test_a_label_that_is_not_in_labels_is_one_sentence(tmp_path):
    path = table(tmp_path, "t,a,b,x\n0,p,u,1\n1,z,u,1\n")
    stream = open_stream(path, **SMALL, labels={"a": ["p"]})
    with pytest.raises(StreamError, match=r"has the label 'z' in a, which is not in labels"):
        list(stream.slices())


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["10", "9", "1"], (1, 9, 10)),
        (["1.5", "0.5"], (0.5, 1.5)),
        (["01", "1"], ("01", "1")),
        (["b", "a"], ("a", "b")),
        (["NA", ""], ("", "NA")),
    ],
)
def test_labels_are_numbers_only_where_all_are_written_as_such(tmp_path, labels, expected):
    path = table(tmp_path, "t,a,b,x\n" + "".join(f"0,{label},u,1\n" for label in labels))
    assert open_stream(path, **SMALL).labels[0] == expected


@pytest.mark.parametrize(("mark", "suffix"), [(";", "csv"), ("\t", "tsv"), (",", "csv")])
def test_dialects(tmp_path, mark, suffix):
    text = f"\ufefft,a,b,x\r\n0,{mark_quoted(mark)},u,1.5\r\n".replace(",", mark)
    stream = open_stream(table(tmp_path, text, f"small.{suffix}"), **SMALL)
    (item,) = stream.slices()
    assert item.values.tolist() == [[1.5]]
    assert stream.labels[0] == (f"p {mark} q",)


def mark_quoted(mark):
    return f'"p {mark} q"'


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["3", "1", "2"], [1, 2, 3]),
        (["0.5", "0.25"], [0.25, 0.5]),
        (["2024-01-02", "2024-01-01"], [np.datetime64("2024-01-01"), np.datetime64("2024-01-02")]),
        (["2024-01-02T03:04:05Z"], [np.datetime64("2024-01-02T03:04:05")]),
        (["b", "a", "b"], ["b", "a"]),
        (["12:30:00", "11:00:00"], ["12:30:00", "11:00:00"]),
    ],
)
def test_times_of_every_type(tmp_path, times, expected):
    rows = "".join(f"{time},p,u{i},1\n" for i, time in enumerate(times))
    found = [item.time for item in open_stream(table(tmp_path, "t,a,b,x\n" + rows), **SMALL).slices()]
    assert found == expected


def test_rows_out_of_order_are_sorted_and_noticed(made):
    shuffled = open_stream(made("csv_shuffled").path, **TABLE)
    assert any("were sorted first" in notice for notice in shuffled.notices)
    np.testing.assert_array_equal([item.values for item in shuffled.slices()], numbers())
    assert open_stream(made("csv").path, **TABLE).notices == []
    np.testing.assert_array_equal([item.values for item in shuffled.slices()], numbers())  # once more


def test_a_full_disk_is_one_sentence_when_rows_must_be_sorted(made, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StreamError, match="No space left on device"):
        list(open_stream(made("csv_shuffled").path, **TABLE).slices())


@pytest.mark.slow
def test_many_small_blocks_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 300)
    for shuffled in (False, True):
        (tmp_path / "a.csv").write_text(csv_text(shuffled))
        items = list(open_stream(tmp_path / "a.csv", **TABLE).slices())
        np.testing.assert_array_equal([item.values for item in items], numbers())
        for done, item in enumerate(items, start=1):
            rest = list(open_stream(tmp_path / "a.csv", **TABLE).slices(item.position))
            assert len(rest) == LENGTH - done
            assert all(np.array_equal(then.values, x) for then, x in zip(rest, numbers()[done:], strict=True))


def test_modes_may_be_one_or_many(tmp_path):
    path = table(tmp_path, "t,a,b,c,x\n0,p,u,1,7\n0,q,u,2,8\n")
    assert open_stream(path, time="t", modes="a", value="x").shape == (2,)
    assert open_stream(path, time="t", modes=["a", "b", "c"], value="x").shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,a,b\n0,p,u\n", "no column 'x'"),
        ("t,a,b,x,x\n0,p,u,1,2\n", "two columns 'x'"),
        ("t,a,b,x\n0,p,u,many\n", "does not fit its columns, '0,p,u,many'"),
        ("t,a,b,x\n,p,u,1\n1,p,u,1\n", "rows without t"),
        ("t,a,b,x\n0,p\n", "does not fit its columns, '0,p'"),
        ("t,a,b,x\n", "no rows"),
        ("\n\n", "column names"),
        ("", "empty"),
    ],
)
def test_bad_tables_are_one_sentence(tmp_path, text, message):
    with pytest.raises(StreamError, match=message) as caught:
        list(open_stream(table(tmp_path, text), **SMALL).slices())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"time": "when"},
        {"value": "a"},
        {"time": "t", "modes": "t", "value": "x"},
        SMALL | {"labels": {"q": ["1"]}},
        SMALL | {"size": "2x2"},
    ],
)
def test_bad_options_for_tables(tmp_path, options):
    with pytest.raises(StreamError):
        open_stream(table(tmp_path, "t,a,b,x\n0,p,u,1\n"), **options)


def test_a_table_with_too_many_labels_is_refused_before_a_slice_is_made(tmp_path):
    rows = "".join(f"0,p{i},u{i},1\n" for i in range(20_000))
    with pytest.raises(StreamError, match="20000×20000 labels"):
        open_stream(table(tmp_path, "t,a,b,x\n" + rows), **SMALL)


@pytest.mark.slow
def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1000)
    with pytest.raises(StreamError, match="check that it is text"):
        open_stream(table(tmp_path, "t,a,b,x\n" + "7" * 5000), **SMALL)


def test_parquet_of_other_types(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = {
        "t": pa.array([1, 1, 2], pa.uint8()),
        "a": pa.array(["p", "q", "p"]).dictionary_encode(),
        "b": pa.array([1.5, 2.0, 1.5]),
        "x": pa.array([True, False, None]),
    }
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    stream = open_stream(tmp_path / "a.parquet", **SMALL)
    first, second = stream.slices()
    assert stream.labels[0] == ("p", "q")
    assert first.values.tolist()[0][0] == 1
    assert np.isnan(second.values).all()
    with pytest.raises(StreamError, match="must hold numbers"):
        open_stream(tmp_path / "a.parquet", time="t", modes="b", value="a")


def test_compressed_tables_stop_at_their_damage(tmp_path):
    packed = gzip.compress(csv_text().encode())
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(StreamError):
        open_stream(tmp_path / "a.csv.gz", **TABLE)


def test_row_groups_are_found_again(tmp_path):
    made = make_parquet(tmp_path)
    items = list(open_stream(made.path, **made.options).slices())
    assert {item.position["source"]["place"] for item in items} > {0}
    assert len(items) == LENGTH
    assert open_stream(made.path, **made.options).labels[0] == tuple(SOURCES)


def growing(tmp_path, rows):
    return table(tmp_path, "\n".join(["t,a,b,x", *rows]) + "\n")


GROWN = ["0,p,u,1", "0,q,u,2", "1,p,u,3", "1,q,u,4", "2,p,u,5", "2,q,u,6"]
GIVEN = SMALL | {"labels": {"a": ["p", "q"], "b": ["u"]}}


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_followed_table_gives_the_same_slices_however_often_it_is_interrupted(tmp_path, cut):
    stream = open_stream(growing(tmp_path, GROWN[:cut]), **GIVEN, follow=True, idle=0)
    items = list(stream.slices())
    assert any("wait for the next t" in notice for notice in stream.notices)
    position = items[-1].position if items else None
    followed = open_stream(growing(tmp_path, GROWN), **GIVEN, follow=True, idle=0)
    assert followed.fingerprint == stream.fingerprint
    items += followed.slices(position)
    complete = open_stream(growing(tmp_path, GROWN), **GIVEN)
    assert complete.fingerprint == stream.fingerprint
    items += complete.slices(items[-1].position)
    np.testing.assert_array_equal([item.values.ravel() for item in items], [[1, 2], [3, 4], [5, 6]])
    assert [item.time for item in items] == [0, 1, 2]


@pytest.mark.parametrize("added", [["1,q,u,4"], ["1,p,u,3"]])
def test_rows_that_come_after_their_slice_was_done_are_refused_or_left_out(tmp_path, added):
    *_, last = open_stream(growing(tmp_path, GROWN[:3]), **GIVEN).slices()
    path = growing(tmp_path, [*GROWN[:3], *added, *GROWN[4:]])
    with pytest.raises(StreamError, match=r"1 more row of t 1, whose slice was done .* --on-bad skip"):
        list(open_stream(path, **GIVEN).slices(last.position))
    stream = open_stream(path, **GIVEN, on_bad="skip")
    assert [item.time for item in stream.slices(last.position)] == [2]
    assert any("came to small.csv after that slice was done" in notice for notice in stream.notices)


BAD_CSV_ROWS = ["1,q,u,many", "noon,p,u,1", "1,q", ",q,u,1", "1,z,u,1", "1,p,u,7", "1,\xff\xfe,u,1"]


@pytest.mark.parametrize("block", [60, 4 * 2**20])
@pytest.mark.parametrize("bad", BAD_CSV_ROWS)
def test_a_bad_row_ends_the_table_or_is_left_out(tmp_path, monkeypatch, bad, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    path = tmp_path / "small.csv"
    path.write_bytes("\n".join(["t,a,b,x", *GROWN[:3], bad, *GROWN[3:], ""]).encode("latin-1"))
    with pytest.raises(StreamError, match=r"--on-bad skip"):
        list(open_stream(path, **GIVEN).slices())
    stream = open_stream(path, **GIVEN, on_bad="skip")
    items = list(stream.slices())
    np.testing.assert_array_equal([item.values.ravel() for item in items], [[1, 2], [3, 4], [5, 6]])
    assert [item.time for item in items] == [0, 1, 2]
    assert any(notice.startswith("1 row of small.csv could not be used and was left out") for notice in stream.notices)
    rest = open_stream(path, **GIVEN, on_bad="skip").slices(items[0].position)
    assert [item.time for item in rest] == [1, 2]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[1]",
        '{"t": 1, "a": "q", "b": "u"}',
        '{"t": "noon", "a": "q", "b": "u", "x": 1}',
        '{"t": 9223372036854775808, "a": "q", "b": "u", "x": 1}',
        '{"t": 1, "a": "\\ud800", "b": "u", "x": 1}',
        '{"t": 1, "a": null, "b": "u", "x": 1}',
        '{"t": 1, "a": "q", "b": "u", "x": "many"}',
        '{"t": 1, "a": "z", "b": "u", "x": 1}',
    ],
)
def test_a_bad_json_row_ends_the_table_or_is_left_out(tmp_path, bad):
    rows = [dict(zip("tabx", row.split(","), strict=True)) for row in GROWN]
    texts = [json.dumps(row | {"t": int(row["t"]), "x": float(row["x"])}) for row in rows]
    path = table(tmp_path, "\n".join([*texts[:3], bad, *texts[3:], ""]), "small.jsonl")
    with pytest.raises(StreamError, match=r"--on-bad skip"):
        list(open_stream(path, **GIVEN).slices())
    stream = open_stream(path, **GIVEN, on_bad="skip")
    np.testing.assert_array_equal([item.values.ravel() for item in stream.slices()], [[1, 2], [3, 4], [5, 6]])
    assert any(notice.startswith("1 row of small.jsonl could not be used") for notice in stream.notices)


def test_parquet_rows_without_time_or_label_are_left_out(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = {"t": [0.0, None, float("nan"), 1.0], "a": ["p", "p", "q", None], "b": ["u"] * 4, "x": [1.0, 2.0, 3.0, 4.0]}
    pq.write_table(pa.table(data), tmp_path / "a.parquet")
    with pytest.raises(StreamError, match=r"rows without t.*--on-bad skip"):
        open_stream(tmp_path / "a.parquet", **SMALL)
    stream = open_stream(tmp_path / "a.parquet", **SMALL, on_bad="skip")
    assert [item.time for item in stream.slices()] == [0]
    assert any("3 rows of a.parquet" in notice for notice in stream.notices)


def test_bad_json_lines_and_images_are_left_out(tmp_path):
    path = table(tmp_path, "[1, 2]\n[3, 4\n[5]\n[7, 8]\n", "a.jsonl")
    with pytest.raises(StreamError, match=r"on_bad='skip'"):
        list(open_stream(path).slices())
    stream = open_stream(path, on_bad="skip")
    assert [item.values.tolist() for item in stream.slices()] == [[1, 2], [7, 8]]
    assert any(notice.startswith("1 line of a.jsonl") for notice in stream.notices)
    assert any(notice.startswith("1 slice of a.jsonl") for notice in stream.notices)


def test_a_table_with_a_column_per_entry_is_refused_before_it_is_parsed(tmp_path):
    path = table(tmp_path, "t,a,b,x," + ",".join(f"c{i}" for i in range(40_000)) + "\n0,p,u,1\n")
    with pytest.raises(StreamError, match=r"has 40004 columns, more than 16384: write one row per entry"):
        open_stream(path, **SMALL)


def test_more_rows_for_one_time_than_memory_should_hold_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("undertow.sources.formats.table._MAX_SLICE_ROWS", 3)
    path = growing(tmp_path, ["0,p,u,1"] * 5)
    with pytest.raises(StreamError, match=r"more than 3 rows for one t"):
        open_stream(path, **SMALL, duplicates="sum")


def write_parquet(path, labels, dictionary):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = pa.table({"t": [0] * len(labels), "a": labels, "b": ["u"] * len(labels), "x": [1.0] * len(labels)})
    pq.write_table(data, path, compression="zstd", use_dictionary=dictionary)
    return path


def test_a_parquet_file_that_takes_far_more_memory_than_it_is_large_is_refused(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet", ["p" * 100_000] * 20, dictionary=True)
    with pytest.raises(StreamError, match="a label of 100000 bytes"):
        open_stream(path, **SMALL)
    monkeypatch.setattr("undertow.sources.formats.parquet._MAX_INFLATED_BYTES", 2**20)
    path = write_parquet(tmp_path / "b.parquet", ["p" * 100_000] * 50, dictionary=False)
    with pytest.raises(StreamError, match=r"takes 5[0-9]* bytes of memory"):
        open_stream(path, **SMALL)


def test_labels_that_are_encoded_in_the_file_are_those_of_its_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = pa.DictionaryArray.from_arrays(pa.array([2, 0, 3]), ["q", "unused", "p", "q"])
    pq.write_table(
        pa.table({"t": [0, 0, 1], "a": labels, "b": ["u"] * 3, "x": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet"
    )
    stream = open_stream(tmp_path / "a.parquet", **SMALL)
    assert stream.labels[0] == ("p", "q")
    np.testing.assert_array_equal([item.values.ravel() for item in stream.slices()], [[1, 2], [np.nan, 3]])
