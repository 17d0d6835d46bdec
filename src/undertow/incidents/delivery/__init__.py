"""Incidents brought to people and machines: once when they open, once when they close, across restarts."""

from undertow.incidents.delivery.channels import Channel, Refused, channel
from undertow.incidents.delivery.courier import Courier, message
from undertow.incidents.delivery.outbox import FileOutbox, Outbox

__all__ = ["Channel", "Courier", "FileOutbox", "Outbox", "Refused", "channel", "message"]
