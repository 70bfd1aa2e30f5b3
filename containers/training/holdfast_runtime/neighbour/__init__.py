"""Processes of the same host: which ones they are, and what can be read of their memory."""

from holdfast_runtime.neighbour.memory import NotReadableError, read_memory, this_host

__all__ = ["NotReadableError", "read_memory", "this_host"]
