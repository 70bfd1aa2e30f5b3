"""The command line. Each command parses, calls one function, prints, and sets an exit code."""

from holdfast.cli.entry_point import app, main

__all__ = ["app", "main"]
