"""The metadata service of nodes: what a path tells, and to whom; over a real socket on loopback."""

import http.client
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from holdfast.localcloud.hyperpod.network import LONGEST_TTL_S, Metadata, listing

ITEMS = {"instance-id": "i-1", "placement/region": "us-west-2", "placement/availability-zone": "us-west-2a"}
TTL, TOKEN = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("instance-id", "i-1"),
        ("placement/region", "us-west-2"),
        ("", "instance-id\nplacement/"),
        ("placement", "availability-zone\nregion"),
        ("placement/", "availability-zone\nregion"),
        ("place", None),
        ("instance-id/more", None),
        ("iam/security-credentials/", None),
    ],
)
def test_a_path_tells_its_value_or_what_is_below_it(path: str, told: str | None) -> None:
    assert listing(ITEMS, path) == told


class Caller:
    """A client on loopback, and the instances that the service knows."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, str]] = {"127.0.0.1": ITEMS}
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.service = Metadata(listener=listener, lookup=self.known.get)
        self.service.start()

    def ask(self, method: str, path: str, *, source: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5, source_address=(source, 0))
        try:
            connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def token(self, *, ttl: str = "60") -> str:
        status, token = self.ask("PUT", "/latest/api/token", **{TTL: ttl})
        assert status == 200
        return token

    def get(self, path: str, *, token: str, source: str = "127.0.0.1") -> tuple[int, str]:
        return self.ask("GET", path, source=source, **{TOKEN: token})


@pytest.fixture(scope="module")
def service() -> Iterator[Caller]:
    made = Caller()
    yield made
    made.service.stop()


@pytest.fixture
def caller(service: Caller) -> Iterator[Caller]:
    yield service
    service.known.clear()
    service.known["127.0.0.1"] = ITEMS


def test_a_token_opens_what_the_instance_is(caller: Caller) -> None:
    token = caller.token()
    assert caller.get("/latest/meta-data/instance-id", token=token) == (200, "i-1")
    assert caller.get("/latest/meta-data/", token=token) == (200, "instance-id\nplacement/")
    assert caller.get("/latest/meta-data", token=token)[0] == 200
    assert caller.get("/latest/meta-data/none", token=token)[0] == 404
    assert caller.get("/latest/user-data", token=token)[0] == 404


def test_without_a_token_of_its_own_nobody_is_told_anything(caller: Caller) -> None:
    caller.known["127.0.0.2"] = ITEMS
    assert caller.ask("GET", "/latest/meta-data/instance-id")[0] == 401
    assert caller.get("/latest/meta-data/instance-id", token="invented")[0] == 401
    assert caller.get("/latest/meta-data/instance-id", token=caller.token(), source="127.0.0.2")[0] == 401


@pytest.mark.parametrize("ttl", ["", "0", "-1", "x", str(LONGEST_TTL_S + 1)])
def test_a_token_lasts_between_a_second_and_six_hours(caller: Caller, ttl: str) -> None:
    assert caller.ask("PUT", "/latest/api/token", **{TTL: ttl})[0] == 400
    assert caller.ask("PUT", "/latest/api/token")[0] == 400


def test_a_token_ends_with_its_time(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(
        "holdfast.localcloud.hyperpod.network.metadata.time", SimpleNamespace(monotonic=lambda: clock.now)
    )
    token = caller.token(ttl="60")
    clock.now = 159.9
    assert caller.get("/latest/meta-data/instance-id", token=token)[0] == 200
    clock.now = 160.0
    assert caller.get("/latest/meta-data/instance-id", token=token)[0] == 401


def test_what_came_over_a_proxy_gets_no_token(caller: Caller) -> None:
    assert caller.ask("PUT", "/latest/api/token", X_Forwarded_For="10.0.0.1", **{TTL: "60"})[0] == 403


def test_a_caller_that_is_no_instance_finds_nothing(caller: Caller) -> None:
    caller.known.clear()
    assert caller.get("/latest/meta-data/instance-id", token=caller.token())[0] == 404


def test_a_flood_of_tokens_is_bounded_and_the_newest_holds(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.hyperpod.network.metadata._MOST_TOKENS", 3)
    first, *_, last = [caller.token() for _ in range(5)]
    assert caller.get("/latest/meta-data/instance-id", token=first)[0] == 401
    assert caller.get("/latest/meta-data/instance-id", token=last)[0] == 200
