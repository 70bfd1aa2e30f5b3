"""Verbs about a cluster that is up: status, events, logs, jobs, submit, ssh, kill-node, rehearse."""

__all__ = ["events", "jobs", "kill_node", "logs", "rehearse", "ssh", "status", "submit"]
