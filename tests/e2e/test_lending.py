"""
An elastic job on a local Slurm cluster of six nodes: asked for other sizes, and contended for.

It is asked for three nodes and for five again; then a job of a higher priority needs three of the six, gets them by the
controller's agent, and ends. All the while it trains: each step once, with the bits of a run that kept its size.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from elastic_jobs import PROGRAM, elastic, written, wrong
from killing import ROOT, run_job
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(2400)]
NIGHT = """#!/bin/bash
#SBATCH --job-name=night
#SBATCH --array=0-4
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --nice=1000
#SBATCH --comment=elastic=2:5
#SBATCH --open-mode=append
#SBATCH --output=/fsx/checkpoints/night-%A-%a.out
. /etc/profile.d/holdfast.sh
export PYTHONDONTWRITEBYTECODE=1 ELASTIC=5 SNAPSHOT_EVERY=never PYTHONPATH="$SLURM_SUBMIT_DIR:${PYTHONPATH:-}"
mkdir -p /fsx/checkpoints/night
python -m holdfast_runtime.launcher --nnodes 2:5 --nproc-per-node 1 --deadlines heartbeat=10,leave=11,ready=12 \\
    "$SLURM_SUBMIT_DIR/elastic_program.py" /fsx/checkpoints/night 100000 0.3 &
launcher=$!
trap 'kill -TERM "$launcher"' TERM
wait "$launcher"
code=$?
if [ "$code" -gt 128 ]; then
    wait "$launcher"
    code=$?
fi
if [ "$code" -eq 75 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
"""
URGENT = (
    "date +%s.%N > /fsx/checkpoints/asked; cd /fsx/checkpoints; sbatch --nodes=3 --exclusive --output=urgent.out "
    "--wrap 'date +%s.%N > /fsx/checkpoints/began; sleep 25; date +%s.%N > /fsx/checkpoints/ended'"
)


class Cluster:
    """The product, and the job's lines as they come."""

    def __init__(self, product: Any, folder: Path) -> None:
        self.product, self.folder = product, folder
        nodes = product.status()["nodes"]
        self.controller = next(node["hostname"] for node in nodes if node["instance_group"] == "controller")

    def on_controller(self, command: str) -> str:
        return str(self.product.run("ssh", self.controller, "--", "/bin/sh", "-c", command, check=False).stdout)

    def lines(self) -> dict[int, Any]:
        """What the ranks wrote, by step."""
        text = self.on_controller('cd /fsx/checkpoints/night; for f in rank*.jsonl; do sed "s/^/$f /" "$f"; done')
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            with (self.folder / name).open("a") as file:
                file.write(f"{value}\n")
        return written(self.folder)

    def sizes(self) -> list[int]:
        """Sizes of its steps, one after the other."""
        found: list[int] = []
        for _, steps in sorted(self.lines().items()):
            for step in steps:
                if step.whole and found[-1:] != [step.size]:
                    found.append(step.size)
        return found

    def until_sizes(self, *sizes: int) -> None:
        """Until the job has had exactly these."""
        eventually(lambda: self.sizes() == [*sizes], f"sizes {sizes}", within_s=300)

    def moment(self, name: str) -> float:
        """What a file of a moment says; 0 while there is none."""
        return float(self.on_controller(f"cat /fsx/checkpoints/{name} 2>/dev/null") or 0)


def test_an_elastic_job_gives_nodes_to_a_job_of_a_higher_priority_and_grows_back(product: Any, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "night.sbatch").write_text(NIGHT)
    for source in (PROGRAM, ROOT / "tests" / "support" / "sharded_model.py"):
        (folder / source.name).write_bytes(source.read_bytes())
    slurm = {"config_strategy": "Managed", "lending": True}
    product.run("up", str(product.environment(workers=6, spares=0, slurm=slurm)))
    told = product.run("submit", str(folder / "night.sbatch"), "--json").stdout
    job = json.loads(told[told.index("{") :])["job_id"]
    cluster = Cluster(product, tmp_path / "lines")
    cluster.until_sizes(5)

    product.run("scale", job, "3")
    cluster.until_sizes(5, 3)
    product.run("scale", job, "5")
    cluster.until_sizes(5, 3, 5)

    cluster.on_controller(URGENT)
    eventually(lambda: cluster.moment("ended"), "the end of the urgent job", within_s=300)
    cluster.until_sizes(5, 3, 5, 3, 5)
    steps = cluster.lines()
    cluster.on_controller(f"scancel {job}")

    asked, began, ended = (cluster.moment(name) for name in ("asked", "began", "ended"))
    whole = [step for number in sorted(steps) for step in steps[number] if step.whole]
    grown = next(min(line.began_s for line in step.lines) for step in whole if step.size == 5 and before(step) > ended)
    longest = max(after - end for end, after in zip(map(end_of, whole), map(before, whole[1:]), strict=False))
    print(
        f"\nbegan after {began - asked:.1f} s, grown back after {grown - ended:.1f} s, at most {longest:.2f} s no step"
    )
    agent = cluster.on_controller("journalctl -u holdfast-agent")
    assert len(re.findall(r"is told to leave", agent)) == 2, agent[-3000:]
    assert "did not leave" not in agent
    last = max(step.number for step in whole)
    assert [len(steps[number]) for number in range(last)] == [1] * last, "nothing is done again"
    calm = tmp_path / "calm"
    outcome = run_job(calm, elastic(sizes="", steps=last + 1, nodes=5, logical=5, timeout_s=900))
    assert outcome.finished, outcome.text[-3000:]
    assert wrong(cluster.folder, calm, steps=last) == []
    assert began - asked <= 15
    assert grown - ended <= 30


def before(step: Any) -> float:
    """When a step began."""
    return float(min(line.began_s for line in step.lines))


def end_of(step: Any) -> float:
    """When it ended."""
    return float(max(line.time_s for line in step.lines))
