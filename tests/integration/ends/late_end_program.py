"""``sharded_program`` whose ranks 0 and 1 die while the others wait for them after the last step."""

import os
import runpy
import signal
import sys
import time
from pathlib import Path

from holdfast_runtime.inprocess import Member

PROGRAM = Path(__file__).parents[1] / "sharded_program.py"
OTHERS_WAIT_S = 2.0


def main() -> None:
    finish = Member.finish

    def finish_late(member: Member) -> bool:
        if member.own.rank in (0, 1) and member.own.built < 0:
            time.sleep(OTHERS_WAIT_S)
            os.kill(os.getpid(), signal.SIGKILL)
        return finish(member)

    Member.finish = finish_late  # type: ignore[method-assign]
    sys.path.insert(0, str(PROGRAM.parent))
    sys.argv[0] = str(PROGRAM)
    runpy.run_path(str(PROGRAM), run_name="__main__")


if __name__ == "__main__":
    main()
