"""
The program that serves the kernel logs of all nodes of a home, each as a file that behaves like /dev/kmsg.

It runs from its own folder with nothing but the interpreter, and imports as little as it can: it idles beside every
local cloud. ``ring`` holds records and ``device`` answers the kernel's requests, both without touching anything;
``fuse`` has the kernel's words; ``server`` owns the descriptors. It is one process because each costs 5 MB, and not a
thread of the control plane because a restart of that must not end the logs. CUSE is missing in many kernels.
"""

__all__ = ["device", "fuse", "ring"]
