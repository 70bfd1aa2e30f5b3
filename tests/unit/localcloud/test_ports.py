"""The page about security lists what listens, and the comparison with what really does finds what is not in it."""

import socket
from pathlib import Path

import pytest
from listening import Listening, Row, absent, listening, rows, unknown

PLACES = {
    "every Slurm node", "Slurm controller", "Slurm compute node", "Slurm login node", "EKS node", "EKS control plane",
    "nodes' network", "this machine",
}  # fmt: skip


@pytest.fixture
def page() -> list[Row]:
    return rows()


def row(port: str, when: str = "always") -> Row:
    (one,) = rows([{"port": port, "where": "here", "when": when}])
    return one


def test_every_row_says_where_who_with_what_and_what_it_costs(page: list[Row]) -> None:
    assert {one.place for one in page} == PLACES
    assert all(all(one.cells) for one in page)
    assert all(1 <= one.first <= one.last <= 65535 for one in page)


def test_what_this_process_listens_at_is_found_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as near, socket.create_server(("", 0)) as far:
        wanted = {Listening("127.0.0.1", near.getsockname()[1]), Listening("", far.getsockname()[1])}
        found = listening(Path("/proc/net/tcp").read_text(), Path("/proc/net/tcp6").read_text())

    assert wanted <= found


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6")
def test_a_socket_of_both_families_is_at_all_addresses() -> None:
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        assert Listening("", both.getsockname()[1]) in listening("", Path("/proc/net/tcp6").read_text())


@pytest.mark.parametrize(
    ("port", "one", "is_known"),
    [
        ("22", Listening("", 22), True),
        ("22", Listening("10.1.0.4", 22), True),
        ("127.0.0.1:3306", Listening("127.0.0.1", 3306), True),
        ("127.0.0.1:3306", Listening("", 3306), False),
        ("[::1]:5710", Listening("::1", 5710), True),
        ("*:5710", Listening("10.1.255.254", 5710), True),
        ("29400-30399", Listening("", 30399), True),
        ("29400-30399", Listening("", 30400), False),
    ],
)
def test_a_socket_at_more_addresses_or_another_port_than_the_page_says_is_found(
    port: str, one: Listening, *, is_known: bool
) -> None:
    assert unknown([one], [row(port)]) == ([] if is_known else [one])


def test_a_row_that_nothing_listens_for_is_found_where_it_says_always() -> None:
    rows_of = [row("22"), row("9464", "health.metrics_port")]

    assert absent([], rows_of) == rows_of[:1]
    assert absent([Listening("", 22)], rows_of) == []


def test_a_row_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="a port, a range"):
        row("http")
