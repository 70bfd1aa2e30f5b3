"""
Protocol between the agent and the executor: lines of JSON over a socket pair.

The executor identifies its node: no message carries a node's name, a command or a path. Pure.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Optional

from holdfast_agent.remedies.breaker import Mark, Stage

MOST_BYTES = 1 << 20
MOST_JOBS = 256
DEEDS = ("look", "claim", "go", "refuse", "clear", "ask", "force", "requeue", "reset")
REMEDIES = ("reset-gpu", "reboot", "replace")
_TASK = re.compile(r"[0-9]{1,12}(_[0-9]{1,9})?")
_TASKS = re.compile(rf"{_TASK.pattern}(,{_TASK.pattern}){{0,63}}")
_FAULT = re.compile(r"[a-z][a-z0-9-]{0,62}")
_DEVICE = re.compile(r"([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(\.[0-7])?")


class WordsError(ValueError):
    """Message violates the protocol."""


@dataclass(frozen=True)
class Request:
    """
    Action for the executor.

    Args:
        number: Repeated in the answer.
        deed: Of ``DEEDS``.
        remedy: For claim, go, refuse, ask and force: of ``REMEDIES``.
        subject: For requeue: a Slurm task; for ask: tasks to requeue at once, as the node may be gone next; for reset:
            a PCI address.
    """

    number: int
    deed: str
    remedy: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Job:
    name: str
    task: str
    number: str
    user: str


@dataclass(frozen=True)
class View:
    """
    State of this node, and marks of all nodes.

    Args:
        me: The node's name.
        now_s: UTC seconds, by the clock of the marks.
        foreign: A mark of others on this node, such as HyperPod's reason or label; else empty.
        asks: Request of ``foreign``: reboot, replace, or nothing.
        is_asked: Our own request is on the node.
        is_controller: This node is never taken.
    """

    me: str
    nodes: int
    marks: "tuple[Mark, ...]" = ()
    now_s: float = 0.0
    jobs: "tuple[Job, ...]" = ()
    foreign: str = ""
    asks: str = ""
    is_asked: bool = False
    is_controller: bool = False


@dataclass(frozen=True)
class Answer:
    """
    Result of a request.

    Args:
        outcome: done; in-use (requested by others); refused (retrying does not help); failed (retrying may help).
        view: Of a look.
    """

    number: int
    deed: str
    outcome: str
    why: str = ""
    view: Optional[View] = None


OUTCOMES = ("done", "in-use", "refused", "failed")


def request_line(request: Request) -> bytes:
    return json.dumps(asdict(request)).encode()


def parse_request(line: bytes) -> Request:
    values = _object(line)
    if set(values) != {"number", "deed", "remedy", "subject"}:
        raise WordsError(f"a request needs number, deed, remedy and subject, got {', '.join(sorted(values))[:200]}")
    number, deed, remedy, subject = (values[name] for name in ("number", "deed", "remedy", "subject"))
    if type(number) is not int or deed not in DEEDS or not isinstance(remedy, str) or not isinstance(subject, str):
        raise WordsError(f"deed must be one of {', '.join(DEEDS)}, got {deed!r:.100}")
    needs_remedy = deed in ("claim", "go", "refuse", "ask", "force")
    if (remedy in REMEDIES) != needs_remedy or (remedy and not needs_remedy):
        raise WordsError(f"{deed} with the remedy {remedy!r:.100}; there are {', '.join(REMEDIES)}")
    pattern = {"requeue": _TASK, "reset": _DEVICE, "claim": _FAULT, "ask": _TASKS}.get(deed)
    needs_subject = bool(pattern) and deed != "ask"
    if (needs_subject and not subject) or (subject and not (pattern and pattern.fullmatch(subject))):
        raise WordsError(f"{deed} with the subject {subject!r:.100}")
    return Request(number=number, deed=str(deed), remedy=remedy, subject=subject)


def answer_line(answer: Answer) -> bytes:
    values = asdict(answer)
    values["why"] = answer.why[:500]
    if answer.view is not None:
        values["view"]["marks"] = [
            [mark.node, mark.stage.value, mark.remedy, mark.since_s] for mark in answer.view.marks
        ]
        values["view"]["jobs"] = [[job.name, job.task, job.number, job.user] for job in answer.view.jobs[:MOST_JOBS]]
    return json.dumps(values).encode()


def parse_answer(line: bytes) -> Answer:
    values = _object(line)
    try:
        seen = values.pop("view")
        if seen is not None:
            seen["marks"] = tuple(
                Mark(node=str(node), stage=Stage(stage), remedy=str(remedy), since_s=float(since_s))
                for node, stage, remedy, since_s in seen["marks"]
            )
            seen["jobs"] = tuple(Job(*map(str, job)) for job in seen["jobs"])
            seen = View(**seen)
        answer = Answer(view=seen, **values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WordsError(f"no answer: {error!r}") from None
    if answer.outcome not in OUTCOMES or answer.deed not in DEEDS or type(answer.number) is not int:
        raise WordsError(f"no answer: {answer.outcome!r:.50} of {answer.deed!r:.50}")
    return answer


def _object(line: bytes) -> "dict[str, Any]":
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WordsError(f"not JSON: {error}") from None
    if not isinstance(values, dict):
        raise WordsError("not an object")
    return values
