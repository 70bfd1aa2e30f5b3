"""The elastic recipe on a local cluster: what its events and its output tell."""

import json
import re
from collections.abc import Iterable
from typing import Any

from killing import ROOT

RECIPES = ROOT / "examples" / "recipes"
PREPARE = RECIPES / "prepare.py"
_STEP = re.compile(r"generation \d+  step (\d+)  loss (\S+)")


def events(product: Any, job: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in product.run("events", "--json", "--job", job).stdout.splitlines()]


def sizes(told: list[dict[str, Any]]) -> list[int]:
    """Ranks that the job had, one after the other."""
    started = [int(one["detail"]["world_size"]) for one in told if one["kind"] == "job_started"]
    return started[:1] + [int(one["detail"]["world_size"]) for one in told if one["kind"] == "job_resized"]


def steps(lines: Iterable[str]) -> list[int]:
    """Numbers of the steps that ranks printed, each as often as it was made."""
    return sorted(int(found[1]) for line in lines if (found := _STEP.search(line)))
