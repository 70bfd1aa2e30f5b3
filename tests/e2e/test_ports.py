"""
Everything that listens while a cluster runs is in the table of the page about security, and what it says always is.

On the local cluster that runs: HOLDFAST_HOME names its home. One of Slurm, one of EKS, with or without a job.
"""

from pathlib import Path

import pytest
from listening import absent, places_of, rows, sockets, unknown

from holdfast.localcloud import from_environment
from holdfast.localcloud.nodes import Fleet

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.timeout(300)]

PAGE = rows()


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    found = Fleet(home=from_environment().home)
    if not any(node.alive() for node in found.nodes()):
        pytest.skip(f"no local cluster runs at {found.home}; start one with holdfast up, and name its home")
    return found


def test_each_node_listens_at_the_ports_of_the_page_and_at_no_other(fleet: Fleet) -> None:
    wrong = []
    for node in (one for one in fleet.nodes() if one.alive()):
        allowed = [row for row in PAGE if row.place in places_of(node.pid)]
        found = sockets(namespace=Path(f"/proc/{node.pid}/ns/net"))
        name = f"{node.spec.hostname} ({', '.join(places_of(node.pid))})"
        wrong += [f"{name}: {one} is in no row" for one in unknown(found, allowed)]
        wrong += [f"{name}: nothing listens for {row.cells[0]}, {row.cells[2]}" for row in absent(found, allowed)]
    assert wrong == []


def test_the_network_of_the_nodes_has_the_services_of_the_page_and_no_other(fleet: Fleet) -> None:
    allowed = [row for row in PAGE if row.place == "nodes' network"]
    found = sockets(namespace=fleet.fabric.path)

    assert [str(one) for one in unknown(found, allowed)] == []
    assert [row.cells[0] for row in absent(found, allowed)] == []


def test_the_local_cloud_listens_on_the_loopback_of_this_machine_alone(fleet: Fleet) -> None:
    port = from_environment().port
    found = sockets(namespace=Path("/proc/self/ns/net"))

    assert {one.address for one in found if one.port == port} <= {"127.0.0.1", "::1"}
    assert any(one.port == port for one in found)
