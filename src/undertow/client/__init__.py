"""A small client of the service, for programs that wait and for those that do not."""

from undertow.client.awaited import AsyncClient
from undertow.client.blocking import Client
from undertow.client.requests import ClientError

__all__ = ["AsyncClient", "Client", "ClientError"]
