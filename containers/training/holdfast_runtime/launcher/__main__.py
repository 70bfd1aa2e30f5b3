"""``python -m holdfast_runtime.launcher``."""

import sys

from holdfast_runtime.launcher._main import main

if __name__ == "__main__":
    sys.exit(main())
