"""Logs for machines: one line of JSON each, on standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """Time, level, event, and what else was said (``extra={"fields": {…}}``)."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        content = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            content["trace"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def configure(level: str = "info") -> None:
    """For the service and for uvicorn."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("undertow.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "undertow.service" else "WARNING")
