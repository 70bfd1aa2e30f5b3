"""What elasticity is worth, by the policy that decides on clusters and by the planner."""

import pytest
from elastic_goodput import HOURS, INSTANCES, scenario_of, simulated

from holdfast.catalog.goodput import recovery_stages
from holdfast.planner import simulate_work, strategy_at

RUNS = 60


@pytest.mark.parametrize("spares", [0, 1])
@pytest.mark.parametrize("name", ["checkpointless", "elastic"])
def test_the_policy_comes_to_the_goodput_that_the_planner_foretells(name: str, spares: int) -> None:
    scenario = scenario_of(strategy_at(recovery_stages()[name], instances=INSTANCES), spares=spares)
    sizes = tuple(range(129, 257)) if name == "elastic" else (256,)
    mean, half = simulated(scenario, sizes=sizes, runs=RUNS, hours=HOURS, seed=1)
    run = simulate_work(scenario, work_h=HOURS, runs=RUNS, seed=1)
    assert run is not None
    planned = run.goodput
    assert mean - half <= planned.high
    assert planned.low <= mean + half
    assert half < 0.002, "an interval that agrees with everything"
