"""
Kernel interface of nodes: boot program and plan, entering, namespaces, mounts, limits, devices, /proc, host checks.
boot.py is also run as a script.
"""

__all__ = ["boot", "devices", "entering", "host", "limits", "mounts", "namespaces", "plan", "proc"]
