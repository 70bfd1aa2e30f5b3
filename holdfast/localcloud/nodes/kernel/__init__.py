"""Kernel interface of nodes: boot program, namespaces, mounts, limits, devices, /proc, host checks."""

__all__ = ["boot", "devices", "entering", "host", "limits", "mounts", "namespaces", "plan", "proc"]
