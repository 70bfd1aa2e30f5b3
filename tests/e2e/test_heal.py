"""
The closed loop on a local cluster: a fault is planted on a busy node, its ranks leave, the node goes and comes back.

Everything is read from events, as `holdfast incidents` tells it. The job that trains meanwhile loses no step.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1800)]

STEPS = 20_000


class Cluster:
    """A local cluster with acting agents, under a job that trains all the time."""

    def __init__(self, product: Any) -> None:
        self.product = product

    def run(self, *arguments: str) -> str:
        return str(self.product.run(*arguments).stdout)

    def events(self) -> list[dict[str, Any]]:
        lines = self.run("events", "--json").splitlines()
        return sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda one: one["time_ns"])

    def incidents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("incidents", "--json"))
        return found

    def busy(self) -> str:
        """The last node that has a rank, by its instance id."""
        for event in reversed(self.events()):
            if event["kind"] in ("job_started", "job_resumed") and event["detail"].get("nodes"):
                return str(event["detail"]["nodes"]).split(",")[-1]
        raise AssertionError("no job runs")

    def until(self, holds: "Callable[[], Any]", *, what: str, within_s: float) -> Any:
        deadline = time.monotonic() + within_s
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not seen within {within_s:g} s: {what}"
            time.sleep(0.5)
        return found

    def incident_of(self, node: str) -> dict[str, Any] | None:
        return next((one for one in reversed(self.incidents()) if one["node"] == node), None)

    def has_spare(self, *, since_ns: int) -> bool:
        return any(one["kind"] == "spare_ready" and one["time_ns"] > since_ns for one in self.events())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    product = new_product(tmp_path_factory.mktemp("heal"))
    made = Cluster(product)
    try:
        product.run("up", "local")
        job = ("examples/bytelm/bytelm-resilient.sbatch", "--prepare", "examples/bytelm/prepare.py")
        product.run("submit", *job, "--", "--steps", str(STEPS), "--checkpoint-every", "200")
        made.until(
            lambda: any(one["kind"] == "job_progress" for one in made.events()), what="the first step", within_s=120
        )
        yield made
    finally:
        product.run("down")
    assert not product.home.exists()


@pytest.mark.parametrize(
    ("fault", "name", "verdict_s"),
    [("xid-79", "gpu-lost", 1.0), ("stalled-mount", "mount-stalled", 12.0), ("hung-driver", "driver-hung", 17.0)],
)
def test_a_fault_of_a_busy_node_costs_no_step_and_the_spare_is_back(
    cluster: Cluster, fault: str, name: str, verdict_s: float
) -> None:
    node, began_ns = cluster.busy(), time.time_ns()
    cluster.run("inject", node, fault)

    def repaired() -> dict[str, Any] | None:
        found = cluster.incident_of(node)
        return found if found and found["replaced_s"] is not None and found["training_again_s"] is not None else None

    found = cluster.until(repaired, what="the repair", within_s=180)
    cluster.until(lambda: cluster.has_spare(since_ns=began_ns), what="the spare", within_s=120)
    print(
        f"\n{fault}: verdict {found['verdict_s']:.2f} s, training again {found['training_again_s']:.1f} s, "
        f"repaired {found['replaced_s']:.1f} s"
    )
    assert found["fault"] == name
    assert found["steps_lost"] == 0
    assert found["steps_redone"] == 0
    assert found["verdict_s"] <= verdict_s


def test_a_pending_remap_waits_for_its_boundary_and_healthy_nodes_are_left_alone(cluster: Cluster) -> None:
    node, began_ns = cluster.busy(), time.time_ns()
    cluster.run("inject", node, "xid-63-pending", "--for", "30")
    verdict = cluster.until(
        lambda: next((one for one in cluster.events() if one["kind"] == "verdict" and one["time_ns"] > began_ns), None),
        what="the verdict",
        within_s=30,
    )
    assert verdict["detail"]["when"] == "boundary"
    repaired = {one["node"] for one in cluster.incidents() if one["replaced_s"] is not None}
    planted = {one["node"] for one in cluster.events() if one["kind"] == "fault_injected"}
    assert repaired <= planted
