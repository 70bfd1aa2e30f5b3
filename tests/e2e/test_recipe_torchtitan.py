"""
The torchtitan recipe loses ranks, and goes on in place with every bit of a run that lost none.

torchtitan is its own, from PyPI; on CPUs with the stand-ins of ``titan_on_cpu``.
"""

import importlib.util
import os
from pathlib import Path

import pytest
from killing import PATIENT, PYTHONPATH, ROOT, Job, Outcome, differences, run_job
from recipes import tokens
from sharded_jobs import PRELOADED

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("torchtitan", "triton"))),
        reason="needs torchtitan==0.3.0 and triton, with what they need",
    ),
]
STEPS = 6
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 2},
    {"kind": "SIGKILL", "phase": "update", "rank": 2, "step": 4},
)


def trained(folder: Path, flags: str, **how: object) -> Outcome:
    small = "--training.seq_len 16 --training.local_batch_size 1 --training.mixed_precision_param float32"
    recipe = f"torchtitan/titan.py --module llama3 --config llama3_debugmodel {small} --training.steps {STEPS}"
    recipe += f" --training.disable_cuda_graphs --parallelism.spmd_backend partial_dtensor {flags}"
    environment = {"RECIPE": recipe, "PYTHONPATH": os.pathsep.join((PYTHONPATH, os.environ.get("PYTHONPATH", "")))}
    program = ROOT / "tests" / "support" / "titan_on_cpu.py"
    shape = {"program": program, "torch": PRELOADED, "deadlines": PATIENT, "timeout_s": 800.0, **how}
    return run_job(folder, Job(steps=STEPS, environment=environment, **shape))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "flags", ["--parallelism.data_parallel_replicate_degree 2", "--parallelism.data_parallel_shard_degree 4"]
)
def test_torchtitan_goes_on_bit_for_bit_when_ranks_are_killed(tmp_path: Path, flags: str) -> None:
    flags += f" --dataloader.dataset_path {tokens(tmp_path / 'text.tokens')}"

    calm = trained(tmp_path / "calm", flags, spares=0)
    outcome = trained(tmp_path / "kills", flags, faults=KILLS)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert sorted(calm.steps) == list(range(STEPS))
    assert differences(outcome, calm) == []
