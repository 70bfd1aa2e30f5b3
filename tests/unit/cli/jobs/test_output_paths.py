"""Files of a job's output, from what the controller, accounting and the job file have of it."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from accounting import sacct_line

from holdfast.cli.deployed import output_paths

HOST = "ip-10-1-0-4"
FORGOTTEN = (1, "slurm_load_jobs error: Invalid job id specified")


def paths(
    monkeypatch: pytest.MonkeyPatch, *, job: str, records: dict[str, str], shown: tuple[int, str] = FORGOTTEN
) -> list[tuple[str, str]]:
    """Those of a job; ``records`` are sacct's answers by job, ``shown`` scontrol's."""

    def run(_context: object, *, node: str, argv: list[str], **_: Any) -> Any:
        if argv[0] == "/bin/sh":
            return subprocess.run(argv, capture_output=True, text=True, check=False)
        if "scontrol" in argv:
            return SimpleNamespace(returncode=shown[0], stdout=shown[1], stderr=shown[1])
        if "sacct" in argv and "--allocations" in argv:
            return SimpleNamespace(returncode=0, stdout=records.get(argv[-1], ""), stderr="")
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr("holdfast.cli.deployed.slurm_jobs.run", run)
    monkeypatch.setattr("holdfast.cli.deployed.slurm_jobs.controller_hostname", lambda _: "head")
    context: Any = SimpleNamespace()
    return output_paths(context, job=job)


def test_a_pattern_with_a_width_that_the_controller_leaves_as_it_is_is_expanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "sbatch --array=1-3 -o arr-%A_%4a.log x"
    record = sacct_line(JobID="50_2", JobIDRaw="51", WorkDir="/fsx", SubmitLine=line)
    shown = f"JobId=51 ArrayJobId=50 ArrayTaskId=2\n   BatchHost={HOST}\n   StdOut=/fsx/arr-50_%4a.log"
    found = paths(monkeypatch, job="50_2", records={"50_2": record}, shown=(0, shown))
    assert found == [("/fsx/arr-50_0002.log", HOST)]


def test_a_chain_of_jobs_that_submit_their_own_copy_has_the_options_of_the_first_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.sbatch").write_text("#!/bin/bash\n#SBATCH --output=%x-%j.out\n")
    lines = {
        "12": f"sbatch --parsable {tmp_path}/a.sbatch",
        "13": "sbatch --dependency=singleton /var/spool/slurmd/job00012/slurm_script 2",
        "14": "sbatch --dependency=singleton /var/spool/slurmd/job00013/slurm_script 3",
    }
    records = {
        job: sacct_line(JobID=job, JobIDRaw=job, WorkDir=str(tmp_path), SubmitLine=line, JobName="chain")
        for job, line in lines.items()
    }
    assert paths(monkeypatch, job="14", records=records) == [(f"{tmp_path}/chain-14.out", HOST)]
