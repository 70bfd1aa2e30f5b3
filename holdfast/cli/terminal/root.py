import os
import shlex
import sys
from collections.abc import Sequence


def sudo_command(arguments: Sequence[str] | None = None) -> str:
    """
    Return a command line of ``holdfast`` for root.

    Names the program by its path and repeats the home: sudo's PATH has no virtual environment, and it drops variables.

    Args:
        arguments: Program, as a path, and its arguments. Default: this command.
    """
    home = [f"{name}={os.environ[name]}" for name in ("HOLDFAST_HOME", "HOLDFAST_PORT") if os.environ.get(name)]
    return f"sudo {shlex.join([*home, *(sys.argv if arguments is None else arguments)])}"
