"""
Bound of a log stream: a job that writes without end fills neither the memory of the embedded AWS nor its disk.

CloudWatch Logs keeps everything. Here the newest events stay, and one event in place of the others has their number.
"""

import logging
from typing import Any

from holdfast_common import dropped_event, events_counted

MOST_BYTES = 128 << 20
EVENT_BYTES = 512
"""Memory of an event beside its message."""

log = logging.getLogger(__name__)


def bound(stream: Any, *, group: str) -> None:
    """Drop the older half of moto's ``LogStream`` when it exceeds MOST_BYTES."""
    if stream.stored_bytes + len(stream.events) * EVENT_BYTES <= MOST_BYTES:
        return
    size, at = 0, len(stream.events)
    while at > 0 and (size := size + EVENT_BYTES + len(stream.events[at - 1].message)) <= MOST_BYTES // 2:
        at -= 1
    count = sum(events_counted(one.message) for one in stream.events[:at])
    placeholder = stream.events[at - 1]
    placeholder.message = dropped_event(count)
    text = "log group %s, stream %s: over %d MiB: %s"
    log.warning(text, group, stream.log_stream_name, MOST_BYTES >> 20, placeholder.message)
    stream.events = stream.events[at - 1 :]
    stream.stored_bytes = sum(len(one.message) for one in stream.events)
