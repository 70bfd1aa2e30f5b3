"""Ranks that hang, for real: one that stops in a collective of a sharded step, and one that the kernel holds."""

import importlib.util
import os
import re
from pathlib import Path

import pytest
from killing import Job, run_job
from sharded_jobs import sharded
from standing_still import standing_still
from waiting import eventually

from holdfast_runtime.launcher.ranks import kernel_state

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(300),
]
PROGRAM = Path(__file__).with_name("held_program.py")
SILENCE = (
    "beat=0.3,heartbeat=2,leave=3,ready=5,minority=20,view=60,connect=70,transfer=80,start=300,stop=5,"
    "frozen=200,silence=3,progress=200"
)
"""A rank that is stopped is not noticed as that, and one that waits is not waited for until ``progress``."""


def test_a_hang_in_a_sharded_step_is_noticed_after_silence_and_the_rank_at_fault_is_named(tmp_path: Path) -> None:
    stop = {"kind": "SIGSTOP", "phase": "collective:3", "rank": 1, "step": 5}

    outcome = run_job(tmp_path, sharded("shard2", steps=9, every=1, faults=(stop,), deadlines=SILENCE, timeout_s=100.0))

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-3000:]
    noticed = re.search(r"ranks \[0, 1\] wait for it since (\S+) s in phase forward of step 5", outcome.text)
    assert noticed is not None, outcome.text[-3000:]
    assert 3.0 < float(noticed[1]) < 60.0
    (lost,) = re.findall(r"node 0: (rank .* is lost: .*)", outcome.text)
    at_fault = "rank 1 of node 0 is lost: it was killed by SIGKILL: it had not left within 3 s; no progress for"
    assert lost.startswith(at_fault), lost


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices")
def test_a_rank_that_does_not_end_after_sigkill_is_named_and_the_job_goes_on_with_the_spare(tmp_path: Path) -> None:
    frozen = tmp_path / "frozen"
    frozen.mkdir()
    own = {"HELD": str(frozen / "file"), "HELD_ONCE": str(tmp_path / "once")}

    with standing_still("sleep", frozen):
        outcome = run_job(tmp_path, Job(steps=6, ranks=2, program=PROGRAM, environment=own, timeout_s=90.0))
        said = re.search(
            r"rank 1 of node 0 is lost: it does not end after SIGKILL: process (\d+) is in state D", outcome.text
        )
        assert said is not None, outcome.text[-3000:]
        pid = int(said[1])
        assert kernel_state(pid).startswith("state D"), "the fault still holds it"

    assert outcome.finished, outcome.text[-3000:]
    assert re.search(r"rank 1 has made no progress for .* held by the kernel; rank 0 waits", outcome.text)
    assert "spares of nodes 0 take ranks 1" in outcome.text
    assert (tmp_path / "done1").read_text() != str(pid)
    eventually(lambda: not kernel_state(pid).startswith("state D"))
