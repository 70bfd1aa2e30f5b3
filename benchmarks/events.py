"""
What a large event log costs its readers: CPU seconds and peak memory of ``incidents --events``, ``plan --events`` and
``events``, each in a process of its own with its imports.

    python benchmarks/events.py [--lines 1000000] [--incidents 2000] [--log FILE]

The log is made from a seed: a cluster of 64 nodes whose jobs report every 2 s, save checkpoints and lose nodes. Its
newest line is torn, one line holds a byte that is not UTF-8, and one stands there twice. ``events`` reads it from a log
group, in pages of 10,000 events that a server of this process sends as CloudWatch Logs does.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import BinaryIO

from holdfast_common import Event, kinds

MOST_CPU_S, MOST_MB = 20.0, 300.0
NODES, JOBS, SEED, PAGE = 64, 40, 7, 10_000
BEGUN_NS, SECOND = 1_780_000_000_000_000_000, 1_000_000_000
STEPS_OF_A_BOOT = ("mount", "users", "packages", "slurm", "agent", "checks")
COMMAND = "from holdfast.cli import main; main()"
OF_A_LOG_GROUP = """
import sys
from types import SimpleNamespace
from holdfast.cli import main
import botocore.session
keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
made = botocore.session.get_session().create_client
client = made("logs", region_name="us-west-2", endpoint_url=sys.argv.pop(), **keys)
context = SimpleNamespace(
    session=SimpleNamespace(cloud="embedded", cluster_name="bench"),
    ask=lambda service, operation, **parameters: getattr(client, botocore.xform_name(operation))(**parameters),
)
import holdfast.cli.commands.cluster.events
sys.modules["holdfast.cli.commands.cluster.events"].locate = lambda **_: context
main()
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, default=1_000_000)
    options.add_argument("--incidents", type=int, default=2_000)
    options.add_argument("--log", type=Path, help="Make the log here and keep it. Default: a temporary file.")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.log or Path(folder) / "events.jsonl"
        with path.open("wb") as file:
            write_log(file, lines=given.lines, incidents=given.incidents)
        print(f"{given.lines:,} lines, {path.stat().st_size / 1e6:,.0f} MB, {given.incidents:,} incidents", flush=True)
        kept = report("incidents --events", [COMMAND, "incidents", "--events", str(path), "--json"])
        kept &= report(
            "plan --events", [COMMAND, "plan", "--instances", str(NODES), "--events", str(path), "--runs", "10"]
        )
        with served(path) as endpoint:
            kept &= report("events", [OF_A_LOG_GROUP, "events", "--json", endpoint])
    sys.exit(0 if kept else 1)


def report(name: str, words: list[str]) -> bool:
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    text = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s, peak_mb = used.ru_utime + used.ru_stime, used.ru_maxrss / 1000
    kept = process.returncode == 0 and cpu_s <= MOST_CPU_S and peak_mb <= MOST_MB
    print(
        f"{name}: exit {process.returncode}, {cpu_s:.1f} s of CPU (at most {MOST_CPU_S:g}), "
        f"{peak_mb:.0f} MB (at most {MOST_MB:g}): {'ok' if kept else 'not kept'}"
    )
    print("".join(f"  {line}\n" for line in text.splitlines()[-5:]), end="", flush=True)
    return kept


