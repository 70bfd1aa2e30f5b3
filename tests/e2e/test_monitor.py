"""
A real Prometheus and Alertmanager beside the local nodes: planted faults make alert rules fire, and healthy nodes none.

The agents observe, so that nodes stay as they are; the rules are those that a deployment loads into Managed Prometheus.
"""

import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.localcloud.monitor import access_of, fetch, missing

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.slurm,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing()), reason="needs Debian's prometheus and its Alertmanager (make monitoring)"),
]

RULES = Path(__file__).parents[2] / "constructs" / "holdfast_constructs" / "observability" / "prometheus_rules.yaml"
PLANTED = {"xid-31": "GpuXid", "double-bit-error": "GpuDoubleBitError", "remap-failure": "GpuRowRemapFailure"}
"""Fault -> the rule that it makes fire; the last two have the line of an Xid, too."""


class Monitored:
    """A local cluster with a monitor."""

    def __init__(self, product: Any) -> None:
        self.product = product
        found = access_of(product.home)
        assert found is not None
        self.access = found
        workers = [one for one in product.status()["nodes"] if one["instance_group"] == "workers"]
        self.nodes = [one["instance_id"] for one in workers]
        self.hosts = {one["instance_id"]: one["hostname"] for one in product.status()["nodes"]}

    def ask(self, url: str, path: str) -> Any:
        return json.loads(fetch(url, path, access=self.access) or b"null")

    def scraped(self) -> set[str]:
        """Instance ids of the agents that answered the last time."""
        found = self.ask(self.access.prometheus, "/api/v1/query?query=up==1")
        return {one["metric"]["instance_id"] for one in found["data"]["result"]} if found else set()

    def xids_known(self) -> bool:
        found = self.ask(self.access.prometheus, "/api/v1/query?query=count(DCGM_FI_DEV_XID_ERRORS)")
        return bool(found and found["data"]["result"])

    def alerts(self) -> set[tuple[str, str]]:
        """Name and host of each alert that has come to Alertmanager."""
        found = self.ask(self.access.alertmanager, "/api/v2/alerts?active=true") or []
        return {(one["labels"]["alertname"], one["labels"]["instance"]) for one in found}


def until(holds: Callable[[], Any], *, what: str, within_s: float = 180.0) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not seen within {within_s:g} s: {what}"
        time.sleep(1.0)
    return found


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Monitored]:
    product = new_product(tmp_path_factory.mktemp("monitor"))
    health = {"mode": "observe", "burn_in_seconds": 0, "metrics_port": 9464}
    try:
        product.run("up", str(product.environment(workers=3, spares=0, health=health)), "--monitor", str(RULES))
        yield Monitored(product)
    finally:
        product.run("down")
    assert not product.home.exists()


def test_every_agent_is_scraped_and_nobody_is_answered_without_the_password(monitored: Monitored) -> None:
    until(lambda: monitored.scraped() == set(monitored.hosts), what="every agent answers")
    for url in (monitored.access.prometheus, monitored.access.alertmanager):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/status/config", timeout=10)
        with refused.value:
            assert refused.value.code == 401


def test_three_planted_faults_make_three_rules_fire_on_their_nodes_alone(monitored: Monitored) -> None:
    until(monitored.xids_known, what="numbers of GPUs")
    time.sleep(15)  # three scrapes: a rule that looks for a change needs numbers before it
    assert monitored.alerts() == set()
    for node, fault in zip(monitored.nodes, PLANTED, strict=True):
        monitored.product.run("inject", node, fault)
    wanted = {(rule, monitored.hosts[node]) for node, rule in zip(monitored.nodes, PLANTED.values(), strict=True)} | {
        ("GpuXid", monitored.hosts[node]) for node in monitored.nodes
    }
    until(lambda: monitored.alerts() >= wanted, what=f"{sorted(wanted)}")
    assert monitored.alerts() == wanted


def test_status_tells_of_the_monitor(monitored: Monitored) -> None:
    (told,) = [one for one in monitored.product.status()["processes"] if one["name"] == "monitor"]
    assert (told["state"], told["problems"]) == ("running", [])


def test_a_killed_monitor_is_restarted_with_its_rules_and_another_password(monitored: Monitored) -> None:
    (told,) = [one for one in monitored.product.status()["processes"] if one["name"] == "monitor"]
    before = monitored.access
    os.kill(told["pid"], signal.SIGKILL)
    until(lambda: access_of(monitored.product.home) not in (None, before), what="the restart")
    found = access_of(monitored.product.home)
    assert found is not None
    assert found.password != before.password
    monitored.access = found
    until(lambda: monitored.scraped() == set(monitored.hosts), what="every agent answers again")
    rules = monitored.ask(found.prometheus, "/api/v1/rules")["data"]["groups"]
    assert "GpuXid" in {rule["name"] for group in rules for rule in group["rules"]}
    assert "process monitor failed and was restarted once" in monitored.product.status()["problem"]
