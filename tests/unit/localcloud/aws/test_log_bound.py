"""A job that writes without end: what the embedded CloudWatch Logs keeps of its stream."""

from types import SimpleNamespace
from typing import Any

import pytest
from moto.logs.models import LogStream

from holdfast.localcloud.aws.monitoring.log_bound import EVENT_BYTES, bound
from holdfast_common import events_counted

MOST = 100_000
BATCH = 50


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("holdfast.localcloud.aws.monitoring.log_bound.MOST_BYTES", MOST)
    group = SimpleNamespace(account_id="1", region="us-west-2", name="g", subscription_filters={})
    return LogStream(group, "i-1/jobs")  # type: ignore[arg-type]


def put(stream: LogStream, first: int, *, size: int) -> None:
    bound(stream, group="g")
    messages = [f"{number}".ljust(size) for number in range(first, first + BATCH)]
    stream.put_log_events([{"timestamp": 1, "message": message} for message in messages])


@pytest.mark.parametrize("size", [1, 200, 3_000])
def test_a_stream_without_end_is_kept_in_bounded_memory_and_its_events_stay_counted(
    stream: LogStream, size: int
) -> None:
    for number in range(200):
        put(stream, number * BATCH, size=size)
        held = sum(EVENT_BYTES + len(event.message) for event in stream.events)
        assert held <= MOST + BATCH * (EVENT_BYTES + max(size, 10))
        assert sum(events_counted(event.message) for event in stream.events) == (number + 1) * BATCH

    assert stream.events[0].message.startswith("[holdfast] older events of this stream were dropped: ")
    kept = [int(event.message) for event in stream.events[1:]]
    assert kept == list(range(200 * BATCH - len(kept), 200 * BATCH))


def test_a_stream_within_its_bound_is_kept_whole(stream: LogStream) -> None:
    put(stream, 0, size=100)
    bound(stream, group="g")
    assert [int(event.message) for event in stream.events] == list(range(BATCH))


@pytest.mark.parametrize(
    "message", ["", "x", "[holdfast] older events of this stream were dropped: ", "[holdfast] no event: 7"]
)
def test_any_other_message_is_one_event(message: str) -> None:
    assert events_counted(message) == 1
