"""``python -m holdfast_lifecycle.preloading``: one order to fetch files, as JSON."""

import sys

from holdfast_lifecycle.preloading.fetching import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
