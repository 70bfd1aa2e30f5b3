"""A cluster of two workers, as it is deployed: the witness is killed, then a worker destroyed under a job of both."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killing import PROGRAM, Job, Outcome, run_job

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1200)]

STEPS = 1500
ARRAY = f"""#!/bin/bash
#SBATCH --array=0-1
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=/fsx/checkpoints/two-%A-%a.out
. /etc/profile.d/holdfast.sh
export PYTHONDONTWRITEBYTECODE=1 HOLDFAST_LOG_LEVEL=debug
mkdir -p /fsx/checkpoints/two
[ ! -e /fsx/checkpoints/two/finished ] || exit 0
python -m holdfast_runtime.launcher --nnodes 2 --nproc-per-node 1 --spares 1 \\
    --deadlines heartbeat=5,leave=6,ready=8,minority=20 \\
    "$SLURM_SUBMIT_DIR/runtime_program.py" /fsx/checkpoints/two {STEPS} 0.1 && touch /fsx/checkpoints/two/finished
"""


def test_a_job_of_two_nodes_goes_on_when_the_witness_is_killed_and_then_a_node_destroyed(
    product: Any, tmp_path: Path
) -> None:
    calm = run_job(tmp_path / "calm", Job(steps=STEPS, ranks=2, spares=0, timeout_s=300.0))
    assert calm.finished, calm.text[-2000:]
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "two.sbatch").write_text(ARRAY)
    (folder / "runtime_program.py").write_bytes(PROGRAM.read_bytes())
    product.run("up", str(product.environment(workers=2, spares=0)))
    controller = next(node["hostname"] for node in product.status()["nodes"] if node["instance_group"] == "controller")

    def on(node: str, command: str) -> str:
        return str(product.run("ssh", node, "--", command, check=False).stdout)

    told = product.run("submit", str(folder / "two.sbatch"), "--json").stdout
    job = json.loads(told[told.index("{") :])["job_id"]
    until(lambda: steps_of(on(controller, "cat /fsx/checkpoints/two/rank*.jsonl")) > 20)

    def lines_with(words: str) -> int:
        return on(controller, f"cat /fsx/checkpoints/two-{job}-*.out").count(words)

    until(lambda: lines_with("quorum: tolerates the loss of 1 of 2 launchers, with the witness at") >= 2)

    def pid_of_witness() -> str:
        return on(controller, "systemctl show --property MainPID --value holdfast-witness").strip()

    witness = pid_of_witness()
    on(controller, f"kill -9 {int(witness)}")
    until(lambda: lines_with("witness: lost: ") >= 2)
    until(lambda: lines_with(": the witness is back") >= 2)
    until(lambda: lines_with("quorum: tolerates the loss of 1 of 2 launchers, with the witness at") >= 4)
    assert on(controller, "systemctl show --property MainPID --value holdfast-witness").strip() not in (
        "",
        "0",
        witness,
    )
    assert "node 1 is lost" not in on(controller, f"cat /fsx/checkpoints/two-{job}-0.out")
    before = steps_of(on(controller, "cat /fsx/checkpoints/two/rank*.jsonl"))
    until(lambda: steps_of(on(controller, "cat /fsx/checkpoints/two/rank*.jsonl")) > before + 20)
    assert before < STEPS - 100, "the job was over before a node could be destroyed under it"

    victim = on(controller, f"squeue -h -r -j {job}_1 -o %N").strip()
    product.run("kill-node", victim)
    until(lambda: "finished" in on(controller, "ls /fsx/checkpoints/two"))

    said = on(controller, f"cat /fsx/checkpoints/two-{job}-*.out")
    lines = on(controller, 'cd /fsx/checkpoints/two; for f in rank*.jsonl; do sed "s/^/$f /" $f; done')
    assert "node 1 is lost" in said
    assert differing(lines, calm) == []


def steps_of(lines: str) -> int:
    """The newest step that any rank has committed."""
    return max((json.loads(line)["step"] for line in lines.splitlines() if line.endswith("}")), default=0)


def differing(lines: str, calm: Outcome) -> list[str]:
    """Steps whose bits are not those of the calm run, and steps that nobody has made."""
    found, seen = [], set()
    for line in lines.splitlines():
        name, _, text = line.partition(" ")
        if not text.endswith("}"):
            continue
        value, rank = json.loads(text), int(name.removeprefix("rank").removesuffix(".jsonl"))
        seen.add(value["step"])
        if calm.steps[value["step"]][rank] != (value["loss"], value["digest"]):
            found.append(f"step {value['step']}, rank {rank}")
    return [*found, *(f"step {step} is missing" for step in calm.steps if step not in seen)]


def until(condition: Callable[[], bool], *, within_s: float = 400.0) -> None:
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.5)
