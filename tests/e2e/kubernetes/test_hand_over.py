"""
A node of a job of pods goes bad: the agent in one pod tells the launcher in another, and no step is lost.

They meet at the node socket, which both pods have of their node, and the agent asks the kernel who it is that speaks.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from healing import Cluster, figures, untouched

from distributions import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1200)]

EXAMPLE = ROOT / "examples" / "bytelm"


def endless(folder: Path) -> Path:
    """The example, which trains until the test is over."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "bytelm-resilient.yaml"
    given = '--checkpoints "$run"'
    text = path.read_text()
    assert given in text
    path.write_text(text.replace(given, f"{given} --steps 1000000"))
    return path


@pytest.fixture
def cluster(kubernetes_product: Any, tmp_path: Path) -> Cluster:
    """A local EKS whose agents act, under a job of four pods and a spare."""
    kubernetes_product.run("up", str(kubernetes_product.kubernetes_environment()))
    made = Cluster(kubernetes_product)
    made.run("submit", str(endless(tmp_path / "bytelm")), "--prepare", str(EXAMPLE / "prepare.py"))
    made.until(lambda: made.kinds("job_progress"), what="a job that trains", within_s=180)
    return made


def test_ranks_of_a_pod_leave_before_its_node_is_replaced_and_lose_no_step(cluster: Cluster) -> None:
    node = cluster.busy()[-1]
    found = cluster.loop(node, "xid-79")
    print(f"\nunder Kubernetes: {figures(found)}")
    assert (found["fault"], found["state"]) == ("gpu-lost", "repaired")
    assert (found["steps_lost"], found["steps_redone"]) == (0, 0)
    told = [one for one in cluster.events(since_ns=found["started_ns"] - 1) if one.get("node") == node]
    kinds = [one["kind"] for one in told]
    assert kinds.index("handed_over") < kinds.index("node_replacing")
    assert [one["detail"]["way"] for one in told if one["kind"] == "remedy_requested"] == ["runtime", "label"]
    assert cluster.kinds("rank_lost", since_ns=found["started_ns"]) == [], "nobody was missed"
    assert untouched(cluster, planted=[node]) == []
