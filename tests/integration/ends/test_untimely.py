"""A rank that is lost at a bad moment of a recovery costs no deadline."""

import os
from pathlib import Path

import pytest
from killing import PYTHONPATH, QUICK, Job, run_job

PROGRAM = Path(__file__).with_name("untimely_program.py")
PATIENT = QUICK.replace("leave=1.2,ready=1.6,minority=3", "leave=15,ready=16,minority=17").replace(
    "progress=2.5", "progress=60"
)


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_one_that_is_lost_after_it_has_told_its_address_holds_up_nobody(tmp_path: Path) -> None:
    loss = {"kind": "SIGKILL", "phase": "bucket:1", "rank": 1, "step": 3}

    environment = {"PYTHONPATH": os.pathsep.join((PYTHONPATH, str(PROGRAM.parents[1])))}
    job = Job(
        steps=8,
        program=PROGRAM,
        spares=2,
        faults=(loss,),
        deadlines=PATIENT,
        environment=environment,
        timeout_s=200.0,
    )

    outcome = run_job(tmp_path, job)

    assert outcome.finished, outcome.text[-3000:]
    assert (tmp_path / "fired" / "0.told").exists()
    assert "has not left within" not in outcome.text
