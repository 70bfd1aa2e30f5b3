"""Three models of one job: where they have to agree, and in which order they come."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.planner import (
    Checkpoints,
    Failures,
    PlanError,
    Scenario,
    Shares,
    Strategy,
    first_order_goodput,
    goodput,
    shares,
    simulate_work,
)

HYPERPOD = Strategy(name="c", title="c", detect_s=80, replace_s=981, resume_s=1440, redo="checkpoint")
PEERS = Strategy(name="p", title="p", detect_s=5, replace_s=981, resume_s=42, redo="step", redo_s=15)


def scenario(
    *,
    instances: int = 256,
    rate: float = 0.0005,
    spares: int = 0,
    strategy: Strategy = HYPERPOD,
    interval_s: float = 1800,
    write_s: float = 30,
    group_size: int = 1,
    group_share: float = 0.0,
) -> Scenario:
    return Scenario(
        instances=instances,
        spares=spares,
        strategy=strategy,
        failures=Failures(per_instance_hour=rate, group_size=group_size, group_share=group_share),
        checkpoints=Checkpoints(interval_s=interval_s, write_s=write_s),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    instances = draw(st.integers(1, 2000))
    redo = draw(st.sampled_from(["checkpoint", "step"]))
    return scenario(
        instances=instances,
        rate=draw(st.floats(0, 0.002)),
        spares=draw(st.integers(0, min(instances, 20))),
        interval_s=draw(st.floats(10, 20_000)),
        write_s=draw(st.floats(0, 600)),
        group_size=draw(st.integers(1, min(instances, 16))),
        group_share=draw(st.floats(0, 1)),
        strategy=Strategy(
            name="s",
            title="s",
            detect_s=draw(st.floats(0, 600)),
            replace_s=draw(st.floats(0, 5000)),
            resume_s=draw(st.floats(0, 5000)),
            redo="checkpoint" if redo == "checkpoint" else "step",
            redo_s=draw(st.floats(0, 60)),
            waits_for_replacement=redo == "checkpoint" or draw(st.booleans()),
        ),
    )


@given(scenarios())
def test_the_shares_of_the_wall_time_add_up_to_one_and_none_is_negative(job: Scenario) -> None:
    parts = vars(shares(job)).values()

    assert sum(parts) == pytest.approx(1.0, abs=1e-9)
    assert all(part >= -1e-9 for part in parts)


@given(scenarios())
def test_the_first_order_model_is_never_darker_than_the_renewal_model(job: Scenario) -> None:
    alone = replace(job.with_spares(0), failures=Failures(per_instance_hour=job.failures.per_instance_hour))

    assert shares(alone).useful <= first_order_goodput(alone) + 1e-9


@given(scenarios(), st.floats(1e-9, 1e-3))
def test_first_order_and_renewal_agree_to_second_order_when_failures_are_rare(job: Scenario, rate: float) -> None:
    rare = replace(job.with_spares(0), failures=Failures(per_instance_hour=rate / job.instances))
    lost = rare.failures_per_hour * (rare.strategy.out_h + rare.strategy.back_h + rare.checkpoints.period_h)

    assert abs(first_order_goodput(rare) - shares(rare).useful) <= lost * lost + 1e-12


@given(scenarios())
def test_without_failures_only_checkpoints_cost_anything(job: Scenario) -> None:
    calm = replace(job, failures=Failures(per_instance_hour=0))

    assert shares(calm).useful == pytest.approx(calm.checkpoints.useful_share)
    assert first_order_goodput(calm) == pytest.approx(calm.checkpoints.useful_share)


@given(scenarios())
def test_more_spares_never_make_it_worse_and_many_are_like_no_waiting(job: Scenario) -> None:
    one, more = shares(job).useful, shares(job.with_spares(min(job.instances, job.spares + 1))).useful
    at_once = job.with_strategy(replace(job.strategy, replace_s=0.0))

    assert more >= one - 1e-9
    assert one <= shares(at_once).useful + 1e-9


def test_without_spares_it_is_dalys_complete_model() -> None:
    job = scenario()
    rate, interval_h = job.failures_per_hour, 0.5
    recovery_h = (80 + 981 + 1440) / 3600
    wall_per_interval = math.exp(rate * recovery_h) * math.expm1(rate * (interval_h + 30 / 3600)) / rate

    assert shares(job).useful == pytest.approx(interval_h / wall_per_interval, rel=1e-12)


def test_a_group_failure_of_one_is_a_failure_of_one() -> None:
    alone = shares(scenario(spares=2))

    assert vars(shares(scenario(spares=2, group_size=1, group_share=0.7))) == vars(alone)
    assert vars(shares(scenario(spares=2, group_size=9, group_share=0.0))) == vars(alone)


def test_a_group_that_no_spare_is_left_for_has_to_wait() -> None:
    def waited(**values: float) -> Shares:
        return shares(scenario(spares=4, group_size=int(values["size"]), group_share=0.5))

    assert waited(size=4).replace < 0.01 < waited(size=5).replace


CASES = {
    "no spares": scenario(),
    "few spares": scenario(instances=1024, rate=0.0008, spares=1),
    "groups": scenario(instances=1024, rate=0.0005, spares=2, group_size=8, group_share=0.1),
    "only groups": scenario(instances=512, spares=3, group_size=4, group_share=1.0),
    "recovery longer than the MTBF": scenario(instances=1024, rate=0.002),
    "peers": scenario(instances=1024, spares=1, strategy=PEERS, group_size=2, group_share=0.2),
    "elastic": scenario(
        instances=1024, strategy=replace(PEERS, waits_for_replacement=False), group_size=4, group_share=0.3
    ),
    "elastic with spares": scenario(
        instances=64, rate=0.01, spares=1, strategy=replace(PEERS, waits_for_replacement=False, replace_s=9000)
    ),
    "nothing fails": scenario(rate=0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_simulated_time_agrees_with_the_renewal_model_within_its_interval(name: str) -> None:
    job = CASES[name]
    work_h = 800 * job.checkpoints.interval_s / 3600
    run = simulate_work(job, work_h=work_h, runs=400, seed=11)

    assert run is not None
    # Seven of eight intervals hold the expectation at 95 %; a third more width is 99 %.
    slack = (run.wall_h.high - run.wall_h.low) / 3 + 1e-6
    assert run.wall_h.low - slack <= work_h / shares(job).useful <= run.wall_h.high + slack


@settings(max_examples=25, deadline=None, derandomize=True)
@given(scenarios(), st.integers(0, 1000))
def test_any_job_is_simulated_to_the_renewal_model(job: Scenario, seed: int) -> None:
    if goodput(job) < 0.05:
        return
    work_h = 300 * job.checkpoints.interval_s / 3600
    run = simulate_work(job, work_h=work_h, runs=200, seed=seed)

    assert run is not None
    spread = (run.wall_h.high - run.wall_h.low) / 2 / 1.96
    # Short jobs begin with every spare at hand, which the long run has not: up to one wait less.
    begun_h = job.strategy.out_h * job.failures_per_hour * job.strategy.out_h
    # What is so rare that these runs may not have seen it has no spread in them.
    failures = job.failures_per_hour * run.wall_h.mean
    rare_h = 5 * (job.strategy.out_h + job.checkpoints.period_h) * math.sqrt(failures / 200)
    assert abs(run.wall_h.mean - work_h / shares(job).useful) <= 5 * spread + rare_h + begun_h + 1e-6


@pytest.mark.parametrize("name", CASES)
def test_a_seed_gives_the_same_runs_again_and_another_gives_others(name: str) -> None:
    runs = [simulate_work(CASES[name], work_h=500, runs=20, seed=seed) for seed in (1, 1, 2)]

    assert runs[0] is not None
    assert runs[2] is not None
    assert runs[0] == runs[1]
    assert (runs[0].goodput == runs[2].goodput) == (name == "nothing fails")


def test_training_that_never_ends_has_no_goodput_and_is_not_simulated() -> None:
    job = scenario(instances=10_000, rate=0.01)

    assert goodput(job) == 0.0
    assert simulate_work(job, work_h=1000, runs=10, seed=0) is None


def test_a_simulation_with_too_many_failures_is_refused() -> None:
    with pytest.raises(PlanError, match=r"failures to simulate is .* in each of 1000000 runs; allowed: up to"):
        simulate_work(scenario(), work_h=87600, runs=1_000_000, seed=0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"instances": 0}, "the number of instances is 0; allowed: 1 to 1000000; count the instances that train"),
        ({"instances": -1}, "the number of instances is -1"),
        ({"rate": -0.1}, "the failure rate is -10.0000% per instance-hour; allowed: 0 to 100 %"),
        ({"rate": math.nan}, "the failure rate is nan% per instance-hour"),
        ({"instances": 4, "spares": 5}, "the number of spares is 5; allowed: 0 to 4, the number of instances"),
        ({"spares": -1}, "the number of spares is -1"),
        ({"interval_s": 0}, "the checkpoint interval is 0; allowed: more than 0"),
        ({"interval_s": math.inf}, "the checkpoint interval is inf"),
        ({"write_s": -1}, "the time to write a checkpoint is -1"),
        ({"instances": 4, "group_size": 5}, "the group size is 5; allowed: 1 to 4"),
        ({"group_size": 0}, "the group size is 0"),
        ({"group_share": 1.5}, "the share of group failures is 150.0000%; allowed: 0 to 100 %"),
    ],
)
def test_an_impossible_number_is_refused_with_what_is_allowed(values: dict[str, float], message: str) -> None:
    with pytest.raises(PlanError) as refused:
        scenario(**values)  # type: ignore[arg-type]

    assert str(refused.value).startswith(message)


def test_a_negative_stage_is_refused() -> None:
    with pytest.raises(PlanError, match=r"the time to detect \(c\) is -1 s; allowed: 0 to 31536000 s, a year"):
        replace(HYPERPOD, detect_s=-1)


@pytest.mark.parametrize(("work_h", "runs"), [(0, 10), (math.inf, 10), (100, 1)])
def test_an_impossible_simulation_is_refused(work_h: float, runs: int) -> None:
    with pytest.raises(PlanError, match="allowed: "):
        simulate_work(scenario(), work_h=work_h, runs=runs, seed=0)


def test_a_stage_longer_than_a_year_is_refused_since_no_simulated_clock_would_pass_it() -> None:
    with pytest.raises(PlanError, match="allowed: 0 to 31536000 s, a year"):
        replace(HYPERPOD, replace_s=1e22)
