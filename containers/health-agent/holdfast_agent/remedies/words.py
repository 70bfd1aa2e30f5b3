"""
The few words between the agent and its hands, as lines of JSON over a pair of sockets.

The hands know by themselves which node they are on: no word carries a node's name, a command or a path. Pure.
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
    """What was said is not in the vocabulary."""


@dataclass(frozen=True)
class Request:
    """
    What the hands are asked to do to their node.

    Args:
        number: Comes back with the answer.
        deed: Of ``DEEDS``.
        remedy: For claim, go, refuse, ask and force: of ``REMEDIES``.
        subject: For requeue: a task of Slurm's; for ask: tasks to requeue at once, since the node may be gone the
            next moment; for reset: a PCI address. Default: none
    """

    number: int
    deed: str
    remedy: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Job:
    """
    A job on the node by the scheduler's account: not what a job says of itself.

    Args:
        name: As in events.
        task: Slurm's name of a task of an array, such as 12_3; elsewhere the same as ``number``.
        number: What Slurm counts it as.
        user: Whose it is.
    """

    name: str
    task: str
    number: str
    user: str


@dataclass(frozen=True)
class View:
    """
    What is to be seen of this node, and of the marks of all.

    Args:
        me: The node's name.
        nodes: How many the cluster has.
        marks: Of all nodes.
        now_s: UTC seconds, by the clock that the marks are judged by.
        jobs: On this node.
        foreign: A mark on this node that is not ours, such as a reason or label of HyperPod's; empty where there is
            none.
        asks: What ``foreign`` asks HyperPod for: reboot, replace, or nothing.
        is_asked: Our own request stands on the node.
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
    What became of a request.

    Args:
        outcome: done; in-use (somebody asked for it before, so it is under way); refused (and why: asking again does
            not help); failed (nobody answered: asking again may help).
        why: For people.
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
    """Raises WordsError for all that is not exactly a request."""
    values = _object(line)
    if set(values) != {"number", "deed", "remedy", "subject"}:
        raise WordsError(f"a request has number, deed, remedy and subject, got {', '.join(sorted(values))[:200]}")
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
    """At most ``MOST_BYTES``."""
    values = asdict(answer)
    values["why"] = answer.why[:500]
    if answer.view is not None:
        values["view"]["marks"] = [
            [mark.node, mark.stage.value, mark.remedy, mark.since_s] for mark in answer.view.marks
        ]
        values["view"]["jobs"] = [[job.name, job.task, job.number, job.user] for job in answer.view.jobs[:MOST_JOBS]]
    return json.dumps(values).encode()


def parse_answer(line: bytes) -> Answer:
    """Raises WordsError."""
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
