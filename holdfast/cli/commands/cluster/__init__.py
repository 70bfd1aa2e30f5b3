"""Verbs about a cluster that is up: status, events, incidents, logs, jobs, submit, ssh, kill-node, inject, rehearse."""

__all__ = ["events", "incidents", "inject", "jobs", "kill_node", "logs", "rehearse", "ssh", "status", "submit"]
