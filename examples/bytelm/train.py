"""Train a byte-level transformer on the cluster: one process per Slurm task, resumable at any moment.

    srun python train.py --checkpoints /fsx/checkpoints/bytelm [--steps N] ...

Exit codes: 0 the last step is done; 1 another rank was lost, run it again to resume; 2 refused, the message says what
to change; 143 stopped by SIGTERM after saving.
"""

import gc
import os
import signal
import sys
import threading
import time

from holdfast_common import EventLog
from settings import RefusedError, find_place, parse_settings

STOP_GRACE_S = 5.0
"""After SIGTERM: time to finish a step and save. A rank that waits for a dead one is ended then."""


class Termination(threading.Thread):
    """Waits for SIGTERM in a thread, since the main thread may be inside a collective."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.requested = False
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def run(self) -> None:
        signal.sigwait({signal.SIGTERM})
        self.requested = True
        time.sleep(STOP_GRACE_S)
        os._exit(128 + signal.SIGTERM)


def main() -> int:
    settings = parse_settings()
    termination = Termination()
    termination.start()
    try:
        place = find_place()
        # Collecting garbage while torch is imported finds none and takes a sixth of the import.
        gc.disable()
        from trainer import RankLostError, train

        gc.enable()
        gc.freeze()
    except RefusedError as error:
        return _fail(2, str(error))
    try:
        finished = train(
            settings=settings,
            place=place,
            events=EventLog.from_environment(source="job"),
            stopping=lambda: termination.requested,
        )
    except RefusedError as error:
        return _fail(2, f"rank {place.rank}: {error}")
    except RankLostError as error:
        return _fail(1, str(error))
    return 0 if finished else 128 + signal.SIGTERM


def _fail(code: int, message: str) -> int:
    print(f"error: {message}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is saved and closed; tearing down torch's interpreter state would take half a second more.
    os._exit(code)
