"""``python -m holdfast_runtime.data``: build, inspect and verify token files."""

import sys

from holdfast_runtime.data.commands import main

sys.exit(main())
