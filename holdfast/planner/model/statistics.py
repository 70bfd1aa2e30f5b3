"""Confidence intervals for few observations: counts of failures, and times of stages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
"""Share of cases in which an interval holds the true value."""


@dataclass(frozen=True, kw_only=True)
class RateEstimate:
    failures: int
    instance_hours: float
    per_instance_hour: float
    low: float
    high: float

    def holds(self, per_instance_hour: float) -> bool:
        return self.low <= per_instance_hour <= self.high


@dataclass(frozen=True, kw_only=True)
class TimeEstimate:
    """Mean duration of a stage in seconds; no interval for a single observation."""

    observations: int
    mean_s: float
    low_s: float | None
    high_s: float | None
    percentile_90_s: float
    """The shortest of those seen that nine of ten do not exceed."""

    def holds(self, seconds: float) -> bool:
        return self.low_s is not None and self.high_s is not None and self.low_s <= seconds <= self.high_s


def estimate_rate(*, failures: int, instance_hours: float) -> RateEstimate | None:
    """
    Rate of independent failures with Garwood's exact interval; None without instance-hours.

    The interval covers the true rate in at least the stated share of cases; its lower end is 0 without failures.
    """
    if instance_hours <= 0:
        return None
    low, high = garwood(failures)
    return RateEstimate(
        failures=failures,
        instance_hours=instance_hours,
        per_instance_hour=failures / instance_hours,
        low=low / instance_hours,
        high=high / instance_hours,
    )


def garwood(count: int) -> tuple[float, float]:
    """Chi-square interval for a Poisson mean of which ``count`` was seen (Garwood, Biometrika 28, 1936)."""
    tail = (1 - CONFIDENCE) / 2
    upper_bound = count + 20 * math.sqrt(count + 1) + 40
    high = _bisect(lambda mean: _poisson_at_most(count, mean) - tail, 0.0, upper_bound)
    low = 0.0 if count == 0 else _bisect(lambda mean: tail - 1 + _poisson_at_most(count - 1, mean), 0.0, upper_bound)
    return low, high


def estimate_time(seconds: Sequence[float]) -> TimeEstimate | None:
    """
    Mean of times with Student's interval; None without any time.

    Half of the allowed error is kept in reserve, because times are skewed.
    """
    if not seconds:
        return None
    count = len(seconds)
    mean = math.fsum(seconds) / count
    percentile_90 = sorted(seconds)[math.ceil(0.9 * count) - 1]
    if count == 1:
        return TimeEstimate(observations=1, mean_s=mean, low_s=None, high_s=None, percentile_90_s=percentile_90)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in seconds) / (count - 1))
    half = student_quantile(0.75 + CONFIDENCE / 4, count - 1) * spread / math.sqrt(count)
    return TimeEstimate(
        observations=count,
        mean_s=mean,
        low_s=max(0.0, mean - half),
        high_s=mean + half,
        percentile_90_s=percentile_90,
    )


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's distribution for a probability above one half."""
    return _bisect(lambda value: probability - _student_below(value, degrees), 0.0, 1e5)


def _student_below(value: float, degrees: int) -> float:
    """Distribution function at a value of 0 or more (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(value / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for step in range(2 + odd, degrees, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    within = (2 / math.pi) * (angle + (sine * total if degrees > 1 else 0.0)) if odd else sine * total
    return 0.5 + within / 2


def _poisson_at_most(count: int, mean: float) -> float:
    if mean <= 0:
        return 1.0
    numbers = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean / numbers))]) - mean
    return float(min(1.0, np.sum(np.exp(logs))))


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function becomes 0."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
