"""
A large job's launchers on this machine, without torch: the first view, what they cost while nothing happens, the view
that follows a lost rank, and launchers that were taken for lost although they were not.

    python benchmarks/launchers.py [--launchers 200] [--idle 20] [--losses 3] [--calm 0] [--load 0]

Real launchers on loopback, each with one process that has no model but does what a rank does in a view; two nodes are
spare. CPU is that of the launchers alone (user and system, of /proc/PID/stat), as a share of one core for each. A loss
is a rank that is killed, and takes until the last launcher has the view that follows. ``--calm`` watches for so many
seconds beside ``--load`` processes that compute, and counts launchers that anyone took for lost.
"""

import argparse
import compileall
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import recovery

PROGRAM = """
import os, sys
from holdfast_runtime.control import ControlClient, Leave, Progress, Ready, View

client, state = ControlClient.from_environment(), "none"
client.send(Ready(committed_step=0, state=state, port=1))
while True:
    message = client.receive(deadline_s=3600.0)
    if isinstance(message, Leave):
        client.send(Ready(committed_step=0, state=state, digest="", port=1, reason=message.reason))
    elif isinstance(message, View):
        state = "valid"
        with open(os.path.join(sys.argv[1], str(message.rank)), "w") as mark:
            mark.write(str(os.getpid()))
        client.send(Progress(step=0, phase="forward"))
    else:
        break
"""
LIMIT_S = 900.0
SPARE_NODES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--launchers", type=int, default=200)
    parser.add_argument("--idle", type=float, default=20.0)
    parser.add_argument("--losses", type=int, default=3)
    parser.add_argument("--calm", type=float, default=0.0)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--deadlines", default="", help="of the launchers. Default: theirs")
    parser.add_argument("--folder", type=Path, help="where logs are kept. Default: none are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the launchers are ended, too
        job = Job(options.launchers, folder=options.folder or Path(temporary), deadlines=options.deadlines)
        stack.callback(job.end)
        job.start()
        print(f"{options.launchers} launchers, load {os.getloadavg()[0]:.1f} at the start")
        print(f"first view after {job.wait_for_view(1):.1f} s", flush=True)
        print(f"all ranks in a view after {job.wait_for_ranks():.1f} s more", flush=True)
        time.sleep(5.0)
        shares = job.idle(options.idle)
        print(f"idle: {statistics.median(shares):.2%} of a core each (median), {max(shares):.2%} most", flush=True)
        for _ in range(options.losses):
            seconds, agreed = job.lose_a_rank()
            print(f"a lost rank: all have the next view after {seconds:.2f} s; {agreed}", flush=True)
            time.sleep(3.0)
        if options.calm:
            stack.enter_context(computing(options.load))
            before = job.lost()
            time.sleep(options.calm)
            print(
                f"{options.calm:g} s beside {options.load} that compute, load {os.getloadavg()[0]:.1f} at the end: ",
                end="",
            )
            print(f"{job.lost() - before} losses seen, {sum(each.poll() is not None for each in job.launchers)} ended")


class Job:
    def __init__(self, count: int, *, folder: Path, deadlines: str) -> None:
        self.count, self.folder, self._deadlines = count, folder, deadlines
        self.launchers: list[subprocess.Popen[bytes]] = []
        self.views = 1
        self._read = [0] * count
        self._lines: list[list[dict[str, Any]]] = [[] for _ in range(count)]

    def start(self) -> None:
        for folder in recovery.PYTHONPATH.split(os.pathsep):  # as where it is installed: bytecode is there
            compileall.compile_dir(folder, quiet=1)
        with contextlib.ExitStack() as doors:
            opened = [doors.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(self.count)]
            peers = ",".join(f"127.0.0.1:{door.getsockname()[1]}" for door in opened)
        program, marks = self.folder / "sleeps.py", self.folder / "marks"
        program.write_text(PROGRAM)
        marks.mkdir(exist_ok=True)
        environment = {**os.environ, "PYTHONPATH": recovery.PYTHONPATH, "HOLDFAST_TOKEN": "benchmark"}
        for node in range(self.count):
            command = [
                sys.executable,
                "-m",
                "holdfast_runtime.launcher",
                "--nproc-per-node",
                "1",
                "--log-format",
                "json",
            ]
            command += [
                "--peers",
                peers,
                "--node-rank",
                str(node),
                "--rdzv-id",
                "benchmark",
                "--preload",
                "holdfast_runtime.control",
            ]
            command += ["--spare-nodes", str(SPARE_NODES), "--socket", str(self.folder / f"{node}.sock")]
            command += ["--deadlines", self._deadlines]
            with self._log(node).open("wb") as log:
                self.launchers.append(
                    subprocess.Popen([*command, str(program), str(marks)], env=environment, stderr=log, stdout=log)
                )

    def _log(self, node: int) -> Path:
        return self.folder / f"{node}.log"

    def log_lines(self, node: int) -> list[dict[str, Any]]:
        with self._log(node).open("rb") as log:
            log.seek(self._read[node])
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read[node] += len(line)
                if line.startswith(b"{"):
                    self._lines[node].append(json.loads(line))
        return self._lines[node]

    def wait_for_view(self, number: int) -> float:
        start_s, missing = time.monotonic(), set(range(self.count))
        while missing:
            ended = [node for node in missing if self.launchers[node].poll() is not None]
            if ended or time.monotonic() - start_s > LIMIT_S:
                seconds = time.monotonic() - start_s
                raise SystemExit(
                    f"launchers {ended} have ended; {sorted(missing)} lack view {number} for {seconds:.0f} s"
                )
            missing = {node for node in missing if not self._view(node, number)}
            time.sleep(0.25)  # the launchers' own clocks are read; more looks would take the time from them
        return time.monotonic() - start_s

    def wait_for_ranks(self) -> float:
        start_s, marks = time.monotonic(), self.folder / "marks"
        while len([*marks.iterdir()]) < self.count - SPARE_NODES:
            ended = sum(each.poll() is not None for each in self.launchers)
            if ended or time.monotonic() - start_s > LIMIT_S:
                raise SystemExit(f"{ended} launchers have ended, and not all ranks have a place")
            time.sleep(0.2)
        seconds = time.monotonic() - start_s
        time.sleep(3.0)  # a launcher that came late may have called for one more
        while self._view(0, self.views + 1):
            self.views += 1
        self.wait_for_view(self.views)
        return seconds

    def _view(self, node: int, number: int) -> str:
        return next(
            (line["message"] for line in self.log_lines(node) if line["message"].startswith(f"generation {number}: ")),
            "",
        )

    def idle(self, seconds: float) -> list[float]:
        before = [cpu_s(each.pid) for each in self.launchers]
        time.sleep(seconds)
        return [(cpu_s(each.pid) - was) / seconds for each, was in zip(self.launchers, before, strict=True)]

    def lose_a_rank(self) -> tuple[float, str]:
        """Kill one; seconds by the clocks of the launchers' own lines, and what one of them says of it."""
        pid = int((self.folder / "marks" / str(self.views)).read_text())
        killed_ns = time.time_ns()
        os.kill(pid, signal.SIGKILL)
        self.views += 1
        self.wait_for_view(self.views)
        begins = f"generation {self.views}: "
        found = [
            line for node in range(self.count) for line in self.log_lines(node) if line["message"].startswith(begins)
        ]
        last = max(line["time_ns"] for line in found)
        return (last - killed_ns) / 1e9, found[0]["message"].rpartition("; ")[2]

    def lost(self) -> int:
        return sum(" is lost: " in line["message"] for node in range(self.count) for line in self.log_lines(node))

    def end(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second request would leave some behind
        for each in self.launchers:
            if each.poll() is None:
                each.send_signal(signal.SIGTERM)
        for each in self.launchers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                each.wait(timeout=60)
        for each in self.launchers:
            if each.poll() is None:
                each.kill()
                each.wait()


@contextlib.contextmanager
def computing(count: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
