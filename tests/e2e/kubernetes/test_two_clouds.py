"""Two local clouds of one machine, each with an EKS: they come up at the same time, and neither sees the other."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_clients import kubectl
from kubernetes_product import KubernetesProduct
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1200)]

COUNTS = {"system": 1, "workers": 1}
UP_WITHIN_S = 420


@pytest.fixture
def two(kubernetes_product: KubernetesProduct, new_product: Any, tmp_path: Path) -> Iterator[list[KubernetesProduct]]:
    work = tmp_path / "second"
    work.mkdir()
    second = KubernetesProduct(product=new_product(work), charts=kubernetes_product.charts)
    try:
        yield [kubernetes_product, second]
    finally:
        second.run("down")
    assert not second.home.exists()


def nodes(product: KubernetesProduct, home: Path) -> set[str]:
    """As kubectl shows them to whoever has this cloud's variables."""
    done = subprocess.run(
        [str(kubectl("1.34")), "get", "nodes", "--output", "name"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), **json.loads(product.run("env", "--json").stdout)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {line.removeprefix("node/hyperpod-") for line in done.stdout.split()}


def instances(product: KubernetesProduct) -> set[str]:
    return {one["instance_id"] for one in product.status()["nodes"]}


def test_two_come_up_at_once_and_what_happens_in_one_is_not_seen_in_the_other(
    two: list[KubernetesProduct], tmp_path: Path
) -> None:
    starting = [one.popen("up", str(one.kubernetes_environment(counts=COUNTS))) for one in two]
    for child in starting:
        out, err = child.communicate(timeout=UP_WITHIN_S)
        assert child.returncode == 0, out + err

    first, second = two
    there = [nodes(one, tmp_path) for one in two]
    assert there == [instances(one) for one in two]
    assert [len(found) for found in there] == [2, 2]
    assert there[0].isdisjoint(there[1])

    gone = next(one["instance_id"] for one in first.status()["nodes"] if one["instance_group"] == "workers")
    first.run("kill-node", gone)
    eventually(
        lambda: len(nodes(first, tmp_path)) == 2 and gone not in nodes(first, tmp_path), "another node", within_s=180
    )
    assert nodes(second, tmp_path) == there[1]

    first.run("down")
    assert nodes(second, tmp_path) == there[1]
    assert second.status()["cluster_status"] == "InService"
