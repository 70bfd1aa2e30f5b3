"""The function's wait for nodes: what it asks, when it ends, and what CloudFormation is told."""

import ssl
from collections.abc import Iterator
from typing import Any
from urllib.error import URLError

import pytest

from holdfast_constructs.helm_installer._nodes import MARGIN_S, PAUSE_S, is_ready, wait


class Clock:
    def __init__(self, left_s: float) -> None:
        self.left_s = left_s

    def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= PAUSE_S
        self.left_s -= max(seconds, 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(900)
    monkeypatch.setattr("time.sleep", found.sleep)
    return found


def event(request: str = "Create", *, last: bool = False, **properties: str) -> dict[str, Any]:
    wanted = {"ClusterName": "demo", "Last": "true" if last else "false", **properties}
    return {"RequestType": request, "ResourceProperties": wanted}


def test_it_ends_with_the_first_node_that_is_ready(clock: Clock) -> None:
    answers = iter([0, 0, 1])

    outcome = wait(event(), count=lambda _: next(answers), left_s=lambda: clock.left_s)

    assert (outcome.physical_id, outcome.reason) == ("nodes/demo", None)
    assert clock.left_s == 900 - 2 * PAUSE_S


def test_a_call_that_is_not_the_last_leaves_the_waiting_to_the_next(clock: Clock) -> None:
    assert wait(event(), count=lambda _: 0, left_s=lambda: clock.left_s).reason is None
    assert clock.left_s <= MARGIN_S


def test_the_last_call_says_what_is_missing_and_where_to_look(clock: Clock) -> None:
    def refuse(_: str) -> int:
        raise ConnectionRefusedError("refused")

    reason = wait(event(last=True), count=refuse, left_s=lambda: clock.left_s).reason

    assert reason is not None
    assert "no node of HyperPod cluster demo is ready in Kubernetes (the last question failed: refused)" in reason
    assert "/aws/sagemaker/Clusters/demo" in reason


def test_a_call_that_was_answered_by_errors_alone_fails_with_the_last_one_and_leaves_nothing_to_the_next(
    clock: Clock,
) -> None:
    answers: Iterator[Exception] = iter([TimeoutError("timed out"), *[ConnectionRefusedError("refused")] * 99])

    reason = wait(event(), count=lambda _: throw(next(answers)), left_s=lambda: clock.left_s).reason

    assert clock.left_s <= MARGIN_S
    assert reason is not None
    assert "the last question failed: refused" in reason


@pytest.mark.parametrize(
    "error", [RuntimeError("AccessDeniedException"), KeyError("CLUSTER_NAME"), ValueError("no JSON")]
)
def test_every_error_is_told_since_cloudformation_waits_for_an_answer(error: Exception, clock: Clock) -> None:
    reason = wait(event(), count=lambda _: throw(error), left_s=lambda: clock.left_s).reason

    assert f"the last question failed: {error}" in str(reason)


def test_a_certificate_that_is_not_trusted_is_no_matter_of_waiting(clock: Clock) -> None:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired")

    reason = wait(event(), count=lambda _: throw(URLError(error)), left_s=lambda: clock.left_s).reason

    assert "certificate has expired" in str(reason)
    assert clock.left_s == 900


def test_an_error_that_is_over_is_not_told(clock: Clock) -> None:
    answers = iter([TimeoutError("timed out")])

    reason = wait(event(last=True), count=lambda _: throw(next(answers, None)), left_s=lambda: clock.left_s).reason

    assert "is ready in Kubernetes (none yet)" in str(reason)


def test_while_it_waits_the_log_has_each_error_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    wait(event(), count=lambda _: throw(TimeoutError("timed out")), left_s=lambda: clock.left_s)

    assert capsys.readouterr().out.count("timed out") == 1


def throw(error: Exception | None) -> int:
    if error is not None:
        raise error
    return 0


@pytest.mark.parametrize("request_type", ["Delete"])
def test_deleting_asks_nobody(request_type: str, clock: Clock) -> None:
    outcome = wait({**event(request_type), "PhysicalResourceId": "nodes/x"}, count=pytest.fail, left_s=lambda: 900.0)

    assert (outcome.physical_id, outcome.reason, clock.left_s) == ("nodes/x", None, 900)


def test_a_node_is_ready_when_it_says_so_itself() -> None:
    def node(status: str) -> dict[str, Any]:
        return {
            "status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]}
        }

    assert [is_ready(node(status)) for status in ("True", "False", "Unknown")] == [True, False, False]
    assert not is_ready({})
