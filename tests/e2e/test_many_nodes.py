"""48 nodes come up on two cores, each of them with its burn-in."""

import json
import os
from typing import Any

import pytest

from holdfast_common import kinds

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1500)]

NODES = 48


def test_48_nodes_come_up_and_each_has_passed_its_burn_in(product: Any) -> None:
    environment = str(product.environment(workers=NODES - 2, spares=1))

    child = product.popen("up", environment)
    out, err = child.communicate(timeout=1200)

    assert child.returncode == 0, f"{out}\n{err}"
    assert "room for " in out
    view = product.status()
    assert [node["status"] for node in view["nodes"]] == ["Running"] * NODES
    told = [json.loads(line) for line in product.run("events", "--json").stdout.splitlines()]
    qualified = {event["node"] for event in told if event["kind"] == kinds.NODE_QUALIFIED}
    assert len(qualified) == NODES - 1, f"on {os.cpu_count()} cores"
