"""``python -m holdfast_runtime.runs FOLDER``: exits with 0 when it is this submission's, otherwise with 2 and why."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast_runtime.runs.claims import RunFolderError, adopt, claim
from holdfast_runtime.runs.submission import find_submission


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m holdfast_runtime.runs", description=__doc__)
    parser.add_argument("--adopt", action="store_true", help="make it this submission's, whosever it was")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    try:
        if not given.adopt:
            claim(given.folder)
            return 0
        mine = find_submission()
        if mine is None:
            parser.error("outside of a Slurm job set HOLDFAST_SUBMISSION, to say whose the folder is to be")
        adopt(given.folder, mine)
    except (RunFolderError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
