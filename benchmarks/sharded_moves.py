"""
A planned move of a rank of a sharded job to a spare that is warm: how long it pauses, beside a step and the copy.

    python benchmarks/sharded_moves.py [--moves 6] [--compile]

Four ranks of the job of ``sharded.py`` (FSDP2, gloo, 137 MB of state per rank) under four launchers, and a fifth one
with a spare. Again and again one of the four gives its rank away, as a health agent would ask it to, and is started
anew as the spare some steps later: a node that has given its ranks away is repaired first, and its start takes no CPU
of the others. For each move: the time without a step, beyond the usual one, beside a usual step and the copy of the
state; and the first step after it beside a usual one. Exit status 1 when the pause is longer than a step and the copy,
or the first step longer than its limit, by the median of all moves, or when a step was done twice. ``--compile``: with
each block under torch.compile.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from elastic import ports
from holdfast_agent.launchers import LauncherSocket
from holdfast_common import kinds, node_socket
from recovery import events_of
from sharded import FIRST_STEP_LIMIT, HERE, PRELOADED, PYTHONPATH, WARM, Row, rows_of, usual_step_s

LAUNCHERS, RANKS = 5, 1
BETWEEN_S = 12.0
"""From one move to the next: a launcher comes back, and its spare makes its model."""
EVERY = 6
"""Updates between two snapshots."""
STEADY = 2 * EVERY + WARM
"""The step from which on memory for snapshots is there at all ranks."""
LIMIT_S = 900.0
AGAIN = 75
"""Exit code of a launcher that has given its ranks away."""


@dataclass(frozen=True)
class Move:
    pause_s: float
    """Without a step, beyond a usual one."""
    copy_s: float
    first_step: float
    """How long the first step after it took, over a usual one."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.compile:
        os.environ["BENCHMARK_COMPILE"] = "1"
    with tempfile.TemporaryDirectory(prefix="holdfast-moves-") as name:
        steps = moved(Path(name), options.moves)
        rows, events = rows_of(Path(name)), events_of(Path(name))
    usual_s = usual_step_s(rows)
    found = [measured(rows, events, step, usual_s=usual_s) for step in steps]
    again = len(rows) - len({(row.rank, row.step) for row in rows})
    console = Console(width=120)
    console.print(table(found, usual_s))
    pause_s = statistics.median(move.pause_s for move in found)
    allowed_s = usual_s + statistics.median(move.copy_s for move in found)
    first = statistics.median(move.first_step for move in found)
    console.print(f"pause of a move: {pause_s:.3f} s (limit {allowed_s:.3f} s, a step and the copy)")
    console.print(f"first step after a move: {first:.2f} of a usual one (limit {FIRST_STEP_LIMIT})")
    console.print(f"steps done twice: {again}")
    return 0 if pause_s <= allowed_s and first <= FIRST_STEP_LIMIT and not again else 1


def measured(rows: Sequence[Row], events: Sequence[Mapping[str, object]], step: int, *, usual_s: float) -> Move:
    """The move before a step."""
    before = max(row.ended_s for row in rows if row.step == step - 1)
    first = [row for row in rows if row.step == step]
    gap_s = max(row.ended_s for row in first) - before
    copies = [
        duration
        for event in events
        if event["kind"] == kinds.RECOVERY_COPIED
        and isinstance(at_ns := event["time_ns"], int)
        and isinstance(duration := event["duration_s"], float)
        and before <= at_ns / 1e9 <= before + gap_s
    ]
    longest = statistics.median(row.ended_s - row.began_s for row in first)
    return Move(pause_s=gap_s - usual_s, copy_s=max(copies, default=0.0), first_step=longest / usual_s)


def moved(folder: Path, moves: int) -> list[int]:
    steps: list[int] = []
    with ExitStack() as opened, (folder / "output").open("w") as log:
        agents = [LauncherSocket(path=folder / f"{node}.agent") for node in range(LAUNCHERS)]
        for agent in agents:
            opened.callback(agent.close)
        peers = ",".join(f"127.0.0.1:{port}" for port in ports(LAUNCHERS))
        launchers = [_start(folder, node, peers, log.fileno()) for node in range(LAUNCHERS)]
        opened.callback(_end, launchers)
        asked, end, last = False, time.monotonic() + LIMIT_S, time.monotonic()
        with Console(stderr=True).status(f"{moves} moves"):
            while len(steps) < moves or not _has(folder, step=steps[-1] + WARM):
                if time.monotonic() > end:
                    raise SystemExit(f"{len(steps)} moves in {LIMIT_S:g} s:\n{(folder / 'output').read_text()[-3000:]}")
                settled = _has(folder, step=steps[-1] + WARM if steps else STEADY)
                for node, launcher in enumerate(launchers):
                    if launcher.poll() == AGAIN and settled and not asked:
                        launchers[node] = _start(folder, node, peers, log.fileno())
                for agent in agents:
                    agent.poll()
                    for _, answer in agent.answers():
                        if answer.outcome == "done":
                            steps.append(answer.step)
                            last = time.monotonic()
                        asked = asked and answer.outcome == "begun"
                    able = [job for job in agent.jobs() if job.can_hand_over]
                    due = settled and len(steps) < moves and time.monotonic() - last > BETWEEN_S
                    if able and due and not asked:
                        order = node_socket.Command(id=str(time.time_ns()), command="hand-over", reason="measured")
                        asked = agent.tell(able[0], order)
                time.sleep(0.02)
    return steps


def _has(folder: Path, *, step: int) -> bool:
    path = folder / "steps"
    return path.exists() and any(int(line.split()[2]) >= step for line in path.read_text().splitlines())


def _start(folder: Path, node: int, peers: str, log: int) -> subprocess.Popen[bytes]:
    variables = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1", "HOLDFAST_INSTANCE_ID": f"i-{node}"}
    variables |= {"HOLDFAST_EVENTS": str(folder / "events.jsonl"), "HOLDFAST_TOKEN": "of a benchmark"}
    variables |= {"HOLDFAST_AGENT_SOCKET": str(folder / f"{node}.agent")}
    command = [sys.executable, "-m", "holdfast_runtime.launcher", "--nproc-per-node", str(RANKS), "--spares", "0"]
    command += ["--peers", peers, "--node-rank", str(node), "--spare-nodes", "1", "--rdzv-id", str(folder)]
    command += ["--socket", str(folder / f"{node}.sock"), "--preload", PRELOADED]
    command += [str(HERE / "sharded_program.py"), str(folder), "100000", str(EVERY)]
    return subprocess.Popen(command, env=variables, stdout=log, stderr=log)


def _end(launchers: Sequence[subprocess.Popen[bytes]]) -> None:
    for launcher in launchers:
        launcher.kill()
        launcher.wait()


def table(found: Sequence[Move], usual_s: float) -> Table:
    made = Table(title=f"{len(found)} moves of one of four ranks of FSDP2, 137 MB per rank, steps of {usual_s:.3f} s")
    for column in ("move", "pause", "copy", "first step"):
        made.add_column(column, justify="right")
    for number, move in enumerate(found):
        made.add_row(str(number + 1), f"{move.pause_s:.3f} s", f"{move.copy_s:.3f} s", f"{move.first_step:.2f}")
    return made


if __name__ == "__main__":
    sys.exit(main())
