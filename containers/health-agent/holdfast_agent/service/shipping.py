"""The node's events on their way, beside the loop or alone."""

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast_agent.configuration import Configuration
from holdfast_agent.service.notify import notify, watchdog_s

if TYPE_CHECKING:
    from holdfast_agent.shipping import EventShipper

REST_S = 10.0


def shipper(configuration: Configuration) -> "EventShipper":
    """Loaded only where it is wanted: what speaks TLS costs ten megabytes."""
    from holdfast_agent.aws import LOGS, Api, Settings
    from holdfast_agent.shipping import EventShipper, LogStream
    from holdfast_common import events_log_group

    name = configuration.node_instance_id or configuration.node_host
    stream = LogStream(
        api=Api(service=LOGS, settings=Settings.read()),
        group=events_log_group(configuration.cluster_name),
        stream=name,
    )
    events, folder = Path(configuration.events_path), Path(configuration.state_path).parent
    return EventShipper(path=events, stream=stream, state=folder / "shipped.json", stream_name=name)


def ship(configuration: Configuration) -> None:
    """Put events into the log group until SIGTERM, and look at nothing else: a pod watches this node."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    one, said = shipper(configuration), ""
    one.start()
    notify("READY=1")
    while not stopping.wait(watchdog_s() or REST_S):
        notify("WATCHDOG=1")
        if one.problem != said:
            said = one.problem
            print(said or "events are shipped again", file=sys.stderr, flush=True)
    one.stop()


__all__ = ["ship", "shipper"]
