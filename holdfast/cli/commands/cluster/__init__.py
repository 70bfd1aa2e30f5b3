"""Verbs for a running cluster: status, logs, jobs, faults."""

__all__ = [
    "console",
    "events",
    "incidents",
    "inject",
    "jobs",
    "kill_node",
    "logs",
    "packages",
    "rehearse",
    "scale",
    "ssh",
    "status",
    "submit",
    "why",
]
