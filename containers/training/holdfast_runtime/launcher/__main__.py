"""``python -m holdfast_runtime.launcher``."""

import sys

from holdfast_runtime.launcher.interpreter import too_old


def main() -> int:
    problem = too_old()
    if problem:
        sys.stderr.write(f"holdfast-run: {problem}\n")
        return 2
    # Written for newer versions of Python than this file.
    from holdfast_runtime.launcher.node import main as launch

    return launch()


if __name__ == "__main__":
    sys.exit(main())
