"""The console over HTTP: files, headers, the stream, and its ends."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from console_lab import FakeSource, facts_of, moved, recorded, served, wait_until

from holdfast.cli.console.serving import listen
from holdfast.cli.deployed import UnreachableError
from holdfast.cli.terminal import CommandError
from holdfast_common import Event, kinds


@pytest.fixture
def source(repository: Path) -> FakeSource:
    return FakeSource(facts_of(5), moved(recorded(repository, "hand-over"), end_ns=time.time_ns() - 5 * 10**9))


def get(url: str, path: str = "", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("GET", parts.path + path, headers=headers)
    answer = connection.getresponse()
    body = answer.read() if path != "stream" else b""
    return answer, body


class Stream:
    """Server-sent events as they arrive."""

    def __init__(self, url: str) -> None:
        self._answer, _ = get(url, "stream")
        assert self._answer.status == 200
        self._messages = self._read()
        self.sections: dict[str, Any] = {}

    def _read(self) -> Iterator[tuple[str, Any]]:
        name = ""
        for line in self._answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                yield name, json.loads(text[6:])

    def until(self, wanted: str, true: Any) -> Any:
        for name, value in self._messages:
            self.sections[name] = value
            if name == wanted and true(value):
                return value
        raise AssertionError(f"the stream has ended; last: {self.sections.get(wanted)}")

    def close(self) -> None:
        self._answer.close()


def test_a_page_gets_everything_once_and_then_what_changes(source: FakeSource) -> None:
    with served(source) as console:
        stream = Stream(console.url)
        jobs = stream.until("jobs", lambda value: bool(value))
        assert jobs[0]["state"] == "finished"
        groups = stream.sections.get("groups") or stream.until("groups", bool)
        assert [len(group["nodes"]) for group in groups] == [1, 5]
        rows = (stream.sections.get("events") or stream.until("events", lambda value: value["rows"]))["rows"]
        assert len(rows) > 10

        for job in ("8", "9"):  # with the first of them comes the log from its beginning
            source.log.append(Event(time_ns=time.time_ns(), source="cli", kind=kinds.JOB_SUBMITTED, job=job))
            fresh = stream.until("events", lambda value, job=job: any(row[5] == job for row in value["rows"]))
        assert not fresh["again"]
        assert [row[5] for row in fresh["rows"]] == ["9"], "only the new one, although each look reads older ones again"
        stream.close()


def test_every_answer_forbids_what_the_page_does_not_need(source: FakeSource) -> None:
    with served(source) as console:
        for path in (
            "",
            "console.js",
            "console.css",
            "plots.js",
            "uplot.js",
            "uplot.css",
            "icon.svg",
            "stream",
            "nothing",
        ):
            answer, body = get(console.url, path)
            assert answer.status == (404 if path == "nothing" else 200)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cache-Control"] == "no-store"
            assert "Python" not in answer.headers["Server"]
            assert b"style=" not in body or path in ("uplot.js", "console.js")
            answer.close()


def test_without_the_secret_or_from_elsewhere_nothing_is_served(source: FakeSource) -> None:
    with served(source) as console:
        bare = console.url.rsplit("/", 2)[0] + "/"
        assert get(bare)[0].status == 403
        assert get(console.url, Host="evil.example")[0].status == 403
        assert get(console.url, "series?job=7", Origin="http://evil.example")[0].status == 403
        assert len(urlsplit(console.url).path) > 32, "the secret has 192 bits"


def test_a_series_is_served_and_an_unknown_job_is_not(source: FakeSource) -> None:
    with served(source) as console:
        wait_until(lambda: get(console.url, "series?job=7")[0].status == 200)
        assert set(json.loads(get(console.url, "series?job=7")[1])) == {"t", "rate", "loss", "goodput"}
        assert get(console.url, "series?job=%3Cscript%3E")[0].status == 404
        assert get(console.url, "series")[0].status == 404


def test_pages_learn_that_the_cluster_was_taken_down_and_the_console_ends(source: FakeSource) -> None:
    with served(source) as console:
        stream = Stream(console.url)
        stream.until("meta", lambda meta: meta["status"] == "InService")
        source.taken_down = True
        meta = stream.until("meta", lambda meta: meta["gone"])
        assert meta["gone"] == "the cluster was taken down"
        wait_until(lambda: console.gone is not None)
        stream.until("ended", lambda _: True)
        stream.close()
    assert console.gone == "the cluster was taken down"


def test_a_cluster_that_was_deleted_on_aws_ends_it_too(source: FakeSource) -> None:
    with served(source) as console:
        stream = Stream(console.url)
        stream.until("meta", lambda meta: meta["status"] == "InService")
        source.facts = None
        wait_until(lambda: console.gone is not None)
        stream.close()
    assert console.gone == "the cluster was taken down"


def test_a_failure_is_shown_and_ends_by_itself(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.console.feed.feed.RETRY_S", 0.1)
    with served(source) as console:
        stream = Stream(console.url)
        stream.until("meta", lambda meta: meta["status"] == "InService")
        source.failure = UnreachableError("ExpiredToken: log in again")
        meta = stream.until("meta", lambda meta: meta["problem"])
        assert "ExpiredToken" in meta["problem"]
        assert meta["cluster"] == "lab", "what was seen last stays"
        source.failure = None
        stream.until("meta", lambda meta: not meta["problem"])
        stream.close()


def test_a_connection_without_the_secret_keeps_no_page_from_opening(source: FakeSource) -> None:
    with served(source) as console:
        parts = urlsplit(console.url)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(80)]
        assert get(console.url)[0].status == 200
        for one in idle:
            one.close()


def test_too_many_pages_are_refused_and_one_that_closes_makes_room(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.console.serving.application.HEARTBEAT_S", 0.05)
    with served(source) as console:
        streams = [Stream(console.url) for _ in range(16)]
        refused, _ = get(console.url, "stream")
        assert refused.status == 503
        refused.close()
        streams[0].close()

        def has_room() -> bool:
            answer, _ = get(console.url, "stream")
            answer.close()
            return answer.status == 200

        wait_until(has_room)
        for one in streams:
            one.close()


def test_a_port_in_use_is_refused_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"got --port {port}: .*; allowed: a free port, or 0"):
            listen(port)
