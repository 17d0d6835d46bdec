"""The embedded store: one SQLite file, no server."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from undertow.runs.errors import StoreError
from undertow.runs.store.folder import only_writer
from undertow.service.errors import ServiceError
from undertow.service.store.sql import SqlStore


@contextmanager
def open_sqlite(path: Path) -> Iterator[SqlStore]:
    """The store in a file, made if there is none; for one process at a time.

    Write-ahead log with ``synchronous=FULL``: a transaction is on the disk when it returns.

    Raises:
        ServiceError: It cannot be opened, or another service has it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f"{path.name}.lock")
    try:
        with only_writer(lock):
            _make_private(path)
            store = SqlStore(lambda: _connect(path), "?", "INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB")
            try:
                yield store
            finally:
                store.close()
    except StoreError:
        raise ServiceError(f"{path} is in use by another service: stop that one, or name another store") from None
    except sqlite3.DatabaseError as error:
        raise ServiceError(f"{path} cannot be used as a store ({error}): name another file") from error


def _make_private(path: Path) -> None:
    """Data of streams are for the user alone, whatever the umask says."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection
