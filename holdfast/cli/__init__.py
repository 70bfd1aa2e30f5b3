"""The command line. Each command parses, calls one function, prints, and sets an exit code."""

from holdfast.cli.entry_point import app, known_failure, main

__all__ = ["app", "known_failure", "main"]
