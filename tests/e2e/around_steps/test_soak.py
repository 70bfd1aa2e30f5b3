"""An ordinary loop, with ranks killed at random moments of it: the bits of a calm run, twice."""

import contextlib
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from killing import PATIENT, Job, run_job
from sharded_jobs import PRELOADED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).parent / "soak_program.py"
RANKS, STEPS, KILLS = 2, 300, 40
PAUSE_S = 0.3
APART_S = 1.3
"""Between two kills: a spare has to be there for the next one."""
APART_STEPS = 2
"""Between two kills, at both ranks: with none, both copies of a state are lost, which ends a job of two ranks."""


class Killer(threading.Thread):
    """Kills a random rank at random moments, each once, until it has killed so many."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.killed: list[tuple[int, int]] = []
        """Rank and the last step that it had finished."""
        self.over = False
        self._folder = folder
        self._random = random.Random(seed)
        self._pids: set[int] = set()

    def run(self) -> None:
        reached = 0
        while not self.over and len(self.killed) < KILLS:
            while not self.over and min(self._at()) < reached + APART_STEPS:
                time.sleep(0.02)
            time.sleep(APART_S * self._random.uniform(0.7, 1.3))
            rank = self._random.randrange(RANKS)
            with contextlib.suppress(OSError, ValueError):
                pid, at = int((self._folder / f"pid{rank}").read_text()), self._at()
                if pid not in self._pids and at[rank] < STEPS - 10:
                    os.kill(pid, signal.SIGKILL)
                    self._pids.add(pid)
                    self.killed.append((rank, at[rank]))
                    reached = max(at)

    def _at(self) -> list[int]:
        """Return the last step that each rank has finished; -1 before the first, and while it is written."""
        texts = [path.read_text() if path.exists() else "" for path in (self._folder / f"at{n}" for n in range(RANKS))]
        return [int(text) if text else -1 for text in texts]


def ends(folder: Path) -> list[dict[str, object]]:
    return [json.loads((folder / f"end{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("layout", ["replicas", "fsdp"])
def test_forty_kills_at_random_moments_of_an_ordinary_loop_cost_no_bit(layout: str, seed: int, tmp_path: Path) -> None:
    shape = {
        "steps": STEPS,
        "ranks": RANKS,
        "program": PROGRAM,
        "deadlines": PATIENT,
        "torch": PRELOADED,
        "arguments": ("--max-restarts", "60"),
        "timeout_s": 900.0,
        "environment": {"LAYOUT": layout},
    }
    calm = run_job(tmp_path / "calm", Job(**shape))  # type: ignore[arg-type]
    assert calm.finished, calm.text[-3000:]
    killer = Killer(tmp_path / "killed", seed)

    killer.start()
    outcome = run_job(tmp_path / "killed", Job(**{**shape, "pause_s": PAUSE_S}))  # type: ignore[arg-type]
    killer.over = True
    killer.join()

    assert outcome.finished, outcome.text[-4000:]
    assert len(killer.killed) == KILLS, "the job was over before all kills"
    assert ends(tmp_path / "killed") == ends(tmp_path / "calm")
