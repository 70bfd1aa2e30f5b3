"""
`srun holdfast-run` in one allocation of five nodes, one of them the spare, on a local cluster: a node is destroyed.

The job file is the shipped example, as it is and without what makes it survive.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from healing import Cluster
from submitted_jobs import SubmittedJobs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1200)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "bytelm"
FILE = "bytelm-allocation.sbatch"
LINE = "export HOLDFAST_SPARE=expand\n"
NODES, SPARES = 5, 1
TRAINING_AGAIN_S = 2.0
WITHOUT = "no spare until the job ends"


class Allocations:
    """Jobs of one allocation each, one after the other, on the same five workers."""

    def __init__(self, product: Any) -> None:
        self.product, self.cluster, self.jobs = product, Cluster(product), SubmittedJobs(product)
        self.folder = product.work / "bytelm"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))

    @contextmanager
    def trains(self, change: Callable[[str], str] = str) -> Iterator[str]:
        """Submit the example as changed, and yield the job once it trains with its spare."""
        began_ns = time.time_ns()
        self.cluster.until(self._all_idle, what="five idle workers", within_s=240)
        (self.folder / FILE).write_text(change((EXAMPLE / FILE).read_text()))
        words = (str(self.folder / FILE), "--prepare", str(EXAMPLE / "prepare.py"), "--json")
        arguments = ("--", "--steps", "1000000", "--checkpoint-every", "200")
        job = str(json.loads(self.product.run("submit", *words, *arguments).stdout)["job_id"])
        wanted = {"spare_ready", "job_progress"}
        try:
            self.cluster.until(
                lambda: wanted <= {one["kind"] for one in self.cluster.events(since_ns=began_ns)},
                what="a job that trains with a warm spare",
                within_s=180,
            )
            yield job
        finally:
            self.product.run("cancel", job)
            self.jobs.ended(job)

    def lose_a_node(self) -> dict[str, Any]:
        """Destroy one that has a rank and not the job file; its incident, once the job trains again."""
        node, began_ns = self.cluster.busy()[2], time.time_ns()
        self.product.run("kill-node", node)

        def again() -> dict[str, Any] | None:
            found = self.cluster.incident_of(node, since_ns=began_ns)
            return found if found and found["training_again_s"] is not None else None

        found: dict[str, Any] = self.cluster.until(again, what="training after the loss", within_s=120)
        # From the incident's start on, the command that destroys it runs too.
        lost, resumed = (self.cluster.kinds(kind, since_ns=began_ns)[0] for kind in ("launcher_lost", "job_resumed"))
        return {**found, "again_s": (resumed["time_ns"] - lost["time_ns"]) / 1e9}

    def first_line(self, job: str) -> str:
        lines = [line for line in self.jobs.output(job) if " holdfast-run: " in line]
        return lines[0].partition("holdfast-run: ")[2]

    def slurm(self, *argv: str) -> str:
        done = self.cluster.controller().run(list(argv), timeout_s=30)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def _all_idle(self) -> bool:
        return self.slurm("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * NODES


@pytest.fixture(scope="module")
def allocations(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Allocations]:
    product = new_product(tmp_path_factory.mktemp("allocations"))
    try:
        product.run("up", "local")
        yield Allocations(product)
    finally:
        product.run("down")
    assert not product.home.exists()


def too_late(found: dict[str, Any]) -> bool:
    """Fewer processors than the load has processes make it slower."""
    slower = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    print(
        f"\ntraining again {found['again_s']:.2f} s after the loss was seen, {found['training_again_s']:.2f} s after "
        f"the command, at {slower:.1f} processes a processor"
    )
    return bool(found["again_s"] > TRAINING_AGAIN_S * slower)


@pytest.mark.parametrize("shares_nodes", [False, True], ids=["exclusive", "nodes that others may share"])
def test_a_lost_node_costs_no_step_and_comes_back_as_the_spare(allocations: Allocations, shares_nodes: bool) -> None:
    with allocations.trains(
        lambda text: text.replace("--exclusive", "--cpus-per-task=96") if shares_nodes else text
    ) as job:
        host = allocations.slurm("squeue", "-h", "-j", job, "-o", "%B").strip()
        assert allocations.first_line(job) == (
            f"node 0: this allocation survives the loss of a node: yes, except of {host}, which runs the job file"
        )

        found = allocations.lose_a_node()

        assert (found["steps_lost"], found["steps_redone"]) == (0, 0)
        assert not too_late(found)
        strong = allocations.cluster.healed(found["node"], since_ns=found["started_ns"] - 1)
        print(f"the spare is back after {strong['at_strength_s']:.1f} s")
        output = allocations.jobs.output(job)
        assert sum(line.endswith("joins as the spare") for line in output) == 1, output
        assert not any(WITHOUT in line for line in output)
        assert allocations.jobs.rows(job)[0]["state"] == "RUNNING"


def test_without_the_line_status_and_the_job_say_that_there_is_no_spare_until_it_ends(allocations: Allocations) -> None:
    with allocations.trains(lambda text: text.replace(LINE, "")) as job:
        found = allocations.lose_a_node()

        assert (found["steps_lost"], found["steps_redone"]) == (0, 0)
        assert not too_late(found)
        (said,) = [line for line in allocations.jobs.output(job) if WITHOUT in line]
        assert said.endswith(f"{WITHOUT}; a job with the line '{LINE.strip()}' before srun gets the node back")
        allocations.cluster.until(
            lambda: WITHOUT in " ".join(allocations.product.run("status").stdout.split()),
            what=f"a status with: {WITHOUT}",  # events of a node come a second or two later
            within_s=30,
        )
        host = allocations.slurm("squeue", "-h", "-j", job, "-o", "%B").strip()
        asked = ("ssh", host, "--user", "ubuntu", "--", "holdfast-run", "status")
        assert WITHOUT in allocations.product.run(*asked).stdout


def test_without_no_kill_the_first_line_says_what_is_lost_and_slurm_ends_the_job(allocations: Allocations) -> None:
    def natural(text: str) -> str:
        return text.replace("#SBATCH --no-kill\n", "").replace("srun --no-kill ", "srun ").replace(LINE, "")

    with allocations.trains(natural) as job:
        assert allocations.first_line(job) == (
            "node 0: this allocation survives the loss of a node: no: Slurm ends it with its first lost node, and all "
            "steps since the last checkpoint; add #SBATCH --no-kill and srun --no-kill"
        )

        allocations.product.run("kill-node", allocations.cluster.busy()[2])

        allocations.cluster.until(
            lambda: "DUE TO NODE FAILURE" in allocations.jobs.output_so_far(job),
            what="the end of the job by Slurm",
            within_s=120,
        )
