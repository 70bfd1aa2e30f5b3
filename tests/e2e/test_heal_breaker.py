"""
Four of five workers are accused at once, with the share that a cluster has unless somebody sets another.

The breaker lets one go, the others wait for a person; and a node without a spare says what it costs.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from healing import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    product = new_product(tmp_path_factory.mktemp("breaker"))
    health = dict(yaml.safe_load((ROOT / "environments" / "local.yaml").read_text())["health"])
    del health["breaker_share"]
    made = Cluster(product)
    try:
        made.up(product.environment("breaker", health=health), steps=1_000_000)
        yield made
    finally:
        product.run("down")
    assert not product.home.exists()


def test_of_four_of_five_accused_at_once_the_breaker_lets_one_go(cluster: Cluster) -> None:
    accused, began_ns = cluster.busy(), time.time_ns()
    for node in accused:
        cluster.run("inject", node, "xid-79")
    cluster.until(
        lambda: len(cluster.kinds("verdict", since_ns=began_ns)) == 4, what="a verdict on each of them", within_s=60
    )
    refused = cluster.until(
        lambda: len(found := cluster.kinds("remedy_refused", since_ns=began_ns)) == 3 and found,
        what="three refusals",
        within_s=120,
    )
    assert {one["detail"]["why"] for one in refused} == {"breaker"}
    (taken,) = set(accused) - {one["node"] for one in refused}
    found = cluster.healed(taken, since_ns=began_ns)
    assert (found["state"], found["steps_lost"]) == ("repaired", 0)
    time.sleep(40)
    assert [one["node"] for one in cluster.kinds("node_replacing", since_ns=began_ns)] == [taken]
    states = {one["node"]: one["state"] for one in cluster.incidents(since_ns=began_ns)}
    assert sorted(states.values()) == ["refused", "refused", "refused", "repaired"]


def test_a_person_lets_one_more_go(cluster: Cluster) -> None:
    waiting = next(one["node"] for one in cluster.incidents() if one["state"] == "refused")
    began_ns = next(one["started_ns"] for one in cluster.incidents() if one["node"] == waiting)
    host = cluster.node(waiting).spec.hostname
    allowed = ["scontrol", "update", f"NodeName={host}", "Comment=holdfast-remedy:allow"]
    assert cluster.controller().run(allowed, timeout_s=30).returncode == 0
    found = cluster.healed(waiting, since_ns=began_ns - 1)
    assert found["state"] == "repaired"
    assert sorted(one["state"] for one in cluster.incidents()) == ["refused", "refused", "repaired", "repaired"]
