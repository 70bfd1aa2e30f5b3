"""
Status of a HyperPodPyTorchJob, in the form that ``hyp`` reads.

``hyp`` shows the last condition that is true and takes the age from ``Created`` (``cli/commands/training.py``), and its
models refuse any field that they do not know: extensions stay in the HoldfastJob's own status.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast_operator.hyperpod.translation import without_effect
from holdfast_operator.jobs import COMPLETE, FAILED, INVALID, RUNNING, SUSPENDED, Status, stamp


def hyperpod_status(manifest: Mapping[str, Any], child: Status, *, mistakes: Sequence[str] = ()) -> dict[str, Any]:
    """
    Return the object's ``status``; None removes a field in a merge patch.

    Args:
        child: Of its HoldfastJob; that of a new one before it exists.
        mistakes: Why there is none.
    """
    created = manifest["metadata"]["creationTimestamp"]
    conditions = [
        _condition("Created", is_true=True, since=created, reason="Created", message=_created(manifest, mistakes))
    ]
    if mistakes:
        conditions.append(
            _condition(FAILED, is_true=True, since=created, reason="Invalid", message="\n".join(mistakes))
        )
    else:
        conditions += _from_child(child)
    return {
        "conditions": conditions,
        "restartCount": child.launcher_restarts + child.job_restarts,
        "startTime": None if child.started_s is None else stamp(child.started_s),
        "completionTime": None if child.completed_s is None else stamp(child.completed_s),
    }


def _created(manifest: Mapping[str, Any], mistakes: Sequence[str]) -> str:
    idle = [] if mistakes else without_effect(manifest)
    return f"without effect here: {', '.join(idle)}" if idle else "the job was accepted"


def _from_child(child: Status) -> list[dict[str, Any]]:
    found = []
    for kind, shown in (
        (SUSPENDED, ("Suspended",)),
        (RUNNING, ("PodsRunning", "Running")),
        (COMPLETE, ("Complete",)),
        (FAILED, ("Failed",)),
        (INVALID, ("Failed",)),
    ):
        known = child.condition(kind)
        if known is None or (kind == INVALID and not known.is_true):
            continue
        is_true = known.is_true and not (kind == RUNNING and child.has_ended)
        found += [
            _condition(name, is_true=is_true, since=stamp(known.since_s), reason=known.reason, message=known.message)
            for name in shown
        ]
    return found


def _condition(kind: str, *, is_true: bool, since: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
