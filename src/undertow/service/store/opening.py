"""A store by what the user calls it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from undertow.service.store.base import Store


def open_store(name: str) -> AbstractContextManager[Store]:
    """A file for SQLite, or ``postgresql://user@host/database``."""
    if name.startswith(("postgresql://", "postgres://")):
        from undertow.service.store.postgres import open_postgres

        return open_postgres(name)
    from undertow.service.store.sqlite import open_sqlite

    return open_sqlite(Path(name))
