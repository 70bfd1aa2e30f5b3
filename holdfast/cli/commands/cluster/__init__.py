"""Verbs for a running cluster: status, console, events, logs, faults."""

__all__ = [
    "console",
    "events",
    "incidents",
    "inject",
    "kill_node",
    "logs",
    "rehearse",
    "ssh",
    "status",
]
