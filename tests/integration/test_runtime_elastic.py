"""
A job changes its size while it trains, as asked and by a loss, and every bit is that of one process that trains alone.

More losses, in the middle of changes, are in tests/e2e/test_elastic_matrix.py.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from elastic_jobs import PROGRAM, asking, elastic, written, wrong
from killing import PYTHONPATH, run_job

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
    pytest.mark.timeout(600),
]
STEPS = 24
LOGICAL = 4


def test_planned_changes_and_a_loss_without_a_spare_keep_every_bit_and_every_sample(tmp_path: Path) -> None:
    folder, calm = tmp_path / "changed", tmp_path / "alone"
    calm.mkdir()
    own = {"PYTHONPATH": PYTHONPATH, "ELASTIC": str(LOGICAL)}
    subprocess.run([sys.executable, PROGRAM, calm, str(STEPS), "0"], env={**os.environ, **own}, check=True)
    kill = {"kind": "SIGKILL", "phase": "part", "rank": 2, "step": 21, "victims": ["launcher"]}
    job = elastic(
        sizes="2,3,4",
        steps=STEPS,
        logical=LOGICAL,
        every=2,
        pause_s=0.1,
        faults=(kill,),
        restart_launchers=False,
        until=asking(folder, [(1, 2), (6, 3), (11, 4)]),
    )

    outcome = run_job(folder, job)

    assert sorted(outcome.codes) == [-9, 0, 0, 0], outcome.text[-3000:]
    assert outcome.fired == {0: 1}
    assert wrong(folder, calm, steps=STEPS) == []
    steps = written(folder)
    sizes = [steps[number][-1].size for number in range(STEPS)]
    changes = [size for number, size in enumerate(sizes) if not number or size != sizes[number - 1]]
    assert changes == [4, 2, 3, 4, 3]
    planned = [step for number in range(18) for step in steps[number]]
    assert [step.number for step in planned] == list(range(18)), "nothing is done again where nothing is lost"
    before_changes = {number for number in range(17) if sizes[number] != sizes[number + 1]}
    told = {step.number: {line.leaves for line in step.lines} for step in planned}
    assert told == {number: {number in before_changes} for number in range(18)}, "all ranks know of a planned change"
    for step in (steps[number][-1] for number in range(STEPS)):
        parts = {line.rank: line.parts for line in step.lines}
        done = [
            part for rank, each in parts.items() for turn, part in enumerate(each) if turn * step.size + rank < LOGICAL
        ]
        assert not step.whole or sorted(done) == list(range(LOGICAL)), "each sample once"
