"""Documented limits of services, for environment file, rules and embedded services; data and sources in the JSON."""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

LIMITS_FILE = Path(__file__).with_name("limits.json")
LustreThroughput = Literal[125, 250, 500, 1000]
"""Of PERSISTENT_2, in MB/s per TiB: values of the data, for type checkers."""
OpenZfsThroughput = Literal[160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240]
"""Of SINGLE_AZ_2, in MB/s."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Inclusive minimum and maximum."""

    least: int
    most: int

    def has(self, value: int) -> bool:
        return self.least <= value <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Small sizes, then multiples of a step."""

    small: tuple[int, ...]
    multiple: int
    most: int | None = None

    def has(self, value: int) -> bool:
        is_step = value > 0 and value % self.multiple == 0
        return value in self.small or (is_step and (self.most is None or value <= self.most))

    def step_above(self, value: int) -> int:
        """Return the smallest size that is not below a value."""
        return min(each for each in (*self.small, -(-value // self.multiple) * self.multiple) if each >= value)

    def __str__(self) -> str:
        end = "" if self.most is None else f" up to {self.most}"
        return f"{', '.join(map(str, self.small))}, or a multiple of {self.multiple}{end}"


def limits(name: str) -> Any:
    return _data()[name]["values"]


def bounds(name: str) -> Bounds:
    return Bounds(**limits(name))


def steps(name: str) -> dict[str, Steps]:
    return {kind: Steps(**{**found, "small": tuple(found["small"])}) for kind, found in limits(name).items()}


def least_metadata_iops(capacity_gib: int) -> int:
    """Minimum metadata IOPS of PERSISTENT_2 on SSD, the rate of mode AUTOMATIC."""
    found = limits("lustre_least_metadata_iops")
    small: list[int] = [rate for size, rate in found["by_capacity"].items() if int(size) <= capacity_gib]
    for_all: int = found["rate"] * (capacity_gib // found["each_gib"])
    return max([*small, for_all])


@functools.cache
def _data() -> dict[str, Any]:
    return dict(json.loads(LIMITS_FILE.read_text()))
