"""Verbs for a running cluster: status, console, events, logs, faults."""

__all__ = ["events", "ssh"]
