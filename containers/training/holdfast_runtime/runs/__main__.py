"""``python -m holdfast_runtime.runs FOLDER``."""

import sys

from holdfast_runtime.runs import main

if __name__ == "__main__":
    sys.exit(main())
