"""Every alarm of every environment goes off when it should, not sooner, and not without cause."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from alarm_cases import EKS, LONG, SLURM, AlarmCase
from aws_cdk import assertions
from aws_cdk import aws_logs as logs
from stack_alarms import StackAlarms

from holdfast_constructs import HyperPodCluster, HyperPodObservability

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
PLAIN = "HyperPodObservability"
"""The construct by itself, whose jobs report: an environment does not know that of its jobs."""


@cache
def alarms_of(name: str) -> StackAlarms:
    if name == PLAIN:
        stack = cdk.Stack(cdk.App(), "Demo")
        events = logs.LogGroup.from_log_group_name(stack, "Events", "/holdfast/demo/events")
        arn = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdef012345"
        cluster = HyperPodCluster.from_cluster_attributes(stack, "Cluster", cluster_name="demo", cluster_arn=arn)
        HyperPodObservability(stack, "Observability", cluster=cluster, events=events, spare_count=2)
        return StackAlarms(assertions.Template.from_stack(stack).to_json())
    (file,) = TEMPLATES.glob(f"*[[]{name}[]].json")
    return StackAlarms(json.loads(file.read_text()))


def environments() -> list[str]:
    return sorted(path.stem for path in (ROOT / "environments").glob("*.yaml"))


def case_of(environment: str, alarm: str) -> AlarmCase:
    cases = EKS if "ContainerInsights" in json.dumps(alarms_of(environment).alarms[alarm]) else SLURM
    return cases[alarm]


def named(*names: str) -> list[Any]:
    """Each alarm once, however many environments have the same."""
    found = {}
    for name in names:
        for alarm, properties in sorted(alarms_of(name).alarms.items()):
            cluster = properties["AlarmName"].rpartition("-")[0]
            seen = json.dumps(properties, sort_keys=True).replace(cluster, "")
            found.setdefault(seen, pytest.param(name, alarm, id=f"{name}-{alarm}"))
    return list(found.values())


def goes_off(environment: str, alarm: str) -> None:
    stack, case = alarms_of(environment), case_of(environment, alarm)
    properties = stack.alarms[alarm]
    minutes = (case.over if case.over is not None else case.at) + 1
    states, told = stack.states(alarm, case.fires(properties), minutes=minutes)
    assert states.index("ALARM") == case.at
    assert case.over is None or (states[-1], states[-2]) == ("OK", "ALARM")
    topic = properties.get("AlarmActions")
    assert [state for _, _, state in told if state == "ALARM"] == (["ALARM"] if topic else [])


def stays_quiet(environment: str, alarm: str) -> None:
    stack, case = alarms_of(environment), case_of(environment, alarm)
    states, _ = stack.states(alarm, case.quiet(stack.alarms[alarm]), minutes=LONG)
    assert "ALARM" not in states
    assert states[-1] == "OK"


@pytest.mark.parametrize(("environment", "alarm"), named(*environments()))
def test_an_alarm_goes_off_when_it_should_and_is_over_when_its_cause_is(environment: str, alarm: str) -> None:
    goes_off(environment, alarm)


@pytest.mark.parametrize(("environment", "alarm"), named(*environments()))
def test_an_alarm_stays_quiet_without_its_cause(environment: str, alarm: str) -> None:
    stays_quiet(environment, alarm)


def test_the_alarms_of_the_construct_by_itself_go_off_and_stay_quiet() -> None:
    for alarm in alarms_of(PLAIN).alarms:
        goes_off(PLAIN, alarm)
        stays_quiet(PLAIN, alarm)


def test_every_case_is_of_an_alarm_and_in_the_table_of_the_docs() -> None:
    made = {alarm for name in (*environments(), PLAIN) for alarm in alarms_of(name).alarms}
    assert made == {*SLURM, *EKS}
    page = (ROOT / "docs" / "do" / "alerts.md").read_text()
    assert [name for name in sorted(made) if f"| `{name}` |" not in page] == []


def test_no_environment_has_a_composite_alarm_that_nobody_evaluated() -> None:
    assert [name for name in environments() if alarms_of(name).composites] == []
