"""The torchtitan recipe as users have it, without the stand-ins with which it runs on CPUs."""

import importlib.util
from pathlib import Path

import pytest
from gpus import needs
from killing import PATIENT, ROOT, Job, Outcome, differences, run_job
from recipes import tokens
from sharded_jobs import PRELOADED

pytestmark = [
    needs(2),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(importlib.util.find_spec("torchtitan") is None, reason="needs torchtitan==0.3.0"),
]
STEPS = 6
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 2},
    {"kind": "SIGKILL", "phase": "update", "rank": 0, "step": 4},
)


def trained(folder: Path, data: Path, **how: object) -> Outcome:
    recipe = "torchtitan/titan.py --module llama3 --config llama3_debugmodel --training.disable_cuda_graphs"
    recipe += " --parallelism.spmd_backend partial_dtensor --debug.deterministic"
    recipe += f" --training.seq_len 256 --training.steps {STEPS} --dataloader.dataset_path {data}"
    program = ROOT / "tests" / "support" / "recipe_program.py"
    shape = {"ranks": 2, "program": program, "torch": PRELOADED, "deadlines": PATIENT, "timeout_s": 800.0, **how}
    return run_job(folder, Job(steps=STEPS, environment={"RECIPE": recipe}, **shape))  # type: ignore[arg-type]


def test_torchtitan_goes_on_bit_for_bit_when_ranks_are_killed(tmp_path: Path) -> None:
    data = tokens(tmp_path / "text.tokens")

    calm, outcome = trained(tmp_path / "calm", data, spares=0), trained(tmp_path / "kills", data, faults=KILLS)

    assert calm.finished, calm.text[-3000:]
    assert outcome.finished, outcome.text[-3000:]
    assert outcome.fired == {0: 1, 1: 1}
    assert differences(outcome, calm) == []
