"""``python -m holdfast_runtime.launcher``."""

import sys
from collections.abc import Sequence

from holdfast_runtime.launcher.interpreter import too_old


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run ``holdfast-run``. Default: with the arguments of this process."""
    problem = too_old()
    if problem:
        sys.stderr.write(f"holdfast-run: {problem}\n")
        return 2
    # Written for newer versions of Python than this file.
    from holdfast_runtime.launcher.node import main as launch

    return launch(arguments)


if __name__ == "__main__":
    sys.exit(main())
