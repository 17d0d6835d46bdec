"""A run on one page: what was found, how it went, and where to look."""

from undertow.report.page import write_report

__all__ = ["write_report"]
