"""The log of a job of five launchers is written once: few lines at the start and per recovery, a summary at the end."""

import re
from pathlib import Path

import pytest
from killing import PATIENT, Job, run_job

pytestmark = pytest.mark.e2e

AT_THE_START, PER_RECOVERY = 12, 6


def test_a_node_of_five_is_lost_and_the_leader_alone_tells_it(tmp_path: Path) -> None:
    faults = ({"kind": "SIGKILL", "phase": "bucket:0", "rank": 2, "step": 6, "victims": ["launcher"]},)
    shape = {"nodes": 5, "ranks": 1, "spares": 0, "spare_nodes": 1, "restart_launchers": False, "deadlines": PATIENT}
    quiet = {"HOLDFAST_LOG_LEVEL": "info", "PET_METRICS_FILE": str(tmp_path / "last-metrics")}

    outcome = run_job(tmp_path, Job(steps=12, faults=faults, environment=quiet, **shape))  # type: ignore[arg-type]

    lines = [line for line in outcome.text.splitlines() if " holdfast-run: " in line]
    (lost,) = [
        number
        for number, line in enumerate(lines)
        if "starting generation" in line and "local ranks are ready" not in line
    ]
    start, recovery = lines[:lost], lines[lost:-1]
    assert outcome.fired == {0: 1}
    assert 0 < len(start) <= AT_THE_START, start
    assert 0 < len(recovery) <= PER_RECOVERY, recovery
    assert {line.split("holdfast-run: ")[1].partition(":")[0] for line in lines} == {"node 0"}
    assert re.search(r"finished: 12 steps in .*, goodput .*, 1 fault survived, 0 steps done again", lines[-1])
    assert "RuntimeWarning" not in outcome.text
    assert re.search(r"^holdfast_step\{.*\} 12$", (tmp_path / "last-metrics").read_text(), re.MULTILINE)
