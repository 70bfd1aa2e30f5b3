"""What is known of a cluster enters every row of its plan that it is true of, and what follows from that."""

import functools
from dataclasses import replace

import pytest
from event_logs import log_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.cli.planning import Options
from holdfast.cli.planning.inputs import Inputs, gather
from holdfast.planner import calibrate, goodput
from holdfast_common import Event

HAIR = 1e-9
STRATEGIES = ("by-hand", "checkpoints", "checkpointless", "elastic")


@functools.cache
def events(seed: int) -> list[Event]:
    return log_of(rate=0.002, instances=16, hours=100.0, seed=seed)


@st.composite
def options(draw: st.DrawFn) -> Options:
    instances = draw(st.integers(4, 1024))

    def maybe(low: float, high: float) -> float | None:
        return draw(st.none() | st.floats(low, high))

    return Options(
        instances=instances,
        instance_type="ml.p5.48xlarge",
        spares=draw(st.integers(0, 3)),
        strategy=draw(st.sampled_from(STRATEGIES)),
        failure_rate_percent=maybe(0.001, 0.2),
        group_size=draw(st.integers(1, 4)),
        group_share_percent=draw(st.floats(0, 100)),
        checkpoint_interval_s=maybe(60, 20_000),
        checkpoint_write_s=maybe(0, 300),
        detect_s=maybe(0, 2_000),
        replace_s=maybe(0, 20_000),
        resume_s=maybe(0, 5_000),
    )


logs = st.none() | st.integers(0, 5).map(events)


def rows(inputs: Inputs) -> dict[str, float]:
    """Goodput by row."""
    return {name: goodput(inputs.scenario_at(name, inputs.instances)) for name in inputs.strategies}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(options(), logs)
def test_spares_never_cost_goodput_in_any_row(given_options: Options, log: list[Event] | None) -> None:
    inputs = gather(given_options, events=log)
    found = rows(inputs)
    more = rows(gather(replace(given_options, spares=(given_options.spares or 0) + 1), events=log))

    for name, share in found.items():
        assert found.get(f"{name}+spares", 1.0) >= share - HAIR
        assert more[name] >= share - HAIR


@settings(max_examples=60, deadline=None, derandomize=True)
@given(options(), logs, st.floats(0, 20_000), st.floats(0, 1))
def test_a_faster_replacement_never_costs_goodput_in_any_row(
    given_options: Options, log: list[Event] | None, replace_s: float, part: float
) -> None:
    slow, fast = (
        rows(gather(replace(given_options, replace_s=seconds), events=log)) for seconds in (replace_s, replace_s * part)
    )

    assert all(fast[name] >= slow[name] - HAIR for name in slow)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(options(), logs)
def test_a_rate_and_a_time_to_write_are_those_of_every_row(given_options: Options, log: list[Event] | None) -> None:
    inputs = gather(given_options, events=log)
    scenarios = [inputs.scenario_at(name, inputs.instances) for name in inputs.strategies]

    assert len({each.failures for each in scenarios}) == 1
    assert len({each.checkpoints.write_s for each in scenarios}) == 1
    if log is not None and given_options.failure_rate_percent is None:
        seen = calibrate(log).rate
        assert seen is not None
        if seen.failures == 0:
            return  # none in a few hours is no reason to plan for none
        assert scenarios[0].failures.per_instance_hour == pytest.approx(seen.per_instance_hour)


def test_a_given_replacement_is_that_of_every_row() -> None:
    inputs = gather(Options(instances=64, spares=2, replace_s=7200.0), events=None)
    out_h = {name: inputs.scenario_at(name, 64).strategy.out_h for name in inputs.strategies}

    assert len({round(out_h[name], 9) for name in out_h if not name.startswith("by-hand")}) == 1
    assert out_h["checkpoints"] == pytest.approx((90 + 7200) / 3600)
    assert out_h["by-hand"] == pytest.approx((600 + 7200) / 3600)


def test_a_measured_replacement_is_not_that_of_rows_without_hyperpod() -> None:
    plain, learned = (gather(Options(instances=16), events=log) for log in (None, events(0)))
    assert learned.scenario_at("by-hand", 16).strategy == plain.scenario_at("by-hand", 16).strategy


def test_what_was_measured_holds_with_spares_and_without_them() -> None:
    inputs = gather(Options(instances=16, spares=2, instance_type="ml.p5.48xlarge"), events=events(0))
    without, with_spares = (inputs.scenario_at(name, 16).strategy for name in ("checkpoints", "checkpoints+spares"))

    assert (without.detect_s, without.replace_s, without.resume_s) == (
        with_spares.detect_s,
        with_spares.replace_s,
        with_spares.resume_s,
    )


def test_what_was_given_wins_over_what_was_measured() -> None:
    inputs = gather(Options(instances=16, replace_s=5.0, failure_rate_percent=0.3), events=events(0))

    assert inputs.scenario_at("checkpoints", 16).strategy.replace_s == 5.0
    assert inputs.failures.per_instance_hour == pytest.approx(0.003)
    assert inputs.origins["time to replace"] == "given"
    assert inputs.origins["time to resume"] == "measured"
    assert inputs.origins["time to write a checkpoint"].startswith("assumed")


@settings(max_examples=12, deadline=None, derandomize=True)
@given(options(), logs)
@example(Options(instances=899, spares=1, strategy="by-hand", resume_s=4831.0), events(0))
@example(Options(instances=899, spares=100, strategy="by-hand"), events(0))
def test_plots_and_answers_say_what_the_table_says(given_options: Options, log: list[Event] | None) -> None:
    inputs = gather(replace(given_options, price="50"), events=log)
    plan = inputs.plan(runs=2, seed=0)
    table = {each.strategy: each for each in plan.outlooks}

    for name, curve in zip(inputs.strategies, plan.goodput_by_size, strict=True):
        assert dict(curve.points)[float(inputs.instances)] == table[name].goodput
    for way in plan.ways.table:
        if way.instances == inputs.instances:
            shown = table[way.strategy]
            assert (way.goodput, way.wall_h, way.cost_usd) == (shown.goodput, shown.wall_h, shown.cost_usd)
    spares = {each.spares: each for each in plan.spares_costs}
    assert spares[plan.scenario.spares].goodput == table[plan.chosen].goodput
    by_spares = dict(plan.spares.by_spares)
    assert by_spares[plan.scenario.spares] == table[plan.chosen].goodput
