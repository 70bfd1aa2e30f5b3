"""
The renewal model: what the first-order formulas leave out, still in closed form.

Failures strike the job at the constant rate L = rate * instances, also while it recovers, so the time X from one
failure to the next is exponential, whatever the job does. What a failure begins, the next one ends: a cycle.
In a cycle training is back after detecting (d), waiting until no more instances are missing than there are spares (W),
and resuming (r), if no failure comes before:

    q = P(X > max(d, W) + r) = exp(-L r) * E exp(-L max(d, W))

An instance that fails is back after a fixed time o (detect and replace), so W is longer than u exactly when more than
S instances failed in the last o - u; their number is a compound Poisson variable. Nothing is approximated here.
By the memoryless law the time that is left for training is again exponential with rate L. Of it count

    with checkpoints every t that take c to write     t / (exp(L (t + c)) - 1)      whole periods only
    with only the lost step done again                t / (t + c) / L

and the renewal-reward theorem gives goodput = L * q * (that). With S = 0 or many spares and checkpoints this is Daly's
complete model. Without waiting (elastic) training goes on with the instances that are there, and slower in proportion.

Assumptions: the job is long against the MTBF (at its beginning every spare is there); replacements take a fixed time
and never run out of capacity; spares that idle do not fail; with "step" some replica survives every failure.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holdfast.planner.model.scenario import Scenario

NEVER_ENDS_BELOW = 0.01
"""Our choice: a job that gets less than a hundredth of its time to count (a month takes 8 years) never ends."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_NORMAL_FROM = 500.0
"""Failures expected in a window from which on their number is taken to be normally distributed."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Where the wall time goes; the shares add up to 1."""

    useful: float
    checkpoint: float
    """Writing checkpoints."""
    detect: float
    replace: float
    """Waiting for an instance because no spare was left."""
    resume: float
    redo: float
    """Work that was lost and is done again."""
    fewer: float
    """What missing instances would have done, where training goes on without them."""


def goodput(scenario: Scenario) -> float:
    """Share of the wall time that goes into work that counts; 0 when training never ends."""
    useful = shares(scenario).useful
    return useful if useful >= NEVER_ENDS_BELOW else 0.0


def shares(scenario: Scenario) -> Shares:
    rate, strategy, checkpoints = scenario.failures_per_hour, scenario.strategy, scenario.checkpoints
    waiting = _waiting_share(scenario) if strategy.waits_for_replacement else 0.0
    detected = math.exp(-rate * strategy.detect_h)
    complete = max(0.0, detected - waiting)
    resumed = complete * math.exp(-rate * strategy.resume_s / 3600.0)
    training = complete * math.exp(-rate * strategy.back_h)
    kept = _kept_share(scenario)
    fewer = 0.0 if strategy.waits_for_replacement else _missing_share(scenario)
    useful = training * kept * (1.0 - fewer)
    writing = training * kept * checkpoints.write_s / checkpoints.interval_s
    lost_to_fewer = training * kept * fewer
    return Shares(
        useful=useful,
        checkpoint=writing,
        detect=1.0 - detected,
        replace=detected - complete,
        resume=complete - resumed,
        redo=resumed - useful - writing - lost_to_fewer,
        fewer=lost_to_fewer,
    )


def _kept_share(scenario: Scenario) -> float:
    """Part of the time that is left for training and counts at the end."""
    if scenario.strategy.redo == "step":
        return scenario.checkpoints.useful_share
    rate, checkpoints = scenario.failures_per_hour, scenario.checkpoints
    exponent = rate * checkpoints.period_h
    if exponent > 700:
        return 0.0
    # x / (e^x - 1) tends to 1 as nothing fails.
    return checkpoints.useful_share * (exponent / math.expm1(exponent) if exponent > 0 else 1.0)


def _waiting_share(scenario: Scenario) -> float:
    strategy, rate = scenario.strategy, scenario.failures_per_hour
    first, last = strategy.detect_h, strategy.out_h
    if rate == 0 or last <= first:
        return 0.0
    if scenario.spares == 0:
        return math.exp(-rate * first) - math.exp(-rate * last)
    at = first + (last - first) * (_NODES + 1) / 2
    waits = np.zeros_like(at)
    for size, probability in scenario.failures.sizes():
        waits += probability * (1.0 - _at_most(scenario, scenario.spares - size, last - at))
    return float(rate * (last - first) / 2 * np.sum(_WEIGHTS * np.exp(-rate * at) * waits))


def _missing_share(scenario: Scenario) -> float:
    """Part of the instances that is missing on average while training goes on."""
    strategy = scenario.strategy
    window_h = strategy.out_h - strategy.detect_h - strategy.back_h
    if window_h <= 0 or scenario.failures_per_hour == 0:
        return 0.0
    window = np.array([window_h])
    mean, spread = _moments(scenario, window)
    if mean[0] > _NORMAL_FROM:
        return float(min(1.0, max(0.0, mean[0] - scenario.spares) / scenario.instances))
    most = min(scenario.instances + scenario.spares, math.ceil(mean[0] + 12 * spread[0]) + 40)
    chances = _counts(scenario, most, window)[:, 0]
    beyond = np.clip(np.arange(most + 1) - scenario.spares, 0, scenario.instances)
    rest = max(0.0, 1.0 - float(np.sum(chances)))
    return (float(chances @ beyond) + rest * float(beyond[-1])) / scenario.instances


def _at_most(scenario: Scenario, most: int, window_h: Floats) -> Floats:
    """Probability that no more than ``most`` instances fail within each window."""
    if most < 0:
        return np.zeros_like(window_h)
    mean, spread = _moments(scenario, window_h)
    if float(np.max(mean)) > _NORMAL_FROM:
        scaled = (most + 0.5 - mean) / np.maximum(spread, 1e-12) / math.sqrt(2.0)
        return np.array([0.5 * (1.0 + math.erf(value)) for value in scaled])
    if most > float(np.max(mean + 12 * spread)) + 40:
        return np.ones_like(window_h)
    chances: Floats = np.sum(_counts(scenario, most, window_h), axis=0)
    return np.minimum(1.0, chances)


def _moments(scenario: Scenario, window_h: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the number of instances that fail within each window."""
    sizes = scenario.failures.sizes()
    struck = scenario.failures_per_hour * window_h
    first = sum(probability * size for size, probability in sizes)
    second = sum(probability * size * size for size, probability in sizes)
    return struck * first, np.sqrt(struck * second)


def _counts(scenario: Scenario, most: int, window_h: Floats) -> Floats:
    """Probability that exactly 0, 1, ... ``most`` instances fail within each window (Panjer's recursion)."""
    struck = scenario.failures_per_hour * window_h
    chances = np.zeros((most + 1, len(window_h)))
    chances[0] = np.exp(-struck)
    for count in range(1, most + 1):
        for size, probability in scenario.failures.sizes():
            if size <= count:
                chances[count] += struck * probability * size / count * chances[count - size]
    return chances
