"""
The published tables, each figure beside what its own formula gives.

"Reduce ML training costs with Amazon SageMaker HyperPod" (AWS Machine Learning Blog, 2025-04-10) has the mean time
between failures by rate and size (table 1), measured recoveries (table 2, 90th percentiles), the estimate of one with
HyperPod and without (table 3), what that saves (table 4), and one example: 10,000,000 GPU hours on instances with 8
GPUs at 0.05 % per instance-hour and 5 dollars per GPU hour. "The Llama 3 Herd of Models" has the components. Figure and
formula differ in a few cells; both are kept, and nothing is adjusted. What a table only states, without a formula, is
data of the plan and no cell here: it would be compared with itself.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.catalog.goodput import FailureRates, RecoveryStages
from holdfast.planner import Checkpoints, Failures, Scenario, Strategy, first_order_goodput

DAY_H = 24
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
MTBF_HOURS = {
    0.01: (2500, 1250, 625, 313, 157, 79, 40, 20),
    0.02: (1250, 625, 313, 157, 79, 40, 20, 10),
    0.04: (625, 313, 157, 79, 40, 20, 10, 5),
    0.08: (313, 157, 79, 40, 20, 10, 5, 3),
}
"""Published hours by percent per instance-hour, one for each of ``SIZES``."""

REDUCTION_PERCENT = {
    0.01: (0, 0, 1, 1, 2, 5, 9, 17),
    0.02: (0, 1, 1, 2, 5, 9, 17, 28),
    0.05: (1, 2, 3, 6, 11, 20, 32, 48),
    0.07: (1, 2, 4, 8, 15, 25, 40, 55),
}
"""Published reduction of the time to train by percent per instance-hour, one for each of ``SIZES``."""

SUMS_S = {16: 2207, 64: 2373, 256: 2390, 1024: 2501}
"""Published downtime per failure by instances, the sums of the 90th percentiles of its stages."""

SUMS_MINUTES = {16: 36.8, 64: 39.6, 256: 39.8, 1024: 41.7}

ESTIMATE_MINUTES = {"by-hand": 280, "checkpoints": 40}
"""Published downtime per failure, as estimated for the example."""

GPU_HOURS, GPUS, INSTANCES, RATE, USD_PER_GPU_HOUR = 10_000_000, 8, 256, 0.0005, 5
WITH_HYPERPOD_H, WITHOUT_H = 40 / 60, 280 / 60


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    row: str
    column: str
    published: float
    exact: float
    """What the formula gives, before rounding."""
    formula: float
    """The same, rounded as in the table."""
    why: str = ""
    """What is known about a difference."""

    @property
    def agrees(self) -> bool:
        return self.published == self.formula


@dataclass(frozen=True, kw_only=True)
class PublishedTable:
    title: str
    rows: str
    """What the rows are."""
    formula: str
    figures: tuple[PublishedFigure, ...]


def published_tables(rates: FailureRates, strategies: Iterable[RecoveryStages]) -> tuple[PublishedTable, ...]:
    return (mtbf_table(), example_table(), reduction_table(), rate_table(rates), sum_table(strategies))


def mtbf_table() -> PublishedTable:
    """Mean time between failures in hours, rounded up."""
    figures = [
        _figure(f"{percent} %", f"{size}", published, exact, math.ceil(round(exact, 9)))
        for percent, row in MTBF_HOURS.items()
        for size, published in zip(SIZES, row, strict=True)
        for exact in [_scenario(size, rate=percent / 100).mtbf_h]
    ]
    return PublishedTable(
        title="mean time between failures in hours",
        rows="rate, by instances",
        formula="1 / (rate x instances), rounded up",
        figures=tuple(figures),
    )


def example_table() -> PublishedTable:
    """The example on 256 instances: days, percent and dollars."""
    base = _days(INSTANCES, 0.0)
    with_it, without = _days(INSTANCES, WITH_HYPERPOD_H), _days(INSTANCES, WITHOUT_H)
    usd_per_day = DAY_H * INSTANCES * GPUS * USD_PER_GPU_HOUR
    figures = (
        _rounded("lost with HyperPod", "days", 17, with_it - base),
        _rounded("lost without", "days", 121, without - base, why="121.53 was cut off, the other figures are rounded"),
        _rounded("to train with HyperPod", "days", 221, with_it),
        _rounded("to train without", "days", 325, without),
        _rounded("reduction", "percent", 32, 100 * (without - with_it) / without),
        _rounded("saved", "days", 104, without - with_it),
        _rounded(
            "saved",
            "dollars",
            25_559_040,
            (without - with_it) * usd_per_day,
            why="computed from the 104 days after rounding",
        ),
    )
    return PublishedTable(
        title="10,000,000 GPU hours on 256 instances at 0.05 %",
        rows="",
        formula="work x (1 + rate x instances x cost per failure), rounded",
        figures=figures,
    )


def reduction_table() -> PublishedTable:
    """Percent of the time to train that 40 instead of 280 minutes per failure save."""
    figures = [
        _rounded(
            f"{percent} %",
            f"{size}",
            published,
            100 * (1 - _days(size, WITH_HYPERPOD_H, rate=percent / 100) / _days(size, WITHOUT_H, rate=percent / 100)),
            why="no rounding of the formula gives it",
        )
        for percent, row in REDUCTION_PERCENT.items()
        for size, published in zip(SIZES, row, strict=True)
    ]
    return PublishedTable(
        title="reduction of the time to train in percent",
        rows="rate, by instances",
        formula="1 - wall with HyperPod / wall without, rounded",
        figures=tuple(figures),
    )


def rate_table(rates: FailureRates) -> PublishedTable:
    """Failure rates in percent per instance-hour, and the shares of the components."""
    observed = [
        _figure(row.name, "% per instance-hour", row.published_percent, exact, round(exact, 4))
        for row in rates.observations
        for exact in [100 * row.per_instance_hour]
    ]
    total = sum(row.failures for row in rates.components)
    shares = [
        _figure(
            row.component,
            f"% of {total}",
            row.published_share_percent,
            exact,
            round(exact, 1),
            why="" if row.published_share_percent == round(exact, 1) else f"{row.failures} of {total}",
        )
        for row in rates.components
        for exact in [100 * row.failures / total]
    ]
    return PublishedTable(
        title="failures per instance-hour, and what failed",
        rows="",
        formula="failures / instance-hours; share of all interruptions",
        figures=(*observed, *shares),
    )


def sum_table(strategies: Iterable[RecoveryStages]) -> PublishedTable:
    """Downtime per failure: the sums of the 90th percentiles that were measured, and of the estimate."""
    known = {each.name: each for each in strategies}
    measured = known["checkpoints"].percentile_90 if "checkpoints" in known else ()
    figures = []
    for row in measured:
        total = row.detect_s + row.replace_s + row.resume_s
        if row.instances in SUMS_S:
            size = f"{row.instances} instances, 90th percentile"
            minutes = SUMS_MINUTES[row.instances]
            figures += [
                _rounded(size, "seconds", SUMS_S[row.instances], total),
                # A hair more: a half is rounded up.
                _figure(size, "minutes", minutes, total / 60, round(total / 60 + 1e-9, 1)),
            ]
    for name, minutes in ESTIMATE_MINUTES.items():
        rows = known[name].measured if name in known else ()
        figures += [
            _rounded(f"{name}, estimate", "minutes", minutes, (row.detect_s + row.replace_s + row.resume_s) / 60)
            for row in rows[:1]
        ]
    return PublishedTable(
        title="downtime per failure",
        rows="",
        formula="detect + replace + resume",
        figures=tuple(figures),
    )


def _scenario(instances: int, *, rate: float, cost_per_failure_h: float = 0.0) -> Scenario:
    """Return a cluster whose every failure costs the same."""
    return Scenario(
        instances=instances,
        failures=Failures(per_instance_hour=rate),
        strategy=Strategy(
            name="published",
            title="published",
            detect_s=cost_per_failure_h * 3600,
            replace_s=0,
            resume_s=0,
            redo="step",
        ),
        checkpoints=Checkpoints(interval_s=3600, write_s=0),
    )


def _days(instances: int, cost_per_failure_h: float, *, rate: float = RATE) -> float:
    scenario = _scenario(instances, rate=rate, cost_per_failure_h=cost_per_failure_h)
    return GPU_HOURS / (instances * GPUS) / first_order_goodput(scenario) / DAY_H


def _rounded(row: str, column: str, published: float, exact: float, *, why: str = "") -> PublishedFigure:
    return _figure(row, column, published, exact, round(exact), why=why)


def _figure(row: str, column: str, published: float, exact: float, formula: float, *, why: str = "") -> PublishedFigure:
    return PublishedFigure(row=row, column=column, published=published, exact=exact, formula=formula, why=why)
