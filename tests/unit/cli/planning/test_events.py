"""Plans that learn from events: whose they are, and what nine of ten recoveries are compared with."""

from collections.abc import Iterable

import pytest
from event_logs import log_of

from holdfast.cli.deployed import Context, Session
from holdfast.cli.planning import Options, learned
from holdfast.cli.planning.inputs import gather
from holdfast.cli.terminal import CommandError
from holdfast.config import Environment
from holdfast.localcloud import from_environment
from holdfast_common import Event

EVENTS = log_of(rate=0.002, instances=16, hours=100.0, seed=1)


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> str:
    """An environment that is up, whose events are ``EVENTS``."""
    name = "local"
    session = Session(environment=name, cloud="aws", region="r", stack_name="s", cluster_name="c", port=0)
    monkeypatch.setattr(
        "holdfast.cli.planning.sources.locate", lambda **_: Context(session=session, local=from_environment())
    )
    monkeypatch.setattr("holdfast.cli.planning.sources.stored_events", lambda context: EVENTS)
    return name


def of_deployed(environment: str | None) -> tuple[Iterable[Event] | None, Environment | None]:
    return learned(None, environment=environment, actual=True)


def test_the_events_of_another_environment_are_refused(deployed: str) -> None:
    with pytest.raises(CommandError) as refused:
        of_deployed("slurm-p5")

    assert str(refused.value).startswith("--actual reads the events of 'local', which is deployed, and the plan is of")
    assert "holdfast plan local --actual" in str(refused.value)


def test_a_log_without_an_event_is_refused_and_not_taken_for_a_calm_cluster(
    deployed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.planning.sources.stored_events", lambda context: [])

    with pytest.raises(CommandError, match="holds no event"):
        of_deployed(deployed)


@pytest.mark.parametrize("given", [None, "local", "environments/local.yaml"])
def test_the_events_of_the_environment_that_is_planned_are_learned_from(deployed: str, given: str | None) -> None:
    events, environment = of_deployed(given)

    assert events == EVENTS
    assert environment is not None
    assert environment.name == deployed


def test_nine_of_ten_recoveries_are_compared_with_nine_of_ten_and_a_mean_with_a_mean() -> None:
    compared = gather(Options(instances=16, instance_type="ml.p5.48xlarge"), events=EVENTS).compare()

    assert compared is not None
    rows = {row.what: row for row in compared.comparisons}
    assert (rows["replace, mean, s"].plan, rows["replace, 90th percentile, s"].plan) == (900, 912)
    assert rows["replace, 90th percentile, s"].actual == compared.calibration.stages["replace"].percentile_90_s
    assert (rows["replace, mean, s"].actual or 0) < (rows["replace, 90th percentile, s"].actual or 0)


def test_the_plan_that_events_are_set_beside_has_learned_nothing_from_them() -> None:
    options = Options(instances=16, instance_type="ml.p5.48xlarge")
    compared = gather(options, events=EVENTS).compare()
    calm = gather(options, events=None)

    assert compared is not None
    rows = {row.what: row.plan for row in compared.comparisons}
    assert rows["failures per instance-hour"] == calm.failures.per_instance_hour
