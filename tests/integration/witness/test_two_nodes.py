"""A job of two nodes that loses one whole: with a witness it goes on with the same bits, without one it stops."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from killing import PATIENT, PYTHONPATH, Job, differences, run_job
from ports import free_ports
from witnesses import NODE_LOST, witness

STEPS = 8

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]


def test_with_a_witness_the_node_that_is_left_trains_on_to_the_same_bits(tmp_path: Path) -> None:
    calm = run_job(tmp_path / "calm", Job(steps=STEPS, ranks=2, spares=0, deadlines=PATIENT, timeout_s=200.0))
    job = Job(
        steps=STEPS, nodes=2, ranks=1, faults=(NODE_LOST,), restart_launchers=False, deadlines=PATIENT, timeout_s=200.0
    )
    with witness(tmp_path) as voter:
        outcome = run_job(tmp_path / "lost", replace(job, arguments=("--witness", voter.address)))

    assert outcome.fired == {0: 1}
    assert outcome.codes == (0, -9), outcome.text[-3000:]
    assert differences(outcome, calm) == []
    assert (
        f"quorum: tolerates the loss of 1 of 2 launchers, with the witness at 127.0.0.1 port {voter.port}"
        in outcome.text
    )
    assert "quorum: tolerates the loss of 0 of 2 launchers" in outcome.text


def test_without_one_the_job_stops_within_its_deadline_and_says_why(tmp_path: Path) -> None:
    quick = "heartbeat=2.5,leave=2.6,ready=2.7,minority=2.8"
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    command = [sys.executable, "-m", "holdfast_runtime.launcher", "--preload", "json", "--deadlines", quick]
    command += ["--peers", peers, "--no-python"]
    launchers = [
        subprocess.Popen(
            [*command, "--node-rank", str(node), "--socket", str(tmp_path / f"{node}.sock"), "sleep", "600"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": PYTHONPATH, "HOLDFAST_TOKEN": "secret", "HOLDFAST_LOG_LEVEL": "debug"},
        )
        for node in range(2)
    ]
    try:
        assert launchers[0].stderr is not None
        said = read_until(launchers[0].stderr, "tolerates the loss")
        launchers[1].kill()
        said += launchers[0].communicate(timeout=100)[1]
    finally:
        for launcher in launchers:
            launcher.kill()
            launcher.wait(timeout=100)
            assert launcher.stderr is not None
            launcher.stderr.close()

    assert launchers[0].returncode == 1
    assert "quorum: tolerates the loss of 0 of 2 launchers; a witness adds one" in said
    few = "1 of 2 launchers that may vote and no witness are in reach, and 2 votes are needed"
    (last,) = [line for line in said.splitlines() if "the job ends: " in line]
    # On a busy machine the launcher may have been silent, or its rank lost, before it was killed.
    assert last.endswith(few)
    assert "node 1 is lost: " in said


def read_until(file: IO[str], text: str) -> str:
    """All lines up to the one that has this text."""
    said = ""
    for line in file:
        said += line
        if text in line:
            break
    return said
