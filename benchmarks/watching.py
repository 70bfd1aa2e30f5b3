"""
What launchers cost while nothing happens, by the number of them: each gives signs of life to those that watch it.

    python benchmarks/watching.py [--launchers 8,16,32] [--seconds 10]

Real launchers on loopback, each with one process that sleeps. CPU is that of the launchers alone (user and system, of
/proc/PID/stat), as a share of one core for each; seconds are until all of them have the first view. One core serves
many launchers here, so only the shares beside each other say something.
"""

import argparse
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import recovery

PROGRAM = """
import os, sys, time
open(os.path.join(sys.argv[1], os.environ["RANK"]), "w").close()
time.sleep(3600)
"""
LIMIT_S = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("--launchers", default="8,16,32")
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    print("launchers   first view after   share of a core for each (median, most)   beside the fewest")
    fewest: float | None = None
    for count in map(int, options.launchers.split(",")):
        began_s, shares = measured(count, seconds=options.seconds)
        share = statistics.median(shares)
        fewest = fewest or share
        print(f"{count:9}   {began_s:14.2f} s   {share:12.2%} {max(shares):8.2%} {share / fewest:31.2f}", flush=True)


def measured(count: int, *, seconds: float) -> tuple[float, list[float]]:
    """Seconds until all have the first view, and the share of a core that each launcher takes from then on."""
    with contextlib.ExitStack() as doors:
        ports = [doors.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]
    peers = ",".join(f"127.0.0.1:{port}" for port in ports)
    with tempfile.TemporaryDirectory() as folder:
        program, marks = Path(folder, "sleeps.py"), Path(folder, "marks")
        program.write_text(PROGRAM)
        marks.mkdir()
        environment = {**os.environ, "PYTHONPATH": recovery.PYTHONPATH, "HOLDFAST_TOKEN": "benchmark"}
        start_s = time.monotonic()
        launchers = []
        for node in range(count):
            command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", "1"]
            command += ["--peers", peers, "--node-rank", str(node), "--rdzv-id", "benchmark", "--preload", "json"]
            command += ["--socket", str(Path(folder, f"{node}.sock"))]
            launchers.append(
                subprocess.Popen([*command, str(program), str(marks)], env=environment, stderr=subprocess.DEVNULL)
            )
        try:
            while len(list(marks.iterdir())) < count:
                if time.monotonic() - start_s > LIMIT_S:
                    raise SystemExit(f"{count} launchers have no view after {LIMIT_S:g} s")
                time.sleep(0.05)
            began_s = time.monotonic() - start_s
            time.sleep(2.0)
            before = [cpu_s(each.pid) for each in launchers]
            time.sleep(seconds)
            return began_s, [(cpu_s(each.pid) - was) / seconds for each, was in zip(launchers, before, strict=True)]
        finally:
            for each in launchers:
                each.send_signal(signal.SIGTERM)
            for each in launchers:
                each.wait(timeout=60)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
