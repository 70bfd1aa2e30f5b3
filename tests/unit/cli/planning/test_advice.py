"""Advice is what somebody finds who tries every row: the cheapest way, the quickest, and the spares that pay."""

import io
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from holdfast.cli.planning import Options
from holdfast.cli.planning.inputs import Inputs, gather
from holdfast.cli.views.plan import advice, cost_cells, goodput_cells, render_plan
from holdfast.planner import Way, cheapest_spares, goodput, spares_costs

PRICE = 50.0


def inputs_for(**values: object) -> Inputs:
    return gather(Options(instance_type="ml.p5.48xlarge", **values), events=None)  # type: ignore[arg-type]


def said(inputs: Inputs) -> dict[str, str]:
    return dict(advice(inputs.plan(runs=2, seed=0), inputs))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.integers(1, 512),
    st.integers(0, 2),
    st.floats(0.001, 0.2),
    st.none() | st.floats(1, 2000),
    st.none() | st.floats(1e3, 1e8),
)
def test_the_answers_are_those_of_trying_every_row(
    instances: int, spares: int, rate: float, days: float | None, budget: float | None
) -> None:
    inputs = inputs_for(
        instances=instances,
        spares=min(spares, instances),
        failure_rate_percent=rate,
        price=str(PRICE),
        deadline_days=days,
        budget_usd=budget,
    )
    ways = inputs.plan(runs=2, seed=0).ways
    fitting = [
        each
        for each in ways.table
        if each.wall_h is not None
        and (days is None or each.wall_h <= 24 * days)
        and (budget is None or (each.cost_usd is not None and each.cost_usd <= budget))
    ]

    assert {each.strategy for each in ways.table} == set(inputs.strategies)
    assert (ways.cheapest is None) == (not fitting)
    if fitting and ways.cheapest is not None and ways.quickest is not None:
        assert ways.cheapest.cost_usd == min(each.cost_usd or math.inf for each in fitting)
        assert ways.quickest.wall_h == min(each.wall_h or math.inf for each in fitting)
        assert ways.cheapest in fitting
        assert ways.quickest in fitting


def test_a_way_that_only_another_strategy_offers_is_found() -> None:
    """At this rate no cluster that is repaired by hand ends in 100 days; one that recovers from its peers does."""
    inputs = inputs_for(
        instances=2048,
        strategy="by-hand",
        failure_rate_percent=0.08,
        gpu_hours=20_000_000.0,
        deadline_days=100.0,
        budget_usd=2e8,
        price=str(PRICE),
    )
    ways = inputs.plan(runs=2, seed=0).ways
    by_hand = [each for each in ways.table if each.strategy.startswith("by-hand")]

    assert not any((each.wall_h or math.inf) <= 2400 for each in by_hand)
    assert ways.cheapest is not None
    assert (ways.cheapest.wall_h or math.inf) <= 2400
    assert "in 100 days and for $200,000,000" in said(inputs)


def test_the_smallest_size_in_time_is_found_between_the_sizes_of_the_table() -> None:
    inputs = inputs_for(instances=16, deadline_days=100.0, price=str(PRICE))
    ways = inputs.plan(runs=2, seed=0).ways
    smallest = min(
        each.instances for each in ways.table if each.strategy == "checkpoints" and (each.wall_h or math.inf) <= 2400
    )

    assert (way_at(inputs, smallest - 1) or math.inf) > 2400


def way_at(inputs: Inputs, instances: int) -> float | None:
    reached = goodput(inputs.scenario_at("checkpoints", instances))
    return inputs.accelerator_hours / (instances * inputs.accelerators) / reached if reached else None


def test_without_a_price_the_cheapest_has_the_fewest_instance_hours_and_no_budget_is_judged() -> None:
    inputs = inputs_for(instances=16, deadline_days=100.0, budget_usd=1.0)
    ways = inputs.plan(runs=2, seed=0).ways
    told = said(inputs)

    assert ways.cheapest is None
    assert ways.cheapest_in_time is not None
    in_time = [each for each in ways.table if (each.wall_h or math.inf) <= 2400]
    assert ways.cheapest_in_time.instance_hours == min(each.instance_hours or math.inf for each in in_time)
    assert "--price" in told["for $1"]
    assert "instance-hours" in told["in 100 days"]


