"""The store in a PostgreSQL database, by its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from undertow.service.errors import ServiceError
from undertow.service.store.sql import SqlStore

_LOCK = 8765_2024
"""Number of the advisory lock that a service holds in its database."""


@contextmanager
def open_postgres(address: str) -> Iterator[SqlStore]:
    """The store in a database, for one service at a time.

    Raises:
        ServiceError: There is no such database, another service has it, or psycopg is missing.
    """
    try:
        import psycopg
    except ModuleNotFoundError:
        raise ServiceError("PostgreSQL needs psycopg: pip install 'undertow[postgres]'") from None
    try:
        holder = psycopg.connect(address, autocommit=True)
    except psycopg.Error as error:
        reason = " ".join(str(error).split())
        raise ServiceError(f"the database cannot be reached ({reason}): check the address") from None
    with holder:
        found = holder.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if not found or not found[0]:
            raise ServiceError("the database is in use by another service: stop that one, or name another database")
        store = SqlStore(lambda: _connect(address), "%s", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BYTEA")
        try:
            yield store
        finally:
            store.close()


def _connect(address: str) -> Any:
    import psycopg

    connection = psycopg.connect(address, autocommit=True)
    connection.execute("SET synchronous_commit = on")
    return connection
