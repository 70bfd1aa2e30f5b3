"""
Makes the container of one job step on one node; run as root by the SPANK plugin beside it.

    python3 -I -S -c 'import sys; sys.path.insert(0, "<folder>"); from start import main; main()'

The request comes on descriptor 0 and the answer goes back on it, with a descriptor of the container's mount namespace.
Standard library only: a node has no more, and 64 of these may start at once. Everything in a request is the word of
a user whom nobody trusts, except for the user's number, groups and folders, which Slurm says.
"""

from .program import main

__all__ = ["container", "errors", "main", "mounts", "reference", "request", "spec", "squashfs"]
