"""A store in tables: the statements that SQLite and PostgreSQL share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from undertow.service.store.base import (
    Checkpoint,
    Described,
    Feedback,
    Kept,
    KeptIncident,
    LoggedSlice,
    Stored,
    Write,
)

_TABLES = """
CREATE TABLE IF NOT EXISTS streams (stream {key}, name TEXT NOT NULL UNIQUE, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS slices (stream BIGINT NOT NULL, sequence BIGINT NOT NULL, time TEXT NOT NULL,
    body {bytes} NOT NULL, PRIMARY KEY (stream, sequence));
CREATE TABLE IF NOT EXISTS results (stream BIGINT NOT NULL, sequence BIGINT NOT NULL, time TEXT NOT NULL,
    numbers TEXT NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (stream, sequence));
CREATE TABLE IF NOT EXISTS checkpoints (stream BIGINT PRIMARY KEY, next BIGINT NOT NULL, feedback BIGINT NOT NULL,
    model {bytes} NOT NULL, incidents {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS feedback (stream BIGINT NOT NULL, number BIGINT NOT NULL, after BIGINT NOT NULL,
    incident BIGINT NOT NULL, false_alarm INTEGER NOT NULL, PRIMARY KEY (stream, number));
CREATE TABLE IF NOT EXISTS incidents (stream BIGINT NOT NULL, id BIGINT NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (stream, id));
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (number {key}, message TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS outbox (channel TEXT NOT NULL, number BIGINT NOT NULL, message TEXT NOT NULL,
    content TEXT NOT NULL, PRIMARY KEY (channel, number));
"""
_OWNED = ("slices", "results", "checkpoints", "feedback", "incidents")
_UPSERT_RESULT = """INSERT INTO results VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream, sequence)
DO UPDATE SET time = excluded.time, numbers = excluded.numbers, body = excluded.body"""
_UPSERT_CHECKPOINT = """INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream) DO UPDATE SET
next = excluded.next, feedback = excluded.feedback, model = excluded.model, incidents = excluded.incidents"""
_UPSERT_INCIDENT = """INSERT INTO incidents VALUES (?, ?, ?) ON CONFLICT (stream, id)
DO UPDATE SET content = excluded.content"""
_UPSERT_MARK = "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET content = excluded.content"
_NEW_MESSAGE = "INSERT INTO messages (message) VALUES (?) ON CONFLICT (message) DO NOTHING RETURNING number"
_STREAMS = """SELECT s.stream, s.name, s.spec,
    (SELECT MAX(sequence) FROM slices WHERE stream = s.stream), c.next,
    (SELECT MAX(number) FROM feedback WHERE stream = s.stream), c.feedback
FROM streams s LEFT JOIN checkpoints c ON c.stream = s.stream ORDER BY s.name"""


class SqlStore:
    """Tables behind a connection that writes and one connection for each thread that reads.

    Args:
        connect: A new connection; in autocommit mode.
        mark: How the driver writes a parameter.
        key: Type of a number that the database gives and never gives twice.
        bytes_type: Type of bytes.
    """

    def __init__(self, connect: Callable[[], Any], mark: str, key: str, bytes_type: str) -> None:
        self._connect, self._mark = connect, mark
        self._writing = threading.Lock()
        self._local = threading.local()
        self._all: list[Any] = []
        self._writer = self._opened()
        with self._writing:
            for statement in _TABLES.format(key=key, bytes=bytes_type).split(";"):
                if statement.strip():
                    self._writer.execute(statement)

    def streams(self) -> list[Stored]:
        """All of them, by name."""
        return [
            Stored(
                int(key),
                name,
                json.loads(spec),
                next=max(-1 if newest is None else newest, (kept or 0) - 1) + 1,
                feedback=max(-1 if said is None else said, (used or 0) - 1) + 1,
                behind=newest is not None or said is not None,  # a checkpoint removes from the log what it holds
            )
            for key, name, spec, newest, kept, said, used in self._read(_STREAMS)
        ]

    def create(self, name: str, spec: dict[str, Any]) -> Stored:
        """A new stream; durable when this returns."""
        with self._writing:
            found = self._execute(
                "INSERT INTO streams (name, spec) VALUES (?, ?) RETURNING stream", (name, json.dumps(spec))
            ).fetchone()
        return Stored(int(found[0]), name, spec)

    def delete(self, key: int) -> None:
        """A stream and everything that belongs to it."""
        with self._writing, self._transaction():
            for table in ("streams", *_OWNED):
                self._execute(f"DELETE FROM {table} WHERE stream = ?", (key,))

    def write(self, writes: Sequence[Write]) -> None:
        """All of them in one transaction; what belongs to a deleted stream is left out."""
        with self._writing, self._transaction():
            there = {int(row[0]) for row in self._execute("SELECT stream FROM streams").fetchall()}
            for one in writes:
                if one.key in there:
                    self._write(one)

    def _write(self, one: Write) -> None:
        if isinstance(one, LoggedSlice):
            self._execute("INSERT INTO slices VALUES (?, ?, ?, ?)", (one.key, one.sequence, one.time, one.body))
        elif isinstance(one, Described):
            self._execute("UPDATE streams SET spec = ? WHERE stream = ?", (json.dumps(one.spec), one.key))
        elif isinstance(one, Kept):
            self._execute(_UPSERT_RESULT, (one.key, one.sequence, one.time, one.numbers, one.body))
        elif isinstance(one, Feedback):
            row = (one.key, one.number, one.after, one.incident, int(one.false_alarm))
            self._execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", row)
        elif isinstance(one, KeptIncident):
            self._execute(_UPSERT_INCIDENT, (one.key, one.id, one.content))
        else:
            self._execute(_UPSERT_CHECKPOINT, (one.key, one.next, one.feedback, one.model, one.incidents))
            self._execute("DELETE FROM slices WHERE stream = ? AND sequence < ?", (one.key, one.next))
            self._execute("DELETE FROM feedback WHERE stream = ? AND number < ?", (one.key, one.feedback))
            self._execute("DELETE FROM results WHERE stream = ? AND sequence < ?", (one.key, one.keep_from))

    def logged(self, key: int, first: int, most: int) -> list[LoggedSlice]:
        """Slices of the log from a sequence number on."""
        rows = self._read(
            "SELECT stream, sequence, time, body FROM slices WHERE stream = ? AND sequence >= ? "
            "ORDER BY sequence LIMIT ?",
            (key, first, most),
        )
        return [LoggedSlice(row[0], row[1], row[2], bytes(row[3])) for row in rows]

    def checkpoint(self, key: int) -> Checkpoint | None:
        """The newest."""
        rows = self._read("SELECT stream, next, feedback, model, incidents FROM checkpoints WHERE stream = ?", (key,))
        if not rows:
            return None
        stream, after, said, model, incidents = rows[0]
        return Checkpoint(int(stream), int(after), int(said), bytes(model), bytes(incidents))

    def feedback(self, key: int, first: int) -> list[Feedback]:
        """From a number on."""
        rows = self._read(
            "SELECT stream, number, after, incident, false_alarm FROM feedback WHERE stream = ? AND number >= ? "
            "ORDER BY number",
            (key, first),
        )
        return [Feedback(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]

    def kept(self, key: int, sequence: int | None) -> Kept | None:
        """One slice, the newest for None."""
        where, order = ("", "ORDER BY sequence DESC LIMIT 1") if sequence is None else ("AND sequence = ?", "")
        rows = self._read(
            f"SELECT stream, sequence, time, numbers, body FROM results WHERE stream = ? {where} {order}",
            (key,) if sequence is None else (key, sequence),
        )
        if not rows:
            return None
        stream, number, time, numbers, body = rows[0]
        return Kept(int(stream), int(number), time, numbers, bytes(body))

    def numbers(self, key: int, first: int, last: int, most: int) -> list[tuple[int, str, str]]:
        """Sequence number, time and numbers of the newest ``most`` slices from ``first`` to before ``last``."""
        rows = self._read(
            "SELECT sequence, time, numbers FROM results WHERE stream = ? AND sequence >= ? AND sequence < ? "
            "ORDER BY sequence DESC LIMIT ?",
            (key, first, last, most),
        )
        return [(int(row[0]), row[1], row[2]) for row in reversed(rows)]

    def pieces(
        self, key: int, first: int, last: int, offsets: Sequence[int], most: int
    ) -> list[tuple[int, str, tuple[bytes, ...]]]:
        """Four bytes at each of these offsets of the arrays of slices, with sequence number and time."""
        wanted = ", ".join(f"substr(body, {int(offset) + 1}, 4)" for offset in offsets)
        rows = self._read(
            f"SELECT sequence, time, {wanted} FROM results WHERE stream = ? AND sequence >= ? AND sequence < ? "
            "ORDER BY sequence DESC LIMIT ?",
            (key, first, last, most),
        )
        return [(int(row[0]), row[1], tuple(map(bytes, row[2:]))) for row in reversed(rows)]

    def incidents(self, key: int, most: int) -> list[str]:
        """The newest, as JSON, newest first."""
        rows = self._read("SELECT content FROM incidents WHERE stream = ? ORDER BY id DESC LIMIT ?", (key, most))
        return [row[0] for row in rows]

    def mark(self, name: str) -> str | None:
        """A short text by its name."""
        rows = self._read("SELECT content FROM marks WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def set_mark(self, name: str, content: str) -> None:
        """Replace it; durable when this returns."""
        with self._writing:
            self._execute(_UPSERT_MARK, (name, content))

    def put_message(self, key: str, content: str, names: Sequence[str], keys: int) -> bool:
        """A message for these channels, durable when this returns; False if its key is among the newest ``keys``."""
        with self._writing, self._transaction():
            new = self._execute(_NEW_MESSAGE, (key,)).fetchone()
            if new is None:
                return False
            number = int(new[0])
            for name in names:
                self._execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (name, number, key, content))
            self._execute("DELETE FROM messages WHERE number <= ?", (number - keys,))
            return True

    def messages(self, name: str) -> list[tuple[str, str]]:
        """Keys and contents of what a channel has not taken, oldest first."""
        rows = self._read("SELECT message, content FROM outbox WHERE channel = ? ORDER BY number", (name,))
        return [(row[0], row[1]) for row in rows]

    def message_done(self, key: str, name: str) -> None:
        """A channel has taken a message."""
        with self._writing:
            self._execute("DELETE FROM outbox WHERE channel = ? AND message = ?", (name, key))

    def close(self) -> None:
        """Release everything."""
        with self._writing:
            for connection in self._all:
                connection.close()

    def _transaction(self) -> Any:
        return _Transaction(self._writer)

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._writer.execute(statement.replace("?", self._mark), values)

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        if not hasattr(self._local, "connection"):
            self._local.connection = self._opened()
        found: list[Any] = self._local.connection.execute(statement.replace("?", self._mark), values).fetchall()
        return found

    def _opened(self) -> Any:
        connection = self._connect()
        self._all.append(connection)
        return connection


class _Transaction:
    """All or nothing, on a connection in autocommit mode."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
