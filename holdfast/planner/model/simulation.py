"""
Simulation of many runs, failure by failure, vectorised in numpy.

Draws what the renewal model has averages of: times of failures, lost instances, pending replacements, saved steps.
So it covers the spread of runs, short jobs, and the start with all spares. Assumptions are those of ``Scenario``.

A run is a row; X are the times between failures, and all else follows from their running sum.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.planner.model.errors import require
from holdfast.planner.model.renewal import NEVER_ENDS_BELOW, shares
from holdfast.planner.model.scenario import HOUR_S, Scenario

MOST_CYCLES = 1_000_000_000
"""Failures over all runs beyond which a simulation is refused: minutes of computing."""

MOST_CYCLES_PER_RUN = 2_000_000
"""The same for a single run: half a GiB."""

CYCLES_AT_ONCE = 250_000
"""Failures that are in memory at a time: arrays of 2 MB, which stay in the processor's cache."""

NO_FAILURE_H = 1e12
"""Stands for the time to a failure that never comes."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over independent runs with its 95 % confidence interval, and how single runs spread."""

    mean: float
    low: float
    high: float
    p5: float
    median: float
    p95: float


@dataclass(frozen=True, kw_only=True)
class Simulation:
    runs: int
    seed: int
    goodput: Estimate
    wall_h: Estimate
    failures: float
    """Failures per run, on average."""


def simulate_work(scenario: Scenario, *, work_h: float, runs: int, seed: int) -> Simulation | None:
    """
    Simulate runs until ``work_h`` hours of training are saved. None if training never ends.

    Raises:
        PlanError: a number is impossible, or the runs would have too many failures to simulate.
    """
    require(math.isfinite(work_h) and work_h > 0, "the work", f"{work_h} h", "more than 0", "give it in hours")
    steady = shares(scenario).useful
    if steady < NEVER_ENDS_BELOW:
        return None
    expected = scenario.failures_per_hour * work_h / steady
    walls: list[Floats] = []
    failures = 0
    for rows, rng in _chunks(runs, expected, seed):
        gaps = _gaps(rng, rows, scenario, expected)
        while True:
            finished, wall, struck = _finish(scenario, gaps, work_h=work_h, rng=rng)
            if finished:
                break
            gaps = np.hstack([gaps, _gaps(rng, rows, scenario, expected / 10)])
        walls.append(wall)
        failures += struck
    return _result(np.full(runs, work_h), np.concatenate(walls), failures=failures, runs=runs, seed=seed)


def affordable_runs(scenario: Scenario, *, wall_h: float, runs: int) -> int:
    """Number of runs for about one second, at least 20; 0 if one run has too many failures."""
    per_run = scenario.failures_per_hour * wall_h + 20
    return 0 if per_run > MOST_CYCLES_PER_RUN else min(runs, max(20, int(2e7 / per_run)))


def _chunks(runs: int, expected: float, seed: int) -> list[tuple[int, np.random.Generator]]:
    require(runs >= 2, "the number of runs", runs, "2 or more", "1,000 give a narrow interval")
    require(
        expected <= MOST_CYCLES_PER_RUN and runs * (expected + 1) <= MOST_CYCLES,
        "the number of failures to simulate",
        f"{expected:.2g} in each of {runs} runs",
        f"up to {MOST_CYCLES_PER_RUN:.0e} in a run and {MOST_CYCLES:.0e} in all",
        "simulate fewer runs, a shorter job, or a smaller cluster",
    )
    rows = max(1, min(runs, int(CYCLES_AT_ONCE / (expected + 10 * math.sqrt(expected) + 20))))
    counts = [min(rows, runs - first) for first in range(0, runs, rows)]
    children = np.random.SeedSequence(seed).spawn(len(counts))
    return [(count, np.random.default_rng(child)) for count, child in zip(counts, children, strict=True)]


def _gaps(rng: np.random.Generator, rows: int, scenario: Scenario, expected: float) -> Floats:
    """Hours from failure to failure, some more of them than are expected to be needed."""
    columns = int(expected + 8 * math.sqrt(expected)) + 10
    rate = scenario.failures_per_hour
    if rate == 0:
        return np.full((rows, 1), NO_FAILURE_H)
    return rng.exponential(min(1.0 / rate, NO_FAILURE_H), (rows, columns))


def _downtime(scenario: Scenario, ends: Floats, rng: np.random.Generator) -> Floats:
    """Hours at the beginning of each cycle until training resumes, if no failure comes before; none in the first."""
    strategy = scenario.strategy
    down = np.full_like(ends, strategy.detect_h)
    if strategy.waits_for_replacement and strategy.out_h > strategy.detect_h:
        np.maximum(down[:, 1:], _wait_h(scenario, ends[:, :-1], rng), out=down[:, 1:])
    down += strategy.back_h
    down[:, 0] = 0.0
    return down


