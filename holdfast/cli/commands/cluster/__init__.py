"""
Verbs about a cluster that is up: status, events, incidents, logs, jobs, scale, submit, ssh, kill-node, inject,
rehearse.
"""

__all__ = [
    "events",
    "incidents",
    "inject",
    "jobs",
    "kill_node",
    "logs",
    "rehearse",
    "scale",
    "ssh",
    "status",
    "submit",
]
