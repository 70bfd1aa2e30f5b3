"""The command line. Each command parses, calls one function, prints, and sets an exit code."""

from holdfast.cli._main import main

__all__ = ["main"]
