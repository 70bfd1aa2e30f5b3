"""Scenario of a job: instances, failures, checkpoints, recovery. Times in seconds, rates per instance-hour."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from holdfast.planner.model.errors import require

HOUR_S = 3600.0
MOST_INSTANCES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Failures:
    """
    How instances fail: each at a constant rate, independently of its age and of what the job does (Poisson).

    A failure takes one instance, or with probability ``group_share`` as many as ``group_size`` at once, such as those
    behind one switch. Spares that idle do not fail.
    """

    per_instance_hour: float
    group_size: int = 1
    """Default: 1, failures come one by one."""
    group_share: float = 0.0
    """Default: 0, failures come one by one."""

    def __post_init__(self) -> None:
        rate = self.per_instance_hour
        require(
            math.isfinite(rate) and 0 <= rate <= 1,
            "the failure rate",
            f"{rate:.4%} per instance-hour",
            "0 to 100 %",
            "published rates lie between 0.01 % and 0.1 %",
        )
        require(self.group_size >= 1, "the group size", self.group_size, "1 or more", "1 means one by one")
        share = self.group_share
        require(0 <= share <= 1, "the share of group failures", f"{share:.4%}", "0 to 100 %", "0 means one by one")

    def sizes(self) -> tuple[tuple[int, float], ...]:
        """How many instances a failure takes, with the probability of each number."""
        if self.group_size == 1 or self.group_share == 0:
            return ((1, 1.0),)
        return tuple(
            (size, share)
            for size, share in ((1, 1.0 - self.group_share), (self.group_size, self.group_share))
            if share > 0
        )


ASSUMED_WRITE_S = 30.0
"""Our assumption: asynchronous checkpoints stop training for half a minute."""


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """A checkpoint after every ``interval_s`` of training, which stands still for ``write_s`` while it is written."""

    interval_s: float
    write_s: float

    def __post_init__(self) -> None:
        fix = "give it in seconds"
        interval, write = self.interval_s, self.write_s
        require(math.isfinite(interval) and interval > 0, "the checkpoint interval", interval, "more than 0", fix)
        require(math.isfinite(write) and write >= 0, "the time to write a checkpoint", write, "0 or more", fix)

    @property
    def period_h(self) -> float:
        """From one checkpoint to the next in hours, writing included."""
        return (self.interval_s + self.write_s) / HOUR_S

    @property
    def useful_share(self) -> float:
        """Part of the time that is left when only checkpoints take from it."""
        return self.interval_s / (self.interval_s + self.write_s)


LONGEST_STAGE_S = 365 * 24 * HOUR_S
"""Of a recovery: the clock of a simulated run has to come to an end."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """
    Recovery in stages of fixed length.

    A failure is detected after ``detect_s``. The instance is replaced in ``replace_s``, or at once by a spare. Training
    resumes ``resume_s`` after all instances are ready. A failure meanwhile restarts the recovery.
    """

    name: str
    title: str
    detect_s: float
    replace_s: float
    resume_s: float
    redo: Literal["checkpoint", "step"]
    """What is done again: everything since the last checkpoint, or the step that was lost, ``redo_s``."""
    redo_s: float = 0.0
    """Half of a step, with redo "step". Default: 0, not counted"""
    waits_for_replacement: bool = True
    """Default: True. False: training goes on with fewer instances, and slower in proportion."""

    def __post_init__(self) -> None:
        for what, seconds in (
            ("detect", self.detect_s),
            ("replace", self.replace_s),
            ("resume", self.resume_s),
            ("redo", self.redo_s),
        ):
            require(
                0 <= seconds <= LONGEST_STAGE_S,
                f"the time to {what} ({self.name})",
                f"{seconds:g} s",
                f"0 to {LONGEST_STAGE_S:.0f} s, a year",
                "give it in seconds",
            )

    @property
    def out_h(self) -> float:
        """Hours from a failure until a new instance is in place."""
        return (self.detect_s + self.replace_s) / HOUR_S

    @property
    def back_h(self) -> float:
        """Hours from having all instances until training is where it was, or at its checkpoint."""
        return (self.resume_s + (self.redo_s if self.redo == "step" else 0.0)) / HOUR_S

    @property
    def detect_h(self) -> float:
        return self.detect_s / HOUR_S


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A job on ``instances`` that all take part in every step, and ``spares`` that wait."""

    instances: int
    failures: Failures
    strategy: Strategy
    checkpoints: Checkpoints
    spares: int = 0
    accelerators_per_instance: int = field(default=8)
    """Default: 8, as the large types have."""

    def __post_init__(self) -> None:
        require(
            1 <= self.instances <= MOST_INSTANCES,
            "the number of instances",
            self.instances,
            f"1 to {MOST_INSTANCES}",
            "count the instances that train, without spares",
        )
        require(
            0 <= self.spares <= self.instances,
            "the number of spares",
            self.spares,
            f"0 to {self.instances}, the number of instances",
            "use at most one spare per instance",
        )
        group = self.failures.group_size
        require(
            group <= self.instances,
            "the group size",
            group,
            f"1 to {self.instances}, the number of instances",
            "a failure cannot affect more",
        )
        count = self.accelerators_per_instance
        require(count >= 1, "the number of accelerators per instance", count, "1 or more", "use 1 for CPU instances")

    @property
    def failures_per_hour(self) -> float:
        return self.instances * self.failures.per_instance_hour

    @property
    def mtbf_h(self) -> float:
        """Mean time between failures of the job in hours; infinite when nothing fails."""
        return 1.0 / self.failures_per_hour if self.failures_per_hour > 0 else math.inf

    def with_strategy(self, strategy: Strategy) -> "Scenario":
        return replace(self, strategy=strategy)

    def with_spares(self, spares: int) -> "Scenario":
        return replace(self, spares=spares)

    def with_interval(self, interval_s: float) -> "Scenario":
        return replace(self, checkpoints=replace(self.checkpoints, interval_s=interval_s))
