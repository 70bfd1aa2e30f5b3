"""
The closed loop on a local cluster: a fault is planted on a busy node, its ranks leave, the node goes and comes back.

Everything is read from events, as `holdfast incidents` tells it. The job that trains meanwhile loses no step.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from healing import Cluster, Limits, figures, interrupted, too_late, untouched

from holdfast.localcloud.nodes import NodeError

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(3600)]

STEPS = 1_000_000
IN_A_ROW = 20
MIXED = ("xid-79", "stalled-mount", "ecc-rate", "hung-driver", "xid-63-pending", "gpu-lost", "xid-119")
LOOPS = {
    "xid-79": ("gpu-lost", Limits(notice_s=0.5)),
    "stalled-mount": ("mount-stalled", Limits(notice_s=10.0)),
    "hung-driver": ("driver-hung", Limits(notice_s=15.0)),
    "ecc-rate": ("gpu-ecc-rate", Limits(notice_s=10.0)),
    "xid-119": ("gpu-firmware-error", Limits(notice_s=0.5)),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    made = Cluster(new_product(tmp_path_factory.mktemp("heal")))
    try:
        made.up(steps=STEPS)
        yield made
    finally:
        made.product.run("down")
    assert not made.product.home.exists()


@pytest.mark.parametrize("fault", LOOPS)
def test_a_fault_of_a_busy_node_costs_no_step_and_the_spare_is_back(cluster: Cluster, fault: str) -> None:
    name, limits = LOOPS[fault]
    found = cluster.loop(cluster.busy()[-1], fault)
    print(f"\n{fault}: {figures(found)}")
    assert (found["fault"], found["state"]) == (name, "repaired")
    assert (found["steps_lost"], found["steps_redone"]) == (0, 0)
    assert too_late(found, limits) == []


def test_a_pending_remap_waits_for_its_boundary(cluster: Cluster) -> None:
    """The next step is one: the ranks leave there, and the node is rebooted only then."""
    node, began_ns = cluster.busy()[-1], time.time_ns()
    found = cluster.loop(node, "xid-63-pending")
    print(f"\nxid-63-pending: {figures(found)}")
    assert (found["fault"], found["when"], found["state"]) == ("gpu-remap-pending", "boundary", "repaired")
    assert (found["steps_lost"], found["steps_redone"]) == (0, 0)
    told = [one["kind"] for one in cluster.events(since_ns=began_ns) if one.get("node") == node]
    assert told.index("handed_over") < told.index("node_rebooting")


def test_a_process_that_the_kernel_accuses_and_that_goes_on_is_left_alone(cluster: Cluster) -> None:
    """On a node that the next tests leave alone: a second fault of one device soon after is the same incident."""
    node, began_ns = cluster.busy()[1], time.time_ns()
    cluster.run("inject", node, "xid-31")
    cluster.until(lambda: cluster.kinds("verdict", since_ns=began_ns, node=node), what="the verdict", within_s=30)
    time.sleep(35)
    asked = cluster.kinds("remedy_requested", since_ns=began_ns) + cluster.kinds("remedy_refused", since_ns=began_ns)
    assert asked == []
    assert cluster.kinds("rank_lost", since_ns=began_ns) == []
    assert cluster.busy()[1] == node


def test_two_at_once_are_both_repaired(cluster: Cluster) -> None:
    """One has the spare at once, the other says what it costs to go on."""
    *_, second, first = cluster.busy()
    began_ns = time.time_ns()
    for node, fault in ((first, "xid-79"), (second, "xid-64")):
        cluster.run("inject", node, fault)
    for node in (first, second):
        found = cluster.healed(node, since_ns=began_ns)
        print(f"\ntwo at once: {figures(found)}")
        assert (found["state"], found["steps_lost"]) == ("repaired", 0)


def test_one_during_a_replacement_waits_for_nobody_and_one_on_a_node_that_is_replaced_is_refused(
    cluster: Cluster,
) -> None:
    first, other = cluster.busy()[-1], cluster.busy()[0]
    began_ns, before = time.time_ns(), cluster.instances()
    cluster.run("inject", first, "xid-79")
    (new,) = cluster.until(lambda: cluster.instances() - before, what="the replacement", within_s=90, every_s=0.05)
    refused = cluster.product.run("inject", new, "xid-79", check=False)
    assert refused.returncode != 0
    assert "a fault is planted on a node in service" in refused.stderr + refused.stdout
    cluster.run("inject", other, "xid-119")
    for node in (first, other):
        found = cluster.healed(node, since_ns=began_ns)
        print(f"\nduring a replacement: {figures(found)}")
        assert (found["state"], found["steps_lost"]) == ("repaired", 0)


@pytest.mark.parametrize("whose", ["the node's", "the decider's"])
def test_an_agent_that_is_killed_in_mid_incident_loses_and_doubles_nothing(cluster: Cluster, whose: str) -> None:
    node, began_ns = cluster.busy()[-1], time.time_ns()
    killed = cluster.node(node) if whose == "the node's" else cluster.controller()
    planting, kills = cluster.product.popen("inject", node, "xid-79"), 0
    with suppress(NodeError):  # the node is taken
        while kills < 4 and not cluster.kinds("node_replacing", since_ns=began_ns, node=node):
            kills += not killed.run(["pkill", "-KILL", "-f", "holdfast-agent run"], timeout_s=10).returncode
            time.sleep(2.7)  # its unit restarts it after two seconds
    _, error = planting.communicate(timeout=120)
    assert planting.returncode == 0, error
    found = cluster.healed(node, since_ns=began_ns)
    print(f"\n{whose} agent killed {kills} times: {figures(found)}")
    assert kills
    assert (found["state"], found["steps_lost"]) == ("repaired", 0)
    assert len(cluster.kinds("verdict", since_ns=began_ns, node=node)) == 1
    asked = [one["detail"]["way"] for one in cluster.kinds("remedy_requested", since_ns=began_ns, node=node)]
    assert asked.count("runtime") == 1
    assert asked.count("slurm") == 1
    assert len(cluster.kinds("node_replacing", since_ns=began_ns, node=node)) == 1


def test_slurms_controller_that_does_not_answer_is_waited_for(cluster: Cluster) -> None:
    """Half a minute here; ten minutes of it are told once in virtual time (tests/unit/agent/test_remedies.py)."""
    node, began_ns, controller = cluster.busy()[-1], time.time_ns(), cluster.controller()
    controller.run(["pkill", "-STOP", "-x", "slurmctld"], timeout_s=10)
    try:
        cluster.run("inject", node, "xid-79")
        time.sleep(25)
        assert cluster.kinds("node_replacing", since_ns=began_ns) == []
        assert len(cluster.kinds("verdict", since_ns=began_ns, node=node)) == 1
    finally:
        controller.run(["pkill", "-CONT", "-x", "slurmctld"], timeout_s=10)
    found = cluster.healed(node, since_ns=began_ns)
    assert (found["state"], found["steps_lost"]) == ("repaired", 0)


def update(cluster: Cluster, node: str, *fields: str) -> None:
    """As HyperPod's own agent and people do."""
    command = ["scontrol", "update", f"NodeName={cluster.node(node).spec.hostname}", *fields]
    assert cluster.controller().run(command, timeout_s=30).returncode == 0


