"""The command line. Each command parses, calls one function, prints, and sets an exit code."""

import signal
import sys


def main() -> None:
    """Run the command line. Loading it takes a second on a busy machine, in which Ctrl-C is one as well."""
    try:
        from holdfast.cli.entry_point import main as run
    except KeyboardInterrupt:
        print("holdfast: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    run()


__all__ = ["main"]
