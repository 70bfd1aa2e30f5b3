"""Runs the lifecycle of a node: python3 -m holdfast_lifecycle. Started by the scripts beside this package."""

import sys

from holdfast_lifecycle.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
