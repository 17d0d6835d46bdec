"""Incidents: what an operator acts on, from the flagged entries of many slices. NumPy only."""

from undertow.incidents.incident import Change, Incident
from undertow.incidents.rate import FalseAlarms
from undertow.incidents.watch import Incidents

__all__ = ["Change", "FalseAlarms", "Incident", "Incidents"]