def _wait_h(scenario: Scenario, failed: Floats, rng: np.random.Generator) -> Floats:
    """Hours from each failure until no more instances are missing than there are spares."""
    out_h, spares = scenario.strategy.out_h, scenario.spares
    wait = np.zeros_like(failed)
    if len(scenario.failures.sizes()) == 1 and scenario.failures.sizes()[0][0] == 1:
        if spares == 0:
            return np.full_like(failed, out_h)
        if spares < failed.shape[1]:
            # The failure so many before this one has to be healed; the spares stand for those after it.
            np.subtract(failed[:, :-spares], failed[:, spares:], out=wait[:, spares:])
            wait[:, spares:] += out_h
            np.clip(wait, 0.0, None, out=wait)
        return wait
    gone = np.cumsum(_sizes(scenario, failed.shape, rng), axis=1)
    rows = np.arange(failed.shape[0])[:, None]
    step = int(gone.max(initial=0)) + 1
    healed = np.searchsorted((gone + rows * step).ravel(), (gone - spares + rows * step).ravel()).reshape(gone.shape)
    last = failed.ravel()[np.minimum(healed, failed.size - 1)]
    return np.where(gone > spares, np.clip(last + out_h - failed, 0.0, None), 0.0)


def _sizes(scenario: Scenario, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    sizes = scenario.failures.sizes()
    if len(sizes) == 1:
        return np.full(shape, sizes[0][0], dtype=np.int64)
    return np.where(rng.random(shape) < sizes[1][1], sizes[1][0], sizes[0][0]).astype(np.int64)


def _speed(
    scenario: Scenario, ends: Floats, gaps: Floats, training: Floats, cut: Floats, rng: np.random.Generator
) -> Floats | float:
    """Part of the instances that trains, at one random instant of each stretch of training; it stands for all of it."""
    if scenario.strategy.waits_for_replacement or ends.shape[1] == 1:
        return 1.0
    gone = np.hstack([np.zeros((ends.shape[0], 1)), np.cumsum(_sizes(scenario, ends.shape, rng), axis=1)])
    instant = ends - gaps + cut - training * rng.random(ends.shape)
    rows = np.arange(ends.shape[0])[:, None]
    span = float(ends.max()) + scenario.strategy.out_h + 1.0
    returned = (ends + scenario.strategy.out_h + rows * span).ravel()
    # An instant before the first return would be looked for in the row above; those are cut off below.
    found = np.searchsorted(returned, (instant + rows * span).ravel(), side="right").reshape(ends.shape)
    back = np.clip(found - rows * ends.shape[1], 0, np.arange(ends.shape[1])[None, :])
    missing = gone[:, :-1] - np.take_along_axis(gone, back, axis=1) - scenario.spares
    present: Floats = 1.0 - np.clip(missing, 0.0, scenario.instances) / scenario.instances
    return present


def _kept_h(scenario: Scenario, training: Floats) -> Floats:
    """Hours of each stretch of training that count after a failure ended it."""
    checkpoints = scenario.checkpoints
    if scenario.strategy.redo == "step":
        return training * checkpoints.useful_share
    return np.floor(training / checkpoints.period_h) * (checkpoints.interval_s / HOUR_S)


def _finish(scenario: Scenario, gaps: Floats, *, work_h: float, rng: np.random.Generator) -> tuple[bool, Floats, int]:
    """Return True if every run has finished within these cycles, when each did, and the failures until then."""
    checkpoints = scenario.checkpoints
    interval_h, write_h = checkpoints.interval_s / HOUR_S, checkpoints.write_s / HOUR_S
    ends = np.cumsum(gaps, axis=1)
    down = _downtime(scenario, ends, rng)
    training = np.clip(gaps - down, 0.0, None)
    speed = _speed(scenario, ends, gaps, training, gaps, rng)
    kept = _kept_h(scenario, training) * speed
    left = np.clip(work_h - (np.cumsum(kept, axis=1) - kept), 0.0, None)
    if scenario.strategy.redo == "step":
        # A cycle in which nobody trains finishes nothing.
        endless = np.full_like(left, np.inf)
        needed = np.divide(left / checkpoints.useful_share, speed, out=endless, where=speed > 0)
    else:
        needed = left + np.ceil(left / interval_h - 1e-9) * write_h
    # A hair of slack: whole periods add up to the work but for rounding.
    within = training >= needed - 1e-9
    last = np.argmax(within, axis=1)
    rows = np.arange(len(gaps))
    if not bool(np.all(within[rows, last])):
        return False, ends[:, 0], 0
    begun = (ends - gaps)[rows, last]
    return True, begun + down[rows, last] + needed[rows, last], int(np.sum(last))


def _result(work: Floats, wall: Floats, *, failures: int, runs: int, seed: int) -> Simulation:
    return Simulation(
        runs=runs, seed=seed, goodput=_estimate(work / wall), wall_h=_estimate(wall), failures=failures / runs
    )


def _estimate(values: Floats) -> Estimate:
    mean = float(np.mean(values))
    half = 1.959964 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    p5, median, p95 = (float(value) for value in np.percentile(values, [5, 50, 95]))
    return Estimate(mean=mean, low=mean - half, high=mean + half, p5=p5, median=median, p95=p95)
