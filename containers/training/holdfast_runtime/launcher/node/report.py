"""Requests to a launcher: ``holdfast-run status`` and ``scale`` on a Unix socket, Prometheus on a port."""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast_common import plain
from holdfast_runtime.control import listen
from holdfast_runtime.launcher.asking import (
    Situation,
    ask_socket,
    default_job,
    find_sockets,
    folders,
    peer_uid,
    searched,
    spare_of,
    waits_for,
)
from holdfast_runtime.launcher.generation import ranges
from holdfast_runtime.launcher.node.launcher import Launcher
from holdfast_runtime.launcher.ranks import stacks_of
from holdfast_runtime.launcher.settings import default_socket, make_folder
from holdfast_runtime.patience import ProgressReport

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MOST_DIGITS = 9
ANSWER_S = 5.0
"""A launcher answers at once, whatever its job does."""
ASK_S = 0.5
"""Time for a caller to send a request; one that sends none receives the status."""
MOST_CALLERS = 32
"""At once; the next one is hung up on. A job needs its descriptors for itself."""


class Reports:
    """Answers while the launcher runs."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> None:
        path, port = self._launcher.options.socket, self._launcher.options.metrics_port
        try:
            if path == default_socket(self._launcher.options.run_id, self._launcher.options.node_rank):
                make_folder(path.parent, uid=os.geteuid())
            path.unlink(missing_ok=True)
            self._servers.append(await asyncio.start_unix_server(self._bounded(self._status), str(path)))
            path.chmod(0o600)
        except OSError as error:  # another user may have put something there, which is no reason to end a job
            self._launcher.journal.say(f"holdfast-run status is not available at {path}: {error}")
        if port is not None:
            self._servers.append(await asyncio.start_server(self._bounded(self._metrics), sock=listen(port=port)))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        with contextlib.suppress(OSError):
            self._launcher.options.socket.unlink(missing_ok=True)

    @staticmethod
    def _bounded(answer: Answering) -> Answering:
        """The same for so many callers at a time, and for so long: one that reads nothing is left."""
        callers: set[asyncio.StreamWriter] = set()

        async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answer(reader, writer)
            writer.close()
            await writer.wait_closed()

        async def bounded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            callers.add(writer)
            try:
                if len(callers) <= MOST_CALLERS:
                    with contextlib.suppress(asyncio.TimeoutError, OSError):
                        await asyncio.wait_for(answered(reader, writer), ANSWER_S)
            finally:
                callers.discard(writer)
                writer.transport.abort()

        return bounded

    async def _status(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer_uid(writer.get_extra_info("socket")) not in (0, os.geteuid()):
            return
        line = b""
        with contextlib.suppress(asyncio.TimeoutError, OSError, ValueError):
            line = await asyncio.wait_for(reader.readline(), ASK_S)
        word, _, number = line.decode(errors="replace").strip().partition(" ")
        if word == "scale" and number.isdecimal() and len(number) <= MOST_DIGITS:
            found: dict[str, Any] = {"refused": self._launcher.resizing.ask(int(number))}
        elif word == "stacks":
            found = {"stacks": await stacks_of(self._launcher.slots)}
        else:
            found = describe(self._launcher)
        await self._answer(writer, json.dumps(found).encode() + b"\n")

    async def _metrics(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.TimeoutError, OSError, ValueError):
            await asyncio.wait_for(reader.readline(), ASK_S)
        text = self._launcher.metrics().encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(text)}\r\n"
        await self._answer(writer, head.encode() + b"Connection: close\r\n\r\n" + text)

    async def _answer(self, writer: asyncio.StreamWriter, text: bytes) -> None:
        with contextlib.suppress(OSError):
            writer.write(text)
            await writer.drain()


def describe(launcher: Launcher) -> dict[str, Any]:
    view = launcher.slots.view
    lost = [node for node in launcher.expansion.lost if node not in launcher.links.up]
    return {
        "node": launcher.slots.node,
        "generation": view.generation,
        "nodes": [node for node, incarnation in enumerate(view.nodes) if incarnation >= 0] if view.generation else [],
        "in_reach": sorted(launcher.links.up | {launcher.slots.node}),
        "may_be_lost": launcher.witness.may_be_lost if view.generation else 0,
        "witness": launcher.witness.votes,
        "survives": asdict(launcher.slots.survives) if launcher.slots.survives is not None else None,
        "world_size": len(view.ranks),
        "sizes": list(launcher.options.sizes),
        "nodes_asked": launcher.slots.asked.ranks // launcher.options.processes,
        "resume_step": view.resume_step,
        "step": launcher.slots.known_step,
        "requested": launcher.slots.requested,
        "waits_for": waits_for(situation(launcher)),
        "lost": lost,
        "spare": spare_of(
            lost=lost,
            spares=len(view.spares) + launcher.departure.spares,
            answer=launcher.options.expansion.answer,
        ),
        "forker": launcher.forker_pid,
        "silence_s": launcher.silence_s,
        **launcher.deadlines,
        "recoveries": launcher.journal.recoveries,
        "last_recovery_s": launcher.journal.last_recovery_s,
        "steps_lost": launcher.journal.steps_lost,
        "processes": [
            {
                "slot": slot.index,
                "pid": slot.process.pid,
                "role": "rank" if slot.rank >= 0 else "spare",
                "rank": slot.rank,
                "incarnation": slot.incarnation,
                "ready": slot.ready is not None,
                "step": slot.progress.step if slot.progress else 0,
                "phase": slot.progress.phase if slot.progress else "start",
                "silent_s": time.monotonic() - slot.heard_s,
            }
            for slot in launcher.slots
            if slot.process is not None
        ],
    }


def situation(launcher: Launcher) -> Situation:
    slots, view, now_s = launcher.slots, launcher.slots.view, time.monotonic()
    return Situation(
        generation=view.generation,
        missing=sorted(set(range(launcher.options.nodes)) - launcher.links.up - {slots.node}),
        requested=launcher.slots.requested,
        staying=[slot.rank for slot in slots.unresponsive()] if launcher.slots.requested and slots.in_process else [],
        starting=sum(slot.alive and slot.ready is None for slot in slots),
        unanswered=launcher.generations.unanswered,
        reports=[
            ProgressReport(slot.rank, slot.progress.step, slot.progress.phase, now_s - slot.heard_s)
            for slot in slots
            if slot.rank >= 0 and slot.progress is not None and not slot.finished
        ],
        world_size=len(view.ranks),
    )


def print_status(arguments: Sequence[str]) -> int:
    parser = _asking("status")
    parser.add_argument("--json", action="store_true")
    values = parser.parse_args(arguments)
    paths = _sockets(parser, values)
    code = 0
    for path in paths:
        if len(paths) > 1 and not values.json:
            print(f"{path}:")
        try:
            found = _answer(path)
        except AnswerError as error:
            if len(paths) == 1:
                parser.exit(1, f"{error}\n")
            print(f"  {error}", file=sys.stderr if values.json else sys.stdout)
            code = 1
            continue
        print(json.dumps(found, indent=2) if values.json else "\n".join(map(plain, _lines(found))))
    return code


def _lines(found: dict[str, Any]) -> list[str]:
    reach = ranges(found["in_reach"])
    lines = [f"node {found['node']}  generation {found['generation']}  step {found['step']}  nodes in reach {reach}"]
    if found["waits_for"]:
        lines.append(f"waits for {found['waits_for']}")
    if found["requested"]:
        lines.append(f"next generation: {found['requested']}")
    if found["lost"]:
        lines.append(f"lost nodes {ranges(found['lost'])}" + (f": {found['spare']}" if found["spare"] else ""))
    if found["sizes"]:
        asked = f", {found['nodes_asked']} asked for" if found["nodes_asked"] else ""
        lines.append(f"{found['world_size']} ranks; sizes in nodes {', '.join(map(str, found['sizes']))}{asked}")
    last = f"the last in {found['last_recovery_s']:.3f} s"
    lines.append(f"recoveries {found['recoveries']}, {last}; steps lost {found['steps_lost']}")
    if found["survives"] is not None:
        lines.append(f"state in memory: {found['survives']['sentence']}")
    for process in found["processes"]:
        warm = "warm" if process["ready"] else "starting"
        place = f"rank {process['rank']}" if process["role"] == "rank" else f"spare, {warm}"
        doing = f"step {process['step']:<8} {process['phase']}"
        lines.append(f"  slot {process['slot']}  pid {process['pid']:<8} {place:<16} {doing}")
    return lines


def ask_for_size(arguments: Sequence[str]) -> int:
    parser = _asking("scale")
    parser.add_argument("nodes", type=int, help="New number of nodes; one of the job's sizes")
    values = parser.parse_args(arguments)
    paths = _sockets(parser, values)
    if len(paths) > 1:
        parser.exit(1, f"{len(paths)} launchers run here; name one with --socket: {', '.join(map(str, paths))}\n")
    try:
        found = _answer(paths[0], say=f"scale {values.nodes}")
    except AnswerError as error:
        parser.exit(1, f"{error}\n")
    if found["refused"]:
        parser.exit(1, f"{plain(str(found['refused']))}\n")
    print(f"resize requested: {values.nodes} nodes; holdfast-run status shows the current size")
    return 0


def _asking(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"holdfast-run {name}")
    parser.add_argument("--socket", type=Path, help="Status socket. Default: those of all launchers of this node")
    parser.add_argument("--rdzv-id", help="Name of the job. Default: any")
    parser.add_argument("--node-rank", type=int, help="Node rank of the launcher. Default: any")
    return parser


def _sockets(parser: argparse.ArgumentParser, values: argparse.Namespace) -> list[Path]:
    if values.socket is not None:
        return [values.socket]
    job = default_job(os.environ)
    uid = os.geteuid()
    found = find_sockets(folders(os.environ, uid=uid), run=values.rdzv_id, node=values.node_rank, job=job)
    if not found:
        where = searched(os.environ, uid=uid)
        parser.exit(1, f"no launcher of this user runs on this node: no RUN-NODE.sock in {where}; give --socket\n")
    return [one.path for one in found]


class AnswerError(Exception):
    """A launcher gives no answer."""


def _answer(path: Path, *, say: str = "") -> dict[str, Any]:
    """Return the answer of a launcher. Raises AnswerError."""
    try:
        return ask(path, say=say)
    except TimeoutError:
        raise AnswerError(
            f"the launcher at {path} did not answer within {ANSWER_S:g} s: it is stopped (SIGSTOP) or hangs; "
            "continue it with kill -CONT, or end the job"
        ) from None
    except (ConnectionResetError, BrokenPipeError, ValueError):  # reset: what it was asked lay unread when it ended
        why = "it ended while it answered, or answered what no launcher does"
    except OSError as error:
        why = error.strerror or str(error)
    raise AnswerError(f"no launcher answers at {path} ({why}); name its socket with --socket")


def ask(path: Path, *, say: str = "") -> dict[str, Any]:
    """Return the answer of a launcher. Default: its status. Raises OSError, ValueError."""
    uid = os.geteuid()
    answer = ask_socket(path, say=say, uids=(0, uid) if uid else None, within_s=ANSWER_S)
    found: dict[str, Any] = json.loads(answer)
    return found
