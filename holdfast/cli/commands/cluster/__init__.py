"""
Verbs about a cluster that is up: status, events, incidents, logs, jobs, scale, submit, packages, ssh, kill-node,
inject, rehearse.
"""

__all__ = [
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
]
