"""``python -m holdfast_runtime.launcher``."""

import sys

from holdfast_runtime.launcher.node import main

if __name__ == "__main__":
    sys.exit(main())
