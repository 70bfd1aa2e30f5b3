"""
What nodes are asked of the kernel: the boot program and its plan, entering a node, its namespaces and mounts,
limits, devices, /proc, whether this machine can. Stands alone: boot.py is run as a script. Which nodes there are is
for `nodes`.
"""

__all__ = ["boot", "devices", "entering", "host", "limits", "mounts", "namespaces", "plan", "proc"]