def write_log(file: BinaryIO, *, lines: int, incidents: int) -> None:
    """So many lines with so many incidents among them, oldest first."""
    every = max(lines // (incidents + 1), 1)
    made = cluster_events(reports_between=max(every - 20, 1))
    last = b""
    for number in range(lines):
        line = last if number == lines // 3 else next(made).to_json().encode()
        last = line
        if number == lines // 2:
            line = line.replace(b"bench", b"ben\xffch")
        file.write(line[: len(line) // 2] if number == lines - 1 else line + b"\n")


def cluster_events(*, reports_between: int) -> Iterator[Event]:
    chance = random.Random(SEED)
    nodes = [f"i-{number:017x}" for number in range(NODES)]
    at_ns, fresh, step = BEGUN_NS, NODES, 0
    for node in nodes:
        yield event(at_ns, "control-plane", kinds.NODE_IN_SERVICE, node=node, detail={"group": "workers"})
    for number in range(1_000_000):
        job = str(number * JOBS // 1_000 + 1)
        names = ",".join(nodes)
        yield event(
            at_ns, "job", kinds.JOB_RESUMED if number else kinds.JOB_STARTED, node=nodes[0], job=job,
            detail={"step": step, "world_size": NODES, "nodes": names},
        )  # fmt: skip
        for report_number in range(reports_between):
            at_ns += 2 * SECOND + chance.randrange(1_000_000)
            step += chance.randrange(1, 4)
            kind = kinds.CHECKPOINT_SAVED if report_number % 30 == 29 else kinds.JOB_PROGRESS
            yield event(
                at_ns, "job", kind, node=nodes[0], job=job,
                duration_s=1.5 if kind == kinds.CHECKPOINT_SAVED else None,
                detail={"step": step, "loss": round(2 + chance.random(), 6)},
            )  # fmt: skip
        lost, fresh = chance.randrange(NODES), fresh + 1
        old, new = nodes[lost], f"i-{fresh:017x}"
        yield from recovery(at_ns, old=old, new=new, job=job, step=step, incident=f"inc-{number}")
        at_ns, step, nodes[lost] = at_ns + 400 * SECOND, step - 3, new


def recovery(at_ns: int, *, old: str, new: str, job: str, step: int, incident: str) -> Iterator[Event]:
    named = {"incident": incident, "host": "ip-10-1-0-4"}
    xid = {**named, "code": 79, "severity": "node", "when": "now", "signal_ns": at_ns + SECOND // 10}
    evidence = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
    yield event(
        at_ns + SECOND, "agent", kinds.VERDICT, node=old, fault="gpu-lost", action="replace", evidence=evidence,
        detail=xid,
    )  # fmt: skip
    request = {**named, "way": "slurm"}
    yield event(at_ns + 2 * SECOND, "agent", kinds.REMEDY_REQUESTED, node=old, action="replace", detail=request)
    yield event(at_ns + 3 * SECOND, "control-plane", kinds.NODE_LOST, node=old, fault="gpu-lost", evidence=evidence)
    phases = (kinds.RECOVERY_DETECTED, kinds.RECOVERY_ABORTED, kinds.RECOVERY_AGREED, kinds.RECOVERY_REBUILT)
    for place, kind in enumerate(phases):
        yield event(at_ns + (4 + place) * SECOND, "job", kind, node=new, job=job, duration_s=1.0)
    view = {"generation": 3, "step": step, "lost_steps": 3}
    yield event(at_ns + 8 * SECOND, "job", kinds.VIEW_COMMITTED, node=new, job=job, duration_s=4.0, detail=view)
    yield event(at_ns + 9 * SECOND, "control-plane", kinds.NODE_REPLACING, node=old, detail={"replacement": new})
    for place, name in enumerate(STEPS_OF_A_BOOT):
        done = {"step": name, "outcome": "changed", "group": "workers"}
        yield event(
            at_ns + (100 + place) * SECOND, "lifecycle", kinds.STEP_FINISHED, node=new, duration_s=2.5, detail=done
        )
    yield event(at_ns + 390 * SECOND, "control-plane", kinds.NODE_REPLACED, node=new, detail={"replaces": old})


def event(time_ns: int, source: str, kind: str, **fields: object) -> Event:
    return Event(time_ns=time_ns, source=source, kind=kind, cluster="bench", **fields)  # type: ignore[arg-type]


def stream_of(line: bytes) -> str:
    source = line.partition(b'"source":"')[2].partition(b'"')[0].decode()
    return source if source in ("control-plane", "cli") else "ip-10-1-0-4"


@contextmanager
def served(path: Path) -> Iterator[str]:
    with path.open("rb") as file:

        class Pages(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                file.seek(int(asked.get("nextToken", 0)))
                found = [line for line in (file.readline() for _ in range(PAGE)) if line]
                entries = [
                    {
                        "message": line.decode("utf-8", "replace").rstrip("\n"),
                        "timestamp": time_ms,
                        "logStreamName": stream_of(line),
                    }
                    for line in found
                    if (time_ms := int(line.partition(b'"time_ns":')[2][:13] or 0))
                ]
                more = {"nextToken": str(file.tell())} if len(found) == PAGE else {}
                body = json.dumps({"events": entries, **more}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        server = HTTPServer(("127.0.0.1", 0), Pages)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    main()
