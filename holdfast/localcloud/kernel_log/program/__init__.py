"""
Program that serves the kernel logs of all nodes of a home, as files like /dev/kmsg.

It runs from its own folder with few imports, since it idles beside every local cloud. ``ring`` has the records,
``device`` the answers (both pure), ``fuse`` the protocol, ``server`` the descriptors.
"""

__all__ = ["device", "fuse", "ring"]
