"""A sharded job with a mistake in it ends before its first step, and the last line says what to do."""

from pathlib import Path

import pytest
from killing import ROOT, differences, run_job
from sharded_jobs import sharded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PROGRAM = ROOT / "tests" / "integration" / "sharded_mistakes_program.py"
OF_THE_SCRIPT = ("other seeds", "second")
"""These raise where the script is, so that its traceback says which line it was."""


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("holder", "attribute 'line' of a __main__.Tracker. Keep the DeviceMesh and ask it for its group at each use"),
        ("reference", "Bilinear is sharded by fully_shard, and not in the model that Run has"),
        ("other order", "made other groups, or in another order, than the other ranks"),
        ("other seeds", "at the start; seed all ranks the same before the model is made"),
        ("never", "snapshot_every is 0; allowed: 1 or more updates"),
        ("long", "snapshot_every is 9 and the run has 8 updates"),
        ("early", "call holdfast_runtime.init_process_group() in place of torch.distributed.init_process_group()"),
        ("not ours", "call holdfast_runtime.init_process_group() before its mesh and fully_shard"),
        ("replicas with a group", "delete torch.distributed.init_process_group(): Run connects the ranks"),
        ("second", "put both models into one torch.nn.ModuleDict, and their parameters into one optimizer"),
    ],
)
def test_a_mistake_ends_the_job_with_one_message(tmp_path: Path, mistake: str, said: str) -> None:
    outcome = run_job(tmp_path, sharded("shard2", steps=8, spares=0, program=PROGRAM, environment={"MISTAKE": mistake}))

    assert outcome.codes == (1,)
    last = [line for line in outcome.text.splitlines() if "the job ends" in line][-1]
    assert said in last
    assert "it has trained" not in outcome.text
    assert "Traceback" not in outcome.text or mistake in OF_THE_SCRIPT


@pytest.mark.parametrize(("how_often", "ends"), [("once", False), ("always", True)])
def test_a_newcomer_whose_model_cannot_be_made_is_followed_by_the_next_spare(
    tmp_path: Path, how_often: str, ends: bool
) -> None:
    lost = {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 4}
    environment = {"MISTAKE": f"build {how_often}"}

    outcome = run_job(
        tmp_path, sharded("shard2", steps=8, spares=2, faults=(lost,), program=PROGRAM, environment=environment)
    )

    assert outcome.fired == {0: 1}
    assert (tmp_path / "1.failed").exists()
    assert "the weights are not there" in outcome.text
    assert outcome.codes == ((1,) if ends else (0,))


def test_a_twin_that_is_lost_while_it_gives_is_followed_by_the_next_twin(tmp_path: Path) -> None:
    lost = {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 4}
    giving = {"kind": "SIGKILL", "phase": "copy-out", "step": 4}

    calm = run_job(tmp_path / "calm", sharded("replicate3", steps=8, spares=0))
    outcome = run_job(tmp_path / "lost", sharded("replicate3", steps=8, spares=2, faults=(lost, giving)))

    assert outcome.fired == {0: 1, 1: 1}
    assert outcome.finished, outcome.text[-3000:]
    assert differences(outcome, calm) == []
