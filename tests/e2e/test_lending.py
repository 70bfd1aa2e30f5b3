"""
An elastic job on a real Slurm of six nodes: asked for other sizes, and contended for.

It is asked for three nodes and for five again; then a job of a higher priority needs three of the six, gets them from
what the controller's agent runs, and ends. All the while it trains: each step once, with the bits of a calm run.
"""

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_slurm import GIVES_WAY, BareSlurm, bare_slurm
from elastic_jobs import PROGRAM, Step, elastic, written, wrong
from killing import PATIENT, PYTHONPATH, run_job
from ports import free_ports
from sharded_jobs import PRELOADED
from waiting import eventually

from holdfast_agent.lending import Lender
from holdfast_agent.slurm import Program
from holdfast_runtime.launcher.node import ask

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1500)]
NODES, MOST, FEWEST = 6, 5, 3
NIGHT = """#!/bin/bash
#SBATCH --job-name=night
#SBATCH --array=0-4
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --nice=1000
#SBATCH --comment=elastic=2:5
#SBATCH --open-mode=append
#SBATCH --output={folder}/launchers.log
export ELASTIC=5 SNAPSHOT_EVERY=never PYTHONDONTWRITEBYTECODE=1 HOLDFAST_TOKEN=night
export PYTHONPATH={path} HOLDFAST_EVENTS={folder}/events.jsonl
{python} -m holdfast_runtime.launcher --nnodes 2:5 --nproc-per-node 1 --spares 0 --deadlines {deadlines} \\
    --rdzv-id night --preload {preload},holdfast_runtime.inprocess --max-restarts 40 --peers {peers} \\
    --node-rank "$SLURM_ARRAY_TASK_ID" --socket "{folder}/$SLURM_ARRAY_TASK_ID.sock" \\
    {program} {folder} 100000 0.3 &
{gives_way}"""


@pytest.fixture
def slurm() -> Iterator[BareSlurm]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, bare_slurm(Path(folder), nodes=NODES) as made:
        yield made


def test_an_elastic_job_gives_nodes_to_a_job_of_a_higher_priority_and_grows_back(
    slurm: BareSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, said = tmp_path / "night", list[str]()
    folder.mkdir()
    (tmp_path / "night.sbatch").write_text(
        NIGHT.format(
            folder=folder,
            path=f"{PYTHONPATH}:{PROGRAM.parent}",
            python=sys.executable,
            deadlines=PATIENT,
            preload=PRELOADED,
            peers=",".join(f"127.0.0.1:{port}" for port in free_ports(MOST)),
            program=PROGRAM,
            gives_way=GIVES_WAY,
        )
    )
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    lender = Lender(program=Program(), notice_s=60, say=said.append)
    lender.start()
    try:
        slurm.run(["sbatch", str(tmp_path / "night.sbatch")])
        until_sizes(folder, MOST)
        assert ask(folder / "0.sock", say=f"scale {FEWEST}") == {"refused": ""}
        until_sizes(folder, MOST, FEWEST)
        assert ask(folder / "0.sock", say=f"scale {MOST}") == {"refused": ""}
        until_sizes(folder, MOST, FEWEST, MOST)

        asked = time.time()
        wrap = f"date +%s.%N > {tmp_path}/began; sleep 25; date +%s.%N > {tmp_path}/ended"
        slurm.run(["sbatch", "--nodes=3", "--exclusive", "--output=/dev/null", "--wrap", wrap])
        eventually((tmp_path / "ended").exists, "the end of the urgent job", within_s=200)
        until_sizes(folder, MOST, FEWEST, MOST, FEWEST, MOST)
    finally:
        lender.stop()

    began, ended = (float((tmp_path / name).read_text()) for name in ("began", "ended"))
    whole = [step for _, steps in sorted(written(folder).items()) for step in steps if step.whole]
    grown = next(begin(step) for step in whole if step.size == MOST and begin(step) > ended)
    gaps = [begin(after) - end(before) for before, after in itertools.pairwise(whole) if before.size != after.size]
    last = max(step.number for step in whole)
    print(
        f"\nbegan after {began - asked:.1f} s, grown back after {grown - ended:.1f} s, without a step at most "
        f"{max(gaps):.2f} s in {len(gaps)} changes, {last} steps"
    )
    assert len(said) == MOST - FEWEST, said
    assert all("gets SIGTERM" in text for text in said), said
    steps = written(folder)
    assert [len(steps[number]) for number in range(last)] == [1] * last, "nothing is done again"
    calm = tmp_path / "calm"
    outcome = run_job(calm, elastic(sizes="", steps=last, nodes=MOST, logical=MOST, timeout_s=600))
    assert outcome.finished, outcome.text[-3000:]
    assert wrong(folder, calm, steps=last) == []
    assert began - asked <= 15
    assert grown - ended <= 30


def sizes(folder: Path) -> list[int]:
    """Sizes of the steps, one after the other."""
    steps = [step for _, found in sorted(written(folder).items()) for step in found if step.whole]
    return [size for size, _ in itertools.groupby(step.size for step in steps)]


def until_sizes(folder: Path, *wanted: int) -> None:
    """Until the job has had exactly these."""
    eventually(lambda: sizes(folder) == [*wanted], f"sizes {wanted}", within_s=200)


def begin(step: Step) -> float:
    """When it began."""
    return min(line.began_s for line in step.lines)


def end(step: Step) -> float:
    """When it ended."""
    return max(line.time_s for line in step.lines)
