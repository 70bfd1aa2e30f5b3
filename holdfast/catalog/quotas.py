"""
Limits and lists that the services document; the data and its sources are in the JSON.

The environment file, the rules and the embedded services read a limit here. None of them writes a figure of its own.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

LIMITS_FILE = Path(__file__).with_name("limits.json")
LustreThroughput = Literal[125, 250, 500, 1000]
"""Of PERSISTENT_2, in MB/s per TiB: what the data says, for type checkers."""
OpenZfsThroughput = Literal[160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240]
"""Of SINGLE_AZ_2, in MB/s."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The least and the most of something, both allowed."""

    least: int
    most: int

    def has(self, value: int) -> bool:
        """Return True if a value is allowed."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Some small sizes, and then the multiples of a step."""

    small: tuple[int, ...]
    multiple: int
    most: int | None = None

    def has(self, value: int) -> bool:
        """Return True if a value is allowed."""
        is_step = value > 0 and value % self.multiple == 0
        return value in self.small or (is_step and (self.most is None or value <= self.most))

    def step_above(self, value: int) -> int:
        """The multiple that is no less than a value."""
        return -(-value // self.multiple) * self.multiple

    def __str__(self) -> str:
        end = "" if self.most is None else f" up to {self.most}"
        return f"{', '.join(map(str, self.small))}, or a multiple of {self.multiple}{end}"


def limits(name: str) -> Any:
    """The values of an entry of the data file: a list, or a mapping."""
    return _data()[name]["values"]


def bounds(name: str) -> Bounds:
    """An entry that has a least and a most."""
    return Bounds(**limits(name))


def steps(name: str) -> dict[str, Steps]:
    """An entry that has steps for each kind, such as for each deployment type of a file system."""
    return {kind: Steps(**{**found, "small": tuple(found["small"])}) for kind, found in limits(name).items()}


def least_metadata_iops(capacity_gib: int) -> int:
    """What a Lustre file system of PERSISTENT_2 on SSD has to have, the rate that mode AUTOMATIC gives it."""
    found = limits("lustre_least_metadata_iops")
    small: list[int] = [rate for size, rate in found["by_capacity"].items() if int(size) <= capacity_gib]
    for_all: int = found["rate"] * (capacity_gib // found["each_gib"])
    return max([*small, for_all])


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(LIMITS_FILE.read_text()))
