"""
Container of one job step on one node; run as root by the SPANK plugin.

    python3 -I -S -c 'import sys; sys.path.insert(0, "<folder>"); from start import main; main()'

Request and answer use descriptor 0; the answer has a descriptor of the container's mount namespace. Standard library
only: 64 of these may start at once. A request is untrusted, except for the user's number, groups and folders from
Slurm.
"""

from .program import main

__all__ = ["container", "errors", "main", "mounts", "reference", "request", "spec", "squashfs"]
