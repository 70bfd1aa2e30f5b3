"""Progress of a job, as its launchers report it to Prometheus and, at their end, to the kubelet."""

import re
from dataclasses import dataclass
from typing import Any

FIELDS = ("step", "stepsLost", "goodput", "eta", "trainerStatus")
_VALUE = re.compile(r"^holdfast_(\w+)\{[^}]*\} (\S+)$", re.MULTILINE)


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
        known = None if self.steps is None or self.remaining_s is None else self.remaining_s
        return {
            "step": self.step,
            "stepsLost": self.steps_lost,
            "goodput": None if self.goodput is None else f"{100 * self.goodput:.1f} %",
            "eta": None if known is None else _shown(known),
            "trainerStatus": None
            if known is None
            else {
                "progressPercentage": min(100, 100 * self.step // max(1, self.steps or 1)),
                "estimatedRemainingSeconds": known,
            },
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
