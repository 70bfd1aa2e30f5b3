"""``holdfast-agent``."""

import sys

from holdfast_agent.commands import main

if __name__ == "__main__":
    sys.exit(main())
