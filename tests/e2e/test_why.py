"""``holdfast why`` on one local cluster: jobs of three ranks stand still, and the culprit is named within 10 s."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from submitted_jobs import SubmittedJobs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1200)]

ANSWERS_WITHIN_S = 10.0
BEGINS_WITHIN_S = 180.0
RUNTIME = """#!/bin/bash
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
srun holdfast-run --nproc-per-node 1 --deadlines frozen=300,silence=300,progress=900 why_program.py "$1"
"""
ARRAY = """#!/bin/bash
#SBATCH --array=0-2
#SBATCH --ntasks=1
#SBATCH --exclusive
holdfast-run --nnodes 3 --nproc-per-node 1 why_program.py "$1"
"""
TORCHRUN = """#!/bin/bash
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=3 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint="$head:29500" \\
    why_program.py "$1" torchrun
"""


class Jobs(SubmittedJobs):
    def __init__(self, product: Any) -> None:
        super().__init__(product)
        self.folder = product.work / "jobs"
        self.folder.mkdir()
        shutil.copy(Path(__file__).with_name("why_program.py"), self.folder)
        for name, text in {"runtime": RUNTIME, "torchrun": TORCHRUN, "array": ARRAY}.items():
            (self.folder / f"{name}.sbatch").write_text(text)

    def submit(self, name: str, *words: str) -> str:
        done = self.product.run("submit", str(self.folder / f"{name}.sbatch"), "--json", *words)
        return str(json.loads(done.stdout)["job_id"])

    def begun(self, name: str, fault: str) -> str:
        """Submit a job, and return its number once its fault has begun."""
        job = self.submit(name, "--", fault)
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while f"begins: {fault}" not in (text := self.output_so_far(job)):
            assert time.monotonic() < deadline, text
            time.sleep(1.0)
        return job

    def why(self, job: str) -> dict[str, Any]:
        began_s = time.monotonic()
        done = self.product.run("why", job, "--json", check=False)
        took_s = time.monotonic() - began_s
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert took_s < ANSWERS_WITHIN_S, f"{took_s:.1f} s: {found['summary']}"
        assert done.returncode == (1 if found["culprits"] else 0), done.stderr
        return found

    def why_at_last(self, job: str, *, within_s: float = 90.0) -> dict[str, Any]:
        """Findings once a culprit is named: a rank that works alone is none before its usual time has passed."""
        deadline = time.monotonic() + within_s
        while not (found := self.why(job))["culprits"]:
            assert found["verdict"] in ("runs", "waits", "unknown"), found
            assert time.monotonic() < deadline, json.dumps(found, indent=1)
            time.sleep(2.0)
        return found

    def hosts(self) -> list[str]:
        nodes = self.product.status()["nodes"]
        return [str(one["hostname"]) for one in nodes if one["instance_group"] == "workers"]

    def controller(self, *argv: str) -> str:
        nodes = self.product.status()["nodes"]
        host = next(one["hostname"] for one in nodes if one["instance_group"] == "controller")
        return str(self.product.run("ssh", host, "--", *argv).stdout)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Jobs]:
    product = new_product(tmp_path_factory.mktemp("why"))
    try:
        product.run("up", str(product.environment(workers=3, spares=0)))
        yield Jobs(product)
    finally:
        product.run("down")
    assert not product.home.exists()


@pytest.mark.parametrize(
    ("program", "fault", "kinds"),
    [
        ("runtime", "stop", {"stopped"}),
        ("runtime", "loop", {"loop"}),
        ("runtime", "loader", {"loader"}),
        ("runtime", "left-out", {"sleeps"}),
        ("torchrun", "stop", {"stopped"}),
        ("torchrun", "loop", {"loop"}),
        ("torchrun", "loader", {"loader", "sleeps"}),
        ("torchrun", "left-out", {"sleeps"}),
    ],
)
def test_a_job_that_stands_still_has_its_culprit_named(jobs: Jobs, program: str, fault: str, kinds: set[str]) -> None:
    job = jobs.begun(program, fault)
    try:
        found = jobs.why_at_last(job)
    finally:
        jobs.product.run("cancel", job)
    (culprit,) = found["culprits"]

    assert (culprit["rank"], culprit["kind"] in kinds) == (1, True), json.dumps(found, indent=1)
    assert culprit["node"] in jobs_nodes(found)
    assert sorted(one["rank"] for one in found["waiting"]) == [0, 2]
    assert found["next"]
    if program == "runtime":
        assert found["stands_since"]
        assert found["last_step"].startswith("step ")
    if (program, fault) == ("runtime", "loop"):
        assert "why_program.py" in found["summary"]
        assert "in spin" in found["summary"]


def jobs_nodes(found: dict[str, Any]) -> set[str]:
    return {one["node"] for one in (*found["waiting"], *found["culprits"])}


def test_an_evaluation_on_one_rank_is_nobodys_fault(jobs: Jobs) -> None:
    job = jobs.begun("runtime", "evaluation")
    try:
        time.sleep(25.0)
        found = jobs.why(job)
    finally:
        jobs.product.run("cancel", job)

    assert (found["verdict"], found["culprits"]) == ("waits", [])
    assert "evaluates" in found["summary"]


def test_a_task_of_a_healthy_array_is_seen_with_the_others(jobs: Jobs) -> None:
    job = jobs.submit("array", "--", "none")
    deadline = time.monotonic() + BEGINS_WITHIN_S
    try:
        while (found := jobs.why(f"{job}_0"))["step"] is None:
            assert found["culprits"] == [], found
            assert time.monotonic() < deadline, found
            time.sleep(2.0)
    finally:
        jobs.product.run("cancel", job)

    assert (found["job"], found["verdict"], found["culprits"]) == (job, "runs", [])


def test_a_stall_is_an_incident_from_its_last_step_on(jobs: Jobs) -> None:
    job = jobs.begun("runtime", "loop")
    began_s = time.time()
    try:
        time.sleep(65.0)
        rows = json.loads(jobs.product.run("incidents", "--json").stdout)
    finally:
        jobs.product.run("cancel", job)
    (row,) = [one for one in rows if one["fault"] == "job-stall" and one["job"] == job]

    assert row["state"] == "open"
    assert row["started_ns"] / 1e9 < began_s
    assert row["verdict_s"] > 60


def test_a_job_that_waits_has_its_reason_and_its_node_named(jobs: Jobs) -> None:
    holder = jobs.submit("runtime", "--exclusive", "--", "none")
    waits = jobs.submit("runtime", "--exclusive", "--", "none")
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while holder not in (found := jobs.why(waits))["summary"]:
        assert time.monotonic() < deadline, found
        time.sleep(1.0)
    assert (found["verdict"], found["culprits"]) == ("waits", [])
    jobs.product.run("cancel", holder, waits)

    host = jobs.hosts()[-1]
    jobs.controller("scontrol", "update", f"NodeName={host}", "State=drain", "Reason=bad-dimm")
    waits = jobs.submit("runtime", "--exclusive", "--", "none")
    try:
        deadline = time.monotonic() + BEGINS_WITHIN_S
        while not (found := jobs.why(waits))["culprits"]:
            assert time.monotonic() < deadline, found
            time.sleep(1.0)
        (culprit,) = found["culprits"]
        assert (culprit["kind"], culprit["node"]) == ("drained", host)
        assert "bad-dimm" in culprit["text"]
    finally:
        jobs.product.run("cancel", waits)
        jobs.controller("scontrol", "update", f"NodeName={host}", "State=resume")


def test_without_a_job_the_command_is_refused_with_what_to_do(jobs: Jobs) -> None:
    done = jobs.product.run("why", check=False)

    assert (done.returncode, "no job runs or waits" in done.stderr) == (2, True), done.stderr
