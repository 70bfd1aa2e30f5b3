"""One training, under local Slurm and under local EKS: a rank killed, a node destroyed, and every step the same."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from distributions import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.slurm,
    pytest.mark.kubernetes,
    pytest.mark.timeout(1200),
]

EXAMPLE = ROOT / "examples" / "bytelm"
STEPS = 100
NODE_LOST_AFTER = 50
NEXT_STEP_AFTER_RANK_S, NEXT_STEP_AFTER_NODE_S = 1.0, 2.0


@dataclass(frozen=True, kw_only=True)
class Told:
    """What one orchestrator's job did."""

    steps: list[dict[str, Any]]
    rank_s: float
    """From the death of a rank to the next step that all have finished."""
    node_s: float

    def seen(self) -> list[tuple[int, str, str]]:
        return [(one["step"], one["loss"], one["digest"]) for one in self.steps]


def test_every_step_is_the_same_under_slurm_and_under_kubernetes(
    product: Any, kubernetes_product: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = traced_example(tmp_path / "bytelm")

    product.run("up", "local")
    slurm = trained(product, folder / "bytelm-resilient.sbatch")
    product.run("down")
    kubernetes_product.run("up", str(kubernetes_product.kubernetes_environment()))
    kubernetes = trained(kubernetes_product, folder / "bytelm-resilient.yaml")

    with capsys.disabled():
        for name, told in {"Slurm": slurm, "Kubernetes": kubernetes}.items():
            print(f"\n{name}: next step {told.rank_s:.2f} s after a rank, {told.node_s:.2f} s after a node")
    assert [one[0] for one in slurm.seen()] == list(range(STEPS))
    assert slurm.seen() == kubernetes.seen()
    for told in (slurm, kubernetes):
        assert told.rank_s < NEXT_STEP_AFTER_RANK_S
        assert told.node_s < NEXT_STEP_AFTER_NODE_S


def traced_example(folder: Path) -> Path:
    """The example's folder, with the program that writes each step down in the place of its own."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "support" / "traced_training.py", folder / "traced.py")
    for name in ("bytelm-resilient.sbatch", "bytelm-resilient.yaml"):
        text = (folder / name).read_text()
        assert "train_resilient.py" in text
        text = text.replace("train_resilient.py", "traced.py")
        (folder / name).write_text(text.replace('--checkpoints "$run"', f'--checkpoints "$run" --steps {STEPS}'))
    return folder


def trained(product: Any, file: Path) -> Told:
    """The job from its submission to its end, with a node destroyed under it."""
    prepare = str(EXAMPLE / "prepare.py")
    job = json.loads(product.run("submit", str(file), "--prepare", prepare, "--json").stdout)["job_id"]
    eventually(lambda: len(steps(product)) > NODE_LOST_AFTER, within_s=300.0)
    started = [one for one in events(product, job) if one["kind"] in ("job_started", "job_resumed")]
    product.run("kill-node", started[-1]["detail"]["nodes"].split(",")[-1])
    eventually(lambda: any(one["kind"] == "job_finished" for one in events(product, job)), within_s=300.0)
    (injected,) = [one for one in events(product, "") if one["kind"] == "fault_injected"]
    found = steps(product)
    (marker,) = product.home.glob("fsx/*/checkpoints/*/rank-killed")
    return Told(
        steps=found,
        rank_s=seconds_to_next(found, int(marker.read_text())),
        node_s=seconds_to_next(found, injected["time_ns"]),
    )


def seconds_to_next(found: list[dict[str, Any]], at_ns: int) -> float:
    """
    To the first step after the longest pause around that time.

    Steps that others finish before anybody notices are no recovery.
    """
    later = [one["time_ns"] for one in found if one["time_ns"] > at_ns]
    pauses = [(after - before, after) for before, after in zip([at_ns, *later[:5]], later[:6], strict=False)]
    return float(max(pauses)[1] - at_ns) / 1e9


def steps(product: Any) -> list[dict[str, Any]]:
    """Those that are written down, in the order of their numbers."""
    found = []
    for trace in product.home.glob("fsx/*/checkpoints/*/trace.jsonl"):
        found += [json.loads(line) for line in trace.read_text().splitlines()]
    return sorted(found, key=lambda one: one["step"])


def events(product: Any, job: str) -> list[dict[str, Any]]:
    chosen = ["--job", job] if job else []
    return [json.loads(line) for line in product.run("events", "--json", *chosen).stdout.splitlines()]
