"""Progress of a job, as its launchers report it to Prometheus and, at their end, to the kubelet."""

import re
from dataclasses import dataclass
from typing import Any

FIELDS = ("step", "stepsLost", "goodput", "eta", "trainerStatus")
_VALUE = re.compile(r"^holdfast_(\w+)\{[^}]*\} (\d{1,15}(?:\.\d{1,20})?)$", re.MULTILINE)
"""A program can write the text too, so nothing else is read: no infinity, and no number that the API server rounds."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    step: int
    steps_lost: int = 0
    steps: int | None = None
    """Of the whole loop; None if unknown, as the next ones."""
    goodput: float | None = None
    remaining_s: int | None = None

    def manifest(self) -> dict[str, Any]:
        """Return the fields of ``status``; ``trainerStatus`` as in Kubeflow Trainer (KEP-2779, trainjob_types.go)."""
        eta = trainer = None
        if self.steps and self.remaining_s is not None:
            eta, done = _shown(self.remaining_s), min(100, 100 * self.step // self.steps)
            trainer = {"progressPercentage": done, "estimatedRemainingSeconds": self.remaining_s}
        return {
            "step": self.step,
            "stepsLost": self.steps_lost,
            "goodput": None if self.goodput is None else f"{100 * self.goodput:.1f} %",
            "eta": eta,
            "trainerStatus": trainer,
        }


def read_metrics(text: str) -> Progress | None:
    """Return None for a text without a step."""
    found = {name: float(value) for name, value in _VALUE.findall(text)}
    if "step" not in found:
        return None
    return Progress(
        step=int(found["step"]),
        steps_lost=int(found.get("steps_lost_total", 0)),
        steps=int(found["steps"]) if "steps" in found else None,
        goodput=found.get("goodput_ratio"),
        remaining_s=round(found["remaining_seconds"]) if "remaining_seconds" in found else None,
    )


def _shown(seconds: int) -> str:
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"