def test_what_hyperpods_own_agent_has_asked_for_is_not_asked_for_again(cluster: Cluster) -> None:
    """Its mark is respected; the ranks leave before it takes the node."""
    node, began_ns = cluster.busy()[-1], time.time_ns()
    update(cluster, node, "State=FAIL", "Reason=Action:Replace")
    cluster.run("inject", node, "xid-79")
    found = cluster.healed(node, since_ns=began_ns)
    print(f"\nHyperPod's agent first: {figures(found)}")
    assert (found["state"], found["steps_lost"]) == ("repaired", 0)
    asked = cluster.kinds("remedy_requested", since_ns=began_ns, node=node)
    assert [one["detail"]["way"] for one in asked] == ["runtime"]


def test_what_hyperpods_own_agent_has_asked_for_on_another_node_is_left_to_it(cluster: Cluster) -> None:
    """That node's job goes on, so that HyperPod waits; a fault elsewhere is healed meanwhile."""
    (other, *_, node), began_ns = cluster.busy(), time.time_ns()
    update(cluster, other, "State=FAIL", "Reason=Action:Replace")
    try:
        found = cluster.loop(node, "xid-79")
        print(f"\nHyperPod's agent elsewhere: {figures(found)}")
        assert (found["state"], found["steps_lost"]) == ("repaired", 0)
        assert {one["node"] for one in cluster.kinds("remedy_requested", since_ns=began_ns)} == {node}
        assert cluster.busy()[0] == other
    finally:
        update(cluster, other, "State=RESUME")


def test_a_sick_spare_is_replaced_and_the_job_does_not_notice(cluster: Cluster) -> None:
    busy, began_ns = cluster.busy(), time.time_ns()
    spare = cluster.spare()
    found = cluster.loop(spare, "xid-79")
    assert (found["state"], found["steps_lost"] or 0) == ("repaired", 0)
    assert cluster.kinds("job_resumed", since_ns=began_ns) == []
    assert cluster.busy() == busy


def test_ctrl_c_ends_whoever_follows_events(cluster: Cluster) -> None:
    following = cluster.product.popen("events", "--follow", "--json")
    assert json.loads(following.stdout.readline())["kind"]
    code, said = interrupted(following)
    assert code == 130
    assert said.endswith("holdfast: interrupted"), "after a line that may be half written"


def test_ctrl_c_in_inject_leaves_nothing_half_planted_and_says_what_stays(cluster: Cluster) -> None:
    node = cluster.spare()
    for after_s in (4.0, 5.0, 6.0, 8.0):
        planting = cluster.product.popen("inject", node, "lossy-link", "--for", "60")
        time.sleep(after_s)
        code, said = interrupted(planting)
        planted = json.loads(cluster.run("inject", "--list", "--json"))
        if code == 0:
            assert [one["fault"] for one in planted] == ["lossy-link"]
        else:
            assert code == 130, said
            assert ("it stays: lossy-link" in said) == bool(planted)
        if planted:
            cluster.run("inject", node, "--end")


def test_twenty_in_a_row_of_mixed_kinds(cluster: Cluster) -> None:
    for number, fault in enumerate(islice(cycle(MIXED), IN_A_ROW)):
        found = cluster.loop(cluster.busy()[-1], fault)
        print(f"\n{number + 1} of {IN_A_ROW}, {fault}: {figures(found)}")
        assert (found["state"], found["steps_lost"], found["steps_redone"]) == ("repaired", 0, 0)


def test_no_healthy_node_was_touched(cluster: Cluster) -> None:
    planted = [one["node"] for one in cluster.kinds("fault_injected")]
    assert untouched(cluster, planted=planted) == []
