"""The command line. Each command parses, calls one function, prints, and sets an exit code."""

import signal
import sys

try:
    from holdfast.cli.entry_point import app, main
except KeyboardInterrupt:
    # To load it takes a second on a busy machine, and whoever presses Ctrl-C then expects no traceback either.
    print("holdfast: interrupted", file=sys.stderr)
    raise SystemExit(128 + signal.SIGINT) from None

__all__ = ["app", "main"]
