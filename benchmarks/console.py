"""
What `holdfast console` costs with a long event log and many nodes: peak memory, CPU with one open page, first screen.

    python benchmarks/console.py [--lines 1000000] [--incidents 2000] [--nodes 256] [--seconds 60]

The log is that of benchmarks/events.py. This process answers for AWS: DescribeCluster, ListClusterNodes and
FilterLogEvents with startTime and pages; a job reports a step every 2 s. The console is a process of
its own, and the page is open in Chromium, or else as a plain reader of its stream.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from events import BEGUN_NS, SECOND, event, stream_of, write_log
from holdfast_common import kinds

MOST_MB, MOST_CORE, MOST_FIRST_S = 200.0, 0.02, 2.0
CONSOLE = """
import sys
from types import SimpleNamespace
import botocore.session
from holdfast.cli.console import run_console
keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
made = botocore.session.get_session().create_client
place = {"region_name": "us-west-2", "endpoint_url": sys.argv[1]}
clients = {name: made(name, **place, **keys) for name in ("logs", "sagemaker")}
session = SimpleNamespace(cloud="embedded", cluster_name="bench", region="us-west-2", environment="bench")
context = SimpleNamespace(
    session=session,
    local=SimpleNamespace(is_claimed=lambda: True, home=__import__("pathlib").Path("/nowhere")),
    ask=lambda service, operation, **given: getattr(clients[service], botocore.xform_name(operation))(**given),
)
run_console(context, port=0, since="the beginning", since_ns=1, announce=lambda url: print(url, flush=True))
"""


@dataclass
class Log:
    """Times and places of the lines of a file, and lines that came since."""

    path: Path
    times_ms: "array[int]" = field(default_factory=lambda: array("q"))
    places: "array[int]" = field(default_factory=lambda: array("q"))

    def index(self) -> None:
        place = 0
        with self.path.open("rb") as file:
            for line in file:
                at_ms = int(line.partition(b'"time_ns":')[2][:13] or 0)
                self.times_ms.append(max(at_ms, self.times_ms[-1] if self.times_ms else 0))
                self.places.append(place)
                place += len(line)

    def page(self, first: int, *, most: int) -> list[dict[str, Any]]:
        with self.path.open("rb") as file:
            file.seek(self.places[first] if first < len(self.places) else 0)
            lines = [file.readline() for _ in range(min(most, len(self.places) - first))]
        return [
            {
                "message": line.decode("utf-8", "replace").rstrip("\n"),
                "timestamp": self.times_ms[first + at],
                "logStreamName": stream_of(line),
            }
            for at, line in enumerate(lines)
        ]

    def append(self, line: bytes, at_ms: int) -> None:
        place = self.path.stat().st_size
        with self.path.open("ab") as file:
            file.write(line + b"\n")
        self.times_ms.append(at_ms)
        self.places.append(place)


@contextlib.contextmanager
def aws(log: Log, *, nodes: int) -> Iterator[str]:
    groups = [{"InstanceGroupName": "workers", "InstanceType": "ml.p5.48xlarge", "TargetCount": nodes}]
    cluster = {"ClusterName": "bench", "ClusterStatus": "InService", "InstanceGroups": groups, "CreationTime": 1.8e9,
               "ClusterArn": "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"}  # fmt: skip
    summaries = [
        {
            "InstanceId": f"i-{number:017x}", "InstanceGroupName": "workers", "InstanceType": "ml.p5.48xlarge",
            "LaunchTime": 1.8e9, "InstanceStatus": {"Status": "Running"},
            "PrivateDnsHostname": f"ip-10-1-{number // 200}-{number % 200 + 11}.us-west-2.compute.internal",
        }
        for number in range(nodes)
    ]  # fmt: skip

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(self._answer(self.headers["X-Amz-Target"].rpartition(".")[2], asked)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _answer(self, operation: str, asked: dict[str, Any]) -> dict[str, Any]:
            if operation == "DescribeCluster":
                return cluster
            if operation == "ListClusterNodes":
                first, size = int(asked.get("NextToken", 0)), int(asked.get("MaxResults", 10))
                more = {"NextToken": str(first + size)} if first + size < nodes else {}
                return {"ClusterNodeSummaries": summaries[first : first + size], **more}
            first = int(asked["nextToken"]) if "nextToken" in asked else bisect_left(log.times_ms, asked["startTime"])
            found = log.page(first, most=asked["limit"])
            return {"events": found, **({"nextToken": str(first + len(found))} if len(found) == asked["limit"] else {})}

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def opened(url: str) -> Iterator[float]:
    """An open page; yields seconds until its first screen."""
    browser = shutil.which("chromium")
    began_s = time.monotonic()
    if browser is None:
        with urllib.request.urlopen(f"{url}stream") as stream:
            while not stream.readline().startswith(b"event: groups"):
                pass
            took_s = time.monotonic() - began_s
            reader = threading.Thread(target=lambda: contextlib.suppress(OSError) and all(stream), daemon=True)
            reader.start()
            yield took_s
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        began_s = time.monotonic()
        page.goto(url)
        page.wait_for_selector(".node")
        yield time.monotonic() - began_s
        chromium.close()


def reading_of(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}stream") as stream:
        name = b""
        for line in stream:
            if line.startswith(b"event: "):
                name = line[7:].strip()
            elif line.startswith(b"data: ") and name == b"meta":
                meta: dict[str, Any] = json.loads(line[6:])
                return meta
    return {}


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid: int) -> float:
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, default=1_000_000)
    options.add_argument("--incidents", type=int, default=2_000)
    options.add_argument("--nodes", type=int, default=256)
    options.add_argument("--seconds", type=int, default=60)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder) / "events.jsonl")
        with log.path.open("wb") as file:
            write_log(file, lines=given.lines, incidents=given.incidents)
            file.write(b"\n")
        log.index()
        print(f"{given.lines:,} events, {given.incidents:,} incidents, {given.nodes} nodes", flush=True)
        with aws(log, nodes=given.nodes) as endpoint:
            console = subprocess.Popen([sys.executable, "-c", CONSOLE, endpoint], stdout=subprocess.PIPE, text=True)
            try:
                kept = measured(console, log, seconds=given.seconds)
            finally:
                console.terminate()
                console.wait()
    sys.exit(0 if kept else 1)


def measured(console: "subprocess.Popen[str]", log: Log, *, seconds: int) -> bool:
    began_s = time.monotonic()
    assert console.stdout is not None
    url = console.stdout.readline().strip()
    started_s = time.monotonic() - began_s
    with opened(url) as first_s:
        while (meta := reading_of(url))["history"] is not None or meta["events"] < len(log.places) * 0.9:
            time.sleep(1.0)
        read_s = time.monotonic() - began_s
        used_s, until_s, step = cpu_s(console.pid), time.monotonic() + seconds, 10_000_000
        while time.monotonic() < until_s:
            at_ns, step = BEGUN_NS + (time.time_ns() - BEGUN_NS) // SECOND * SECOND, step + 4
            made = event(at_ns, "job", kinds.JOB_PROGRESS, job="1", node="i-1", detail={"step": step, "loss": 1.5})
            log.append(made.to_json().encode(), at_ns // 1_000_000)
            time.sleep(2.0)
        core = (cpu_s(console.pid) - used_s) / seconds
    memory_mb = peak_mb(console.pid)
    print(
        f"address after {started_s:.2f} s, first screen {first_s:.2f} s after it is opened (at most {MOST_FIRST_S:g})"
    )
    print(f"whole log read after {read_s:.0f} s, {used_s:.1f} s of CPU")
    print(f"peak memory {memory_mb:.0f} MB (at most {MOST_MB:g})")
    print(f"with one open page {100 * core:.1f} % of a core (at most {100 * MOST_CORE:g})")
    return first_s <= MOST_FIRST_S and memory_mb <= MOST_MB and core <= MOST_CORE


if __name__ == "__main__":
    main()
