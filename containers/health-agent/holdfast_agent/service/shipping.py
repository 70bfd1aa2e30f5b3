"""Event shipping, beside the loop or alone."""

import signal
import sys
import threading
from pathlib import Path

from holdfast_agent.aws import LOGS, Api, Settings
from holdfast_agent.configuration import Configuration
from holdfast_agent.service.notify import notify, watchdog_s
from holdfast_agent.shipping import JOBS_PAUSE_S, JOBS_TURNS, EventShipper, LogStream
from holdfast_common import events_log_group, log_of_jobs, of_job, stream_of_jobs

REST_S = 10.0


def shippers(configuration: Configuration) -> "tuple[EventShipper, EventShipper]":
    """Shippers of the agent's events, and of the log of jobs, whose lines are attributed to this node's jobs."""
    name = configuration.node_instance_id or configuration.node_host
    cluster, node = configuration.cluster_name, configuration.node_instance_id
    events, folder = Path(configuration.events_path), Path(configuration.state_path).parent
    settings, group = Settings.read(), events_log_group(cluster)

    def stream(called: str) -> LogStream:
        return LogStream(api=Api(service=LOGS, settings=settings), group=group, stream=called)

    jobs = stream(stream_of_jobs(name))

    def collected(line: str) -> str:
        return of_job(line, cluster=cluster, node=node, now_ns=jobs.now_ms() * 1_000_000)

    return (
        EventShipper(path=events, stream=stream(name), state=folder / "shipped.json", stream_name=name),
        EventShipper(
            path=log_of_jobs(events),
            stream=jobs,
            state=folder / "shipped-jobs.json",
            stream_name=stream_of_jobs(name),
            turns=JOBS_TURNS,
            pause_s=JOBS_PAUSE_S,
            collected=collected,
            of="events of jobs",
        ),
    )


def ship(configuration: Configuration) -> None:
    """Ship events until SIGTERM, without watching the node: a pod does that."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    working = shippers(configuration)
    printed = dict.fromkeys(working, "")
    for one in working:
        one.start()
    notify("READY=1")
    while not stopping.wait(watchdog_s() or REST_S):
        notify("WATCHDOG=1")
        for one in working:
            if one.problem != printed[one]:
                printed[one] = one.problem
                print(f"{one.name}: {one.problem or 'working again'}", file=sys.stderr, flush=True)
    for one in working:
        one.stop()