def test_what_misses_its_limits_is_said_with_the_nearest_ways() -> None:
    told = said(inputs_for(instances=16, deadline_days=10.0, budget_usd=100_000.0, price=str(PRICE)))

    assert told["in 10 days and for $100,000"] == "no strategy at any size meets it"
    assert "cheapest in time" in told


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.floats(0.01, 20), st.sampled_from(["by-hand", "checkpoints", "checkpointless"]))
def test_the_spares_that_pay_are_those_of_trying_every_number(instances: int, rate: float, strategy: str) -> None:
    inputs = inputs_for(instances=instances, failure_rate_percent=rate, strategy=strategy)
    scenario = inputs.scenario_at(inputs.chosen, instances)
    bills = {}
    for count in range(instances + 1):
        reached = goodput(scenario.with_spares(count))
        if reached > 0:
            bills[count] = 1000.0 / reached * (instances + count)
    found = cheapest_spares(spares_costs(scenario, work_h=1000.0))

    assert (found is None) == (not bills)
    if found is not None:
        assert found.paid_h == pytest.approx(min(bills.values()))


def test_the_bill_of_spares_is_what_they_idle_less_what_they_save() -> None:
    inputs = inputs_for(instances=512, failure_rate_percent=0.05, spares=2)
    costs = inputs.plan(runs=2, seed=0).spares_costs

    for each in costs:
        assert each.paid_h is not None
        assert each.idle_h is not None
        assert each.saved_h is not None
        assert each.paid_h == pytest.approx((costs[0].paid_h or 0) + each.idle_h - each.saved_h)


def test_spares_count_for_recovery_by_hand() -> None:
    """280 minutes of which 240 are the wait for an instance: a spare takes those away."""
    outlooks = {each.strategy: each for each in inputs_for(instances=16, spares=1).plan(runs=2, seed=0).outlooks}

    assert outlooks["by-hand"].minutes_per_failure == pytest.approx(280)
    assert outlooks["by-hand+spares"].minutes_per_failure == pytest.approx(40)
    assert outlooks["checkpoints"].minutes_per_failure == pytest.approx(40)
    assert outlooks["checkpoints+spares"].minutes_per_failure == pytest.approx(25)


def test_beside_what_a_number_hangs_on_stands_where_that_comes_from() -> None:
    told = said(inputs_for(instances=512, spares=1))
    given_rate = said(inputs_for(instances=512, spares=1, failure_rate_percent=0.05))

    assert "failure rate (+" in told["spares"]
    assert "assumed: 0.0161%, counted on llama-3.1-405b" in told["spares"]
    assert "; given)" in given_rate["spares"]


def test_a_way_that_rests_on_assumed_recovery_times_says_so() -> None:
    way: Way | None = inputs_for(instances=16).plan(runs=2, seed=0).ways.fastest

    assert way is not None
    told = said(inputs_for(instances=16, deadline_days=100.0))
    assert "elastic" in told["in 100 days"]
    assert "its recovery times are our assumption" in told["in 100 days"]
    assert "if throughput grows with the number of instances" in told["in 100 days"]


def test_at_80_columns_no_word_and_no_number_is_cut() -> None:
    inputs = inputs_for(instances=512, spares=2, price="5500")
    plan = inputs.plan(runs=2, seed=0)
    narrow = Console(width=80, file=io.StringIO(), markup=False)
    narrow.print(render_plan(plan, inputs, None))
    said_here = narrow.file.getvalue()  # type: ignore[attr-defined]
    words = said_here.split()

    assert "…" not in said_here
    for each in plan.outlooks:
        for cell in (each.title, *goodput_cells(each), *cost_cells(each)):
            assert set(cell.split()) <= set(words), cell
    assert words.count("checkpointless") >= 2, "once in each table"
