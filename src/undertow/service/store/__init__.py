"""Where streams are kept: a small Protocol, SQLite by default, PostgreSQL by address."""
