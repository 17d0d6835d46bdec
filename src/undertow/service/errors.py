"""What the service refuses, each with the status that HTTP has for it."""

from __future__ import annotations


class ServiceError(Exception):
    """A request that cannot be served; the message is one sentence for the client."""

    status = 400


class Invalid(ServiceError):
    """What was sent cannot be used."""

    status = 422


class Full(Invalid):
    """There is no free place for a label."""


class NotFound(ServiceError):
    """There is no such stream, slice or incident."""

    status = 404


class Conflict(ServiceError):
    """It contradicts what is there already."""

    status = 409


class TooLarge(ServiceError):
    """A limit of this service."""

    status = 413


class Unsupported(ServiceError):
    """A format that is not read."""

    status = 415


class Busy(ServiceError):
    """Too much is waiting: the client should come back.

    Args:
        message: One sentence.
        retry_after: Seconds.
    """

    status = 429

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(ServiceError):
    """The service is shutting down, or its store cannot be written."""

    status = 503
