"""
Protocol of launchers and the health agent of their node: JSON lines on one Unix socket.

The agent listens, launchers connect. Launchers send ``LauncherReport`` and ``Answer``, the agent ``Command``. Each line
is validated, since the other end may be any program of any user; both ends verify their peer by the kernel.
"""

import json
import math
from dataclasses import dataclass, fields
from typing import Any, Optional, Union

PATH = "/run/holdfast/agent.sock"
PATH_VARIABLE = "HOLDFAST_AGENT_SOCKET"
VERSION = 1
LINE_BYTES = 1 << 16
"""Longest line of the protocol."""
RANKS = 256
"""Of one node."""
TEXT_LENGTH = 500
NAME_LENGTH = 128

COMMANDS = ("hand-over", "quarantine", "dump", "restart", "abandon")
"""
hand-over: give the ranks of this node to the spare at the next common step, and end. quarantine: no process of this
node gets a rank of this run any more; those that have one keep it. dump: write where each rank is, for people.
restart: kill the processes of some ranks, which hang; they are restarted. abandon: exit at once, with all ranks,
since the node is taken; the job continues.
"""
OUTCOMES = ("begun", "done", "later", "refused", "failed")
"""
later: not possible now, a retry may succeed. refused: never possible. Nothing was changed in either.
failed: it was started, and the job continues unchanged.
"""


class NodeSocketError(ValueError):
    """Line violates the protocol."""


@dataclass(frozen=True)
class RankReport:
    """
    One process of a launcher; a spare has rank -1.

    Args:
        pid: In the launcher's namespace.
        step: Finished updates.
        busy: Share of the step without waiting for others, 0 to 1. None: not measured.
    """

    rank: int
    pid: int
    step: int
    phase: str
    phase_s: float
    busy: Optional[float] = None


@dataclass(frozen=True)
class LauncherReport:
    """
    Processes of one launcher; sent on connection, on changes, and every second.

    Args:
        job: Slurm's job (or job array), or the name of a Kubernetes job.
        task: Slurm's number of this task of a job array, to requeue it by; else empty.
        generation: 0 before the first.
        spares: Warm processes of other nodes that could take ranks of this one.
    """

    job: str
    task: str
    run: str
    node: int
    generation: int
    step: int
    spares: int
    ranks: "tuple[RankReport, ...]"


@dataclass(frozen=True)
class Command:
    """Request of the agent; ``urgent``: the node is unreliable, and ranks that pass no step are killed."""

    id: str
    command: str
    reason: str = ""
    ranks: "tuple[int, ...]" = ()
    urgent: bool = False


@dataclass(frozen=True)
class Answer:
    """
    Result of a command.

    Args:
        reason: Of a refusal; for a dump, its path.
        ranks: Those handed over, or that would be.
        step: Training continues from it.
        steps_lost: Committed steps that are repeated, or would be.
    """

    id: str
    command: str
    outcome: str
    reason: str = ""
    ranks: "tuple[int, ...]" = ()
    step: int = 0
    steps_lost: int = 0
    seconds: float = 0.0


NodeMessage = Union[LauncherReport, Command, Answer]

_NAMES = {LauncherReport: "report", Command: "command", Answer: "answer"}
_TYPES = {name: kind for kind, name in _NAMES.items()}
_LONG = ("reason",)
_CHOICES = {"command": COMMANDS, "outcome": OUTCOMES}
_LEAST = {"rank": -1}


def to_line(message: NodeMessage) -> bytes:
    """One line, with its end; long texts are cut. Raises NodeSocketError."""
    values = {"version": VERSION, "type": _NAMES[type(message)], **_plain(message)}
    line = json.dumps(values, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > LINE_BYTES:
        raise NodeSocketError(f"a line may have {LINE_BYTES} bytes, got {len(line)}")
    from_line(line)
    return line


def from_line(line: bytes) -> NodeMessage:
    if len(line) > LINE_BYTES:
        raise NodeSocketError(f"a line may have {LINE_BYTES} bytes, got {len(line)}")
    try:
        values = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise NodeSocketError(f"not JSON: {error}") from None
    if not isinstance(values, dict):
        raise NodeSocketError("a line must be a JSON object")
    version, name = values.pop("version", None), values.pop("type", None)
    if type(version) is not int or version != VERSION:
        raise NodeSocketError(f"version must be {VERSION}, got {version!r}")
    if not isinstance(name, str) or name not in _TYPES:
        raise NodeSocketError(f"type must be one of {', '.join(_TYPES)}")
    message: NodeMessage = _object(_TYPES[name], values, name)
    return message


def _plain(message: Any) -> "dict[str, Any]":
    values = {}
    for item in fields(message):
        value = getattr(message, item.name)
        if isinstance(value, str):
            value = value[: _longest(item.name)]
        elif isinstance(value, tuple):
            value = [each if isinstance(each, int) else _plain(each) for each in value]
        values[item.name] = value
    return values


def _longest(name: str) -> int:
    return TEXT_LENGTH if name in _LONG else NAME_LENGTH


def _object(kind: Any, values: Any, path: str) -> Any:
    names = [item.name for item in fields(kind)]
    if not isinstance(values, dict) or values.keys() != set(names):
        raise NodeSocketError(f"{path} must be an object with {', '.join(names)}")
    return kind(**{name: _value(kind, name, values[name], f"{path}.{name}") for name in names})


def _value(kind: Any, name: str, value: Any, path: str) -> Any:
    if name == "ranks":
        if type(value) is not list or len(value) > RANKS:
            raise NodeSocketError(f"{path} must be a list of at most {RANKS}")
        if kind is LauncherReport:
            return tuple(_object(RankReport, each, path) for each in value)
        return tuple(_whole(each, path, least=0) for each in value)
    expected = _KINDS[name]
    if expected is str:
        if type(value) is not str or len(value) > _longest(name):
            raise NodeSocketError(f"{path} must be a string of at most {_longest(name)} characters")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise NodeSocketError(f"{path} must be one of {', '.join(_CHOICES[name])}")
        return value
    if expected is bool:
        if type(value) is not bool:
            raise NodeSocketError(f"{path} must be true or false")
        return value
    if expected is int:
        return _whole(value, path, least=_LEAST.get(name, 0))
    if value is None and name == "busy":
        return None
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0 or (name == "busy" and value > 1):
        raise NodeSocketError(f"{path} must be a number of {'0 to 1' if name == 'busy' else '0 or more'}")
    return float(value)


def _whole(value: Any, path: str, *, least: int) -> int:
    if type(value) is not int or not least <= value < 1 << 53:
        raise NodeSocketError(f"{path} must be a whole number from {least} on")
    return value


_KINDS: "dict[str, type]" = {
    **dict.fromkeys(("job", "task", "run", "phase", "id", "command", "outcome", "reason"), str),
    **dict.fromkeys(("rank", "pid", "node", "generation", "step", "spares", "steps_lost"), int),
    **dict.fromkeys(("phase_s", "busy", "seconds"), float),
    "urgent": bool,
}
