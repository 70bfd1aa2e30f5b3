"""
A change of size in place, beside checkpoint and restart of the same model, in one run; and what ordered sums cost.

    python benchmarks/elastic.py              # 4 -> 2 and 2 -> 4 ranks, then CPU per step of 4 ranks
    python benchmarks/elastic.py --steps 40

The time without a step is from the end of the last step at one size to the beginning of the first at the other. The
CPU of a step is that of all threads of all ranks, of two models that train in turn in the same processes: one with
torch's reduce-scatter, one with sums in the order of logical ranks. Exit status 1 where the time is above 1/8 of that
of checkpoint and restart, or the CPU more than 10 % above torch's.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("elastic_program.py")
LIMIT, CPU_LIMIT = 1 / 8, 1.10
PRELOAD = "torch,torch._dynamo,torch.distributed.fsdp,holdfast_runtime.inprocess"
RESTART_STEPS = 4
DEADLINE_S = 600.0


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("rank*.jsonl") for line in path.read_text().splitlines()]


def until(holds: Callable[[], bool], what: str, folder: Path, *, within_s: float) -> None:
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            log = folder / "log"
            shown = log.read_text()[-2000:] if log.is_file() else ""
            raise TimeoutError(f"{what} did not come about in {within_s:g} s\n{shown}")
        time.sleep(0.2)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def ports(count: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [int(door.getsockname()[1]) for door in doors]
    for door in doors:
        door.close()
    return found


@contextmanager
def launched(folder: Path, steps: int, *, nodes: int) -> Iterator[None]:
    peers = ",".join(f"127.0.0.1:{port}" for port in ports(nodes))
    own = {"HOLDFAST_TOKEN": "of a benchmark", "HOLDFAST_AGENT_SOCKET": str(folder / "none")}
    with (folder / "log").open("w") as log:
        launchers = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "holdfast_runtime.launcher", "--peers", peers, "--node-rank", str(node)),
                    *("--sizes", f"2,{nodes}", "--rdzv-id", str(folder), "--socket", str(folder / f"{node}.sock")),
                    *("--preload", PRELOAD, str(PROGRAM), str(folder), "elastic", str(steps)),
                ],
                env={**os.environ, **own},
                stdout=log,
                stderr=log,
            )
            for node in range(nodes)
        ]
        try:
            yield
            for launcher in launchers:
                launcher.wait(DEADLINE_S)
        finally:
            for launcher in launchers:
                launcher.kill()
                launcher.wait()


def reached(folder: Path, step: int, *, size: int) -> None:
    end = time.monotonic() + DEADLINE_S
    while not any(line["step"] >= step and line["size"] == size for line in lines(folder)):
        if time.monotonic() > end:
            raise TimeoutError((folder / "log").read_text()[-2000:])
        time.sleep(0.1)


def gap(found: list[dict[str, Any]], *, before: int, after: int) -> float:
    """Seconds without a step between the last one at a size and the first one at another."""
    by_step: dict[int, list[dict[str, Any]]] = {}
    for line in found:
        by_step.setdefault(line["step"], []).append(line)
    for number, lines_of in sorted(by_step.items()):
        following = by_step.get(number + 1, [])
        if following and (lines_of[0]["size"], following[0]["size"]) == (before, after):
            return float(min(line["began"] for line in following) - max(line["ended"] for line in lines_of))
    raise RuntimeError(f"the job never went from {before} to {after} ranks")


def in_place(folder: Path, steps: int) -> dict[str, float]:
    from holdfast_runtime.launcher.node import ask

    with launched(folder, steps, nodes=4):
        reached(folder, 3, size=4)
        ask(folder / "0.sock", say="scale 2")
        reached(folder, 3, size=2)
        middle = max(line["step"] for line in lines(folder)) + 3
        reached(folder, middle, size=2)
        ask(folder / "0.sock", say="scale 4")
    found = lines(folder)
    return {"4 -> 2": gap(found, before=4, after=2), "2 -> 4": gap(found, before=2, after=4)}


def ranks(folder: Path, way: str, steps: int, *, size: int) -> None:
    (port,) = ports(1)
    own = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), way, str(steps)], env={**os.environ, **own, "RANK": str(rank)}
        )
        for rank in range(size)
    ]
    for each in started:
        if each.wait(DEADLINE_S):
            raise RuntimeError(f"a rank ended with {each.returncode}")


def by_restart(folder: Path, before: int, after: int) -> float:
    for size in (before, after):
        ranks(folder, "restart", RESTART_STEPS, size=size)
    return gap(lines(folder), before=before, after=after)


def cpu(folder: Path, steps: int) -> tuple[float, float]:
    """CPU seconds of a step of all ranks: torch's and ordered, medians."""
    ranks(folder, "cpu", steps, size=4)
    found = lines(folder)

    def median(name: str) -> float:
        by_step = [
            sum(line[name] for line in found if line["step"] == step and name in line) for step in range(2, steps)
        ]
        return float(statistics.median(by_step))

    return median("torch"), median("ordered")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=24, help="of the CPU part. Default: 24")
    parser.add_argument("--long", type=int, default=60, help="of the elastic job. Default: 60")
    values = parser.parse_args()
    bad = False
    with tempfile.TemporaryDirectory() as text:
        home = Path(text)
        for name in ("elastic", "4 -> 2", "2 -> 4", "cpu"):
            (home / name).mkdir()
        ours = in_place(home / "elastic", values.long)
        for (before, after), name in (((4, 2), "4 -> 2"), ((2, 4), "2 -> 4")):
            theirs = by_restart(home / name, before, after)
            ratio = ours[name] / theirs
            bad |= ratio > LIMIT
            print(f"{name}: {ours[name]:.2f} s in place, {theirs:.2f} s by checkpoint and restart: {ratio:.3f} of it")
        torch_s, ordered_s = cpu(home / "cpu", values.steps)
        bad |= ordered_s > CPU_LIMIT * torch_s
        print(
            f"CPU per step, 4 ranks: torch {torch_s:.3f} s, ordered {ordered_s:.3f} s: {ordered_s / torch_s:.3f} of it"
        )
        print(f"load {os.getloadavg()[0]:.1f}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
