"""A sharded job with a mistake in it ends before its first step, and the last line says what to do."""

from pathlib import Path

import pytest
from killing import ROOT, run_job
from sharded_jobs import sharded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PROGRAM = ROOT / "tests" / "integration" / "sharded_mistakes_program.py"


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("holder", "attribute 'line' of a __main__.Tracker. Keep the DeviceMesh and ask it for its group at each use"),
        ("other order", "made other groups, or in another order, than the other ranks"),
        ("other seeds", "at the start; seed all ranks the same before the model is made"),
        ("never", "snapshot_every is 0; allowed: 1 or more updates"),
        ("long", "snapshot_every is 9 and the run has 8 updates"),
    ],
)
def test_a_mistake_ends_the_job_with_one_message(tmp_path: Path, mistake: str, said: str) -> None:
    outcome = run_job(tmp_path, sharded("shard2", steps=8, spares=0, program=PROGRAM, environment={"MISTAKE": mistake}))

    assert outcome.codes == (1,)
    last = [line for line in outcome.text.splitlines() if "the job ends" in line][-1]
    assert said in last
    assert "it has trained" not in outcome.text
    assert "Traceback" not in outcome.text or mistake == "other seeds"
