"""Watching a cluster: what is filtered, what raises an alarm, who is told, and what is shown."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs

from holdfast_common import Event, events_log_group, kinds
from holdfast_constructs import (
    AlarmThresholds,
    AlertTopic,
    ClusterEventRules,
    HyperPodCluster,
    HyperPodObservability,
    IHyperPodCluster,
    LustreFileSystem,
    NodeLogGroup,
    PrometheusWorkspace,
    WatchedFileSystem,
)
from holdfast_constructs.observability import HYPERPOD_EVENTS, OWN_EVENTS

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdef012345"


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


def demo(stack: cdk.Stack) -> IHyperPodCluster:
    return HyperPodCluster.from_cluster_attributes(
        stack, "Cluster", cluster_name="demo", cluster_arn=ARN, eks_cluster_name="demo-eks"
    )


def observed(**arguments: Any) -> assertions.Template:
    stack = new_stack()
    events = logs.LogGroup.from_log_group_name(stack, "Events", events_log_group("demo"))
    lustre = LustreFileSystem.from_attributes(stack, "Lustre", file_system_id="fs-0123456789abcdef0", mount_name="fsx")
    watched = WatchedFileSystem(file_system=lustre, storage_capacity_gib=1200)
    given = {"events": events, "spare_count": 2, "file_systems": [watched], **arguments}
    HyperPodObservability(stack, "Observability", cluster=demo(stack), **given)
    return assertions.Template.from_stack(stack)


@pytest.fixture(scope="module")
def slurm() -> assertions.Template:
    return observed()


@pytest.fixture(scope="module")
def silent() -> assertions.Template:
    """On AWS as it is: nothing ships Holdfast's events."""
    return observed(events=None)


@pytest.fixture(scope="module")
def eks() -> assertions.Template:
    stack_key = {"container_insights": True, "node_count": 18, "emails": ["ops@example.com"]}
    return observed(**stack_key)


def of_type(template: assertions.Template, kind: str) -> list[dict[str, Any]]:
    return [resource["Properties"] for resource in template.find_resources(kind).values()]


def alarms(template: assertions.Template) -> dict[str, dict[str, Any]]:
    return {item["AlarmName"]: item for item in of_type(template, "AWS::CloudWatch::Alarm")}


# metric filters


def matches(pattern: str, line: Mapping[str, Any]) -> bool:
    """What CloudWatch Logs does with the part of its JSON patterns that is used here."""
    for term in pattern.strip("{ }").split(" && "):
        if term.startswith("("):
            if not any(matches(f"{{ {one} }}", line) for one in term.strip("()").split(" || ")):
                return False
            continue
        found = re.fullmatch(r'\$\.(\S+) (?:!?)= (?:"(.*)"|(\*))', term)
        assert found is not None, f"unknown syntax: {term}"
        value: Any = line
        for part in found[1].split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        wanted = ".*" if found[3] else ".*".join(map(re.escape, found[2].split("*")))
        if value is None or (re.fullmatch(wanted, str(value)) is None) != (" != " in term):
            return False
    return True


def taken(line: Mapping[str, Any]) -> set[str]:
    return {metric.name for metric in (*OWN_EVENTS, *HYPERPOD_EVENTS) if matches(metric.pattern, line)}


@pytest.mark.parametrize(
    ("event", "names"),
    [
        ({"kind": kinds.NODE_LOST}, {"NodesLost"}),
        ({"kind": kinds.NODE_REPLACED, "duration_s": 1.5}, {"NodesReplaced", "ReplacementSeconds"}),
        ({"kind": kinds.NODE_REPLACED}, {"NodesReplaced"}),
        ({"kind": kinds.JOB_PROGRESS, "detail": {"step": 20, "loss": 2.5}}, {"JobProgress", "JobStep", "JobLoss"}),
        ({"kind": kinds.JOB_PROGRESS, "detail": {"step": 20}}, {"JobProgress", "JobStep"}),
        ({"kind": kinds.FILE_IMPORTED}, set()),
        ({"kind": kinds.VERDICT, "action": "replace"}, {"Verdicts", "NodeVerdicts"}),
        ({"kind": kinds.VERDICT, "action": "reboot"}, {"Verdicts", "NodeVerdicts"}),
        ({"kind": kinds.VERDICT, "action": "none", "detail": {"severity": "node"}}, {"Verdicts", "NodeVerdicts"}),
        ({"kind": kinds.VERDICT, "action": "restart-process", "detail": {"severity": "process"}}, {"Verdicts"}),
        ({"kind": kinds.REMEDY_REFUSED, "detail": {"why": "breaker"}}, {"RemediesRefused", "BreakerOpen"}),
        ({"kind": kinds.REMEDY_REFUSED, "detail": {"why": "controller"}}, {"RemediesRefused"}),
        ({"kind": kinds.DETECTOR_LOST, "detail": {"detector": "nvml"}}, {"DetectorsLost"}),
        ({"kind": kinds.DETECTOR_BACK, "detail": {"detector": "nvml"}}, {"DetectorsBack"}),
        ({"kind": kinds.REMEDY_REQUESTED, "action": "replace"}, {"RemediesRequested"}),
    ],
)
def test_metrics_are_taken_from_the_events_that_mean_them(event: dict[str, Any], names: set[str]) -> None:
    source = "job" if event["kind"].startswith("job_") else "control-plane"
    written = Event(time_ns=1, source=source, cluster="demo", **event).to_json()

    assert taken(json.loads(written)) == names


def test_no_forged_event_of_a_job_counts_in_a_metric_that_others_write() -> None:
    detail: dict[str, str | float] = {"why": "breaker", "severity": "node", "step": 1, "loss": 1.0}
    of_jobs = {"JobProgress", "JobStep", "JobLoss", "JobsResumed", "CheckpointSeconds"}
    for kind in sorted(value for name, value in vars(kinds).items() if name.isupper()):
        forged = Event(time_ns=1, source="job", kind=kind, action="replace", duration_s=1.0, detail=detail).to_json()

        assert taken(json.loads(forged)) <= of_jobs, kind


def hyperpod_event(kind: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {"source": "aws.sagemaker", "detail-type": f"SageMaker HyperPod Cluster {kind}", "detail": detail}


def health(status: str, reason: str, *, name: str = "demo") -> dict[str, Any]:
    summary = {"HealthStatus": status, "HealthStatusReason": reason, "RepairAction": "Replace"}
    return hyperpod_event("Node Health Event", {"ClusterName": name, "ClusterArn": ARN, "HealthSummary": summary})


def cluster_event(level: str, resource: str, *, name: str = "demo") -> dict[str, Any]:
    details = {"ClusterName": name, "ClusterArn": ARN, "ResourceType": resource, "EventLevel": level}
    return hyperpod_event("Event", {"EventDetails": details})


def state_change(*, name: str = "demo") -> dict[str, Any]:
    return hyperpod_event("State Change", {"ClusterName": name, "ClusterArn": ARN, "ClusterStatus": "Failed"})


@pytest.mark.parametrize(
    ("event", "names"),
    [
        (health("Unhealthy", "HMA has detected fault type NvidiaErrorTerminate on this node"), {"UnhealthyNodes"}),
        (health("Unhealthy", "HMA has detected fault type EfaError on this node"), {"UnhealthyNodes", "EfaFaults"}),
        (health("Healthy", "EfaError is gone"), set()),
        (cluster_event("Error", "Instance"), {"InstanceErrors"}),
        (cluster_event("Info", "Instance"), set()),
        (state_change(), set()),
    ],
)
def test_metrics_are_taken_from_hyperpods_events(event: dict[str, Any], names: set[str]) -> None:
    assert taken(event) == names


def test_every_metric_has_a_filter_that_is_the_clusters_own(slurm: assertions.Template) -> None:
    filters = of_type(slurm, "AWS::Logs::MetricFilter")
    made = {item["MetricTransformations"][0]["MetricName"]: item for item in filters}

    assert set(made) == {metric.name for metric in (*OWN_EVENTS, *HYPERPOD_EVENTS)}
    assert {item["MetricTransformations"][0]["MetricNamespace"] for item in filters} == {"Holdfast/demo"}
    assert made["NodesLost"]["LogGroupName"] == "/holdfast/demo/events"
    assert made["JobLoss"]["MetricTransformations"][0]["MetricValue"] == "$.detail.loss"


# rules and topic


def told(template: assertions.Template, event: dict[str, Any]) -> list[str]:
    from moto.events.models import EventPattern

    rules = of_type(template, "AWS::Events::Rule")
    found = [rule for rule in rules if EventPattern.load(json.dumps(rule["EventPattern"])).matches_event(event)]
    return sorted(rule["Targets"][0]["Id"] for rule in found)


@pytest.mark.parametrize(
    ("event", "targets"),
    [
        (state_change(), ["Archive", "StateChange"]),
        (health("Unhealthy", "x"), ["Archive", "NodeHealth"]),
        (cluster_event("Error", "Cluster"), ["Archive", "ClusterEvent"]),
        (cluster_event("Info", "Cluster"), ["Archive"]),
        (state_change(name="other"), []),
        (health("Unhealthy", "x", name="other"), []),
        (cluster_event("Error", "Cluster", name="other"), []),
    ],
)
def test_events_of_this_cluster_are_told_and_kept(
    slurm: assertions.Template, event: dict[str, Any], targets: list[str]
) -> None:
    assert told(slurm, event) == targets


def test_the_topic_takes_tls_only_from_this_accounts_alarms_and_from_eventbridge(slurm: assertions.Template) -> None:
    (policy,) = of_type(slurm, "AWS::SNS::TopicPolicy")
    deny, *allow = policy["PolicyDocument"]["Statement"]

    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert {item["Principal"]["Service"]: item.get("Condition") for item in allow} == {
        "events.amazonaws.com": None,
        "cloudwatch.amazonaws.com": {"StringEquals": {"aws:SourceAccount": "111122223333"}},
    }


def test_a_key_serves_the_publishers_and_only_the_log_group_that_it_is_for() -> None:
    stack = new_stack()
    key = kms.Key(stack, "Key")
    topic = AlertTopic(stack, "Topic", encryption_key=key)
    ClusterEventRules(stack, "Rules", cluster=demo(stack), topic=topic.topic, encryption_key=key)
    template = assertions.Template.from_stack(stack)
    (policy,) = (item["KeyPolicy"]["Statement"] for item in of_type(template, "AWS::KMS::Key"))
    services = {item["Principal"]["Service"]: item for item in policy if "Service" in item["Principal"]}

    assert set(services) == {"events.amazonaws.com", "cloudwatch.amazonaws.com", "logs.us-west-2.amazonaws.com"}
    context = services["logs.us-west-2.amazonaws.com"]["Condition"]["ArnLike"]
    assert "log-group:/aws/events/holdfast/demo" in json.dumps(context)
    assert "KmsMasterKeyId" in of_type(template, "AWS::SNS::Topic")[0]
    assert "KmsKeyId" in of_type(template, "AWS::Logs::LogGroup")[0]


def test_eventbridge_may_write_to_the_log_group_before_the_rule_does(slurm: assertions.Template) -> None:
    (policy,) = slurm.find_resources("AWS::Logs::ResourcePolicy")
    (archive,) = (
        rule
        for rule in slurm.find_resources("AWS::Events::Rule").values()
        if rule["Properties"]["Targets"][0]["Id"] == "Archive"
    )

    assert policy in archive["DependsOn"]
    assert not json.dumps(archive["Properties"]["Targets"]).endswith(':*"}]')


def test_people_are_subscribed_by_email(eks: assertions.Template) -> None:
    (subscription,) = of_type(eks, "AWS::SNS::Subscription")

    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")


# alarms


def test_the_alarms_of_a_slurm_cluster_need_nothing_but_events_and_fsx(slurm: assertions.Template) -> None:
    found = alarms(slurm)
    used = {
        metric["MetricStat"]["Metric"]["Namespace"]
        for alarm in found.values()
        for metric in alarm["Metrics"]
        if "MetricStat" in metric
    }

    assert sorted(found) == [
        "demo-BreakerOpen",
        "demo-DetectorLost",
        "demo-EfaFaults",
        "demo-FaultFound",
        "demo-GpuIdle",
        "demo-LustreFreeSpace",
        "demo-NoSpareLeft",
        "demo-NodeUnhealthy",
        "demo-ReplacementFailed",
    ]
    assert used == {"Holdfast/demo", "AWS/FSx"}


@pytest.mark.parametrize("name", ["NodeUnhealthy", "ReplacementFailed"])
def test_an_event_that_comes_late_into_its_minute_is_seen(name: str) -> None:
    found = alarms(observed())[f"demo-{name}"]
    assert (found["DatapointsToAlarm"], found["EvaluationPeriods"]) == (1, 3)


def test_jobs_that_tell_nothing_do_not_count_as_idle() -> None:
    found = alarms(observed(jobs_report=False))
    assert "demo-GpuIdle" not in found
    assert "demo-FaultFound" in found


def test_on_eks_the_nodes_the_gpus_and_efa_are_watched_by_container_insights(eks: assertions.Template) -> None:
    found = alarms(eks)

    assert sorted(set(found) - {"demo-EfaFaults", "demo-LustreFreeSpace", "demo-ReplacementFailed"}) == [
        "demo-BreakerOpen",
        "demo-DetectorLost",
        "demo-EfaDrops",
        "demo-FaultFound",
        "demo-GpuIdle",
        "demo-NoSpareLeft",
        "demo-NodeUnhealthy",
    ]
    idle = found["demo-GpuIdle"]
    assert idle["Metrics"][0]["MetricStat"]["Metric"] == {
        "Namespace": "ContainerInsights",
        "MetricName": "node_gpu_utilization",
        "Dimensions": [{"Name": "ClusterName", "Value": "demo-eks"}],
    }
    assert (idle["Threshold"], idle["EvaluationPeriods"], idle["ComparisonOperator"]) == (10, 30, "LessThanThreshold")
    assert found["demo-NoSpareLeft"]["Threshold"] == 16


OWN = {metric.name for metric in OWN_EVENTS}


def test_nothing_waits_for_events_that_nothing_ships(silent: assertions.Template) -> None:
    """GpuIdle would be red for ever, NoSpareLeft could not fire, and half of the dashboard would be empty."""
    filters = {item["MetricTransformations"][0]["MetricName"] for item in of_type(silent, "AWS::Logs::MetricFilter")}
    used = {
        metric["MetricStat"]["Metric"]["MetricName"]
        for alarm in alarms(silent).values()
        for metric in alarm["Metrics"]
        if "MetricStat" in metric
    }

    assert filters == {metric.name for metric in HYPERPOD_EVENTS}
    assert not used & OWN
    assert not {"demo-GpuIdle", "demo-NoSpareLeft", "demo-FaultFound", "demo-BreakerOpen", "demo-DetectorLost"} & set(
        alarms(silent)
    )
    assert not [name for name in OWN if f'"{name}"' in json.dumps([each["properties"] for each in widgets(silent)])]


def test_every_metric_of_events_that_is_looked_at_is_made(
    slurm: assertions.Template, eks: assertions.Template, silent: assertions.Template
) -> None:
    for template in (slurm, eks, silent):
        made = {item["MetricTransformations"][0]["MetricName"] for item in of_type(template, "AWS::Logs::MetricFilter")}
        seen = json.dumps([list(alarms(template).values()), list(widgets(template))])
        assert set(re.findall(r'"Holdfast/demo", "(\w+)"', seen)) <= made


def test_the_dashboard_says_what_is_off_and_why(silent: assertions.Template) -> None:
    texts = [widget["properties"].get("markdown", "") for widget in widgets(silent)]
    titles = [widget["properties"].get("title") for widget in widgets(silent)]

    (off,) = [text for text in texts if text.startswith("**Off**")]
    assert "nothing ships" in off
    assert titles[-1] == "Latest events of HyperPod"
    assert not {"Steps done", "Loss"} & set(titles)


def test_alert_rules_of_prometheus_are_made_only_where_exporters_write() -> None:
    stack = new_stack()
    PrometheusWorkspace(stack, "With", alias="a")
    PrometheusWorkspace(stack, "Without", alias="b", rules=False)

    assertions.Template.from_stack(stack).resource_count_is("AWS::APS::RuleGroupsNamespace", 1)


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("demo-NodeUnhealthy", "notBreaching"),
        ("demo-NoSpareLeft", "notBreaching"),
        ("demo-GpuIdle", "breaching"),
        ("demo-LustreFreeSpace", "missing"),
    ],
)
def test_silence_means_what_the_metric_makes_of_it(slurm: assertions.Template, name: str, missing: str) -> None:
    assert alarms(slurm)[name]["TreatMissingData"] == missing


def test_no_spare_is_left_when_as_many_nodes_are_lost_and_not_replaced(slurm: assertions.Template) -> None:
    alarm = alarms(slurm)["demo-NoSpareLeft"]

    assert alarm["Metrics"][0]["Expression"] == "FILL(nodeslost, 0) - FILL(nodesreplaced, 0)"
    assert {metric["MetricStat"]["Period"] for metric in alarm["Metrics"][1:]} == {3600}
    assert alarm["Threshold"] == 2


def test_a_file_system_is_full_at_a_share_of_its_capacity(slurm: assertions.Template) -> None:
    assert alarms(slurm)["demo-LustreFreeSpace"]["Threshold"] == 120 * 2**30


def test_every_alarm_tells_its_beginning_and_its_end_and_what_to_do(slurm: assertions.Template) -> None:
    (topic,) = slurm.find_resources("AWS::SNS::Topic")

    for alarm in alarms(slurm).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
        assert re.fullmatch(r"demo: .{20,}\.", alarm["AlarmDescription"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gpu_idle_percent": 0}, "got gpu_idle_percent 0; allowed: above 0 and below 100"),
        ({"lustre_free_percent": 100}, "got lustre_free_percent 100; allowed: above 0 and below 100"),
        ({"gpu_idle_minutes": 1441}, "got gpu_idle_minutes 1441; allowed: 1 to 1440, a day"),
        ({"efa_dropped_per_second": 0}, "got efa_dropped_per_second 0; allowed: above 0"),
    ],
)
def test_rejects_thresholds_that_no_alarm_can_have(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        AlarmThresholds(**given)


# dashboard


def widgets(template: assertions.Template) -> Iterator[dict[str, Any]]:
    (dashboard,) = of_type(template, "AWS::CloudWatch::Dashboard")
    parts = dashboard["DashboardBody"]["Fn::Join"][1]
    body = json.loads("".join(part if isinstance(part, str) else "token" for part in parts))
    yield from body["widgets"]


@pytest.mark.parametrize("orchestrator", ["slurm", "eks"])
def test_the_dashboard_has_rows_from_state_to_events(orchestrator: str, request: pytest.FixtureRequest) -> None:
    shown = list(widgets(request.getfixturevalue(orchestrator)))
    titles = [widget["properties"].get("title") for widget in shown]

    assert shown[0]["properties"]["markdown"].startswith("# demo\n")
    assert titles[1] == "Alarms"
    assert titles[-1] == "Latest events of nodes and jobs"
    assert {"Steps done", "Loss", "Lustre, free space, percent", "Replaced nodes, resumed jobs"} <= set(titles)
    assert ("GPU utilisation, percent" in titles) == (orchestrator == "eks")
    assert all(widget["x"] + widget["width"] <= 24 for widget in shown)


def test_alarms_and_dashboard_can_be_left_out() -> None:
    template = observed(alarms=False, dashboard=False)

    template.resource_count_is("AWS::CloudWatch::Alarm", 0)
    template.resource_count_is("AWS::CloudWatch::Dashboard", 0)
    template.resource_count_is("AWS::Events::Rule", 4)


# the log group that HyperPod makes


def test_the_group_that_hyperpod_makes_is_made_if_absent_and_kept_for_a_time() -> None:
    stack = new_stack()
    NodeLogGroup(stack, "Nodes", cluster=demo(stack), retention_days=30, encryption_key=kms.Key(stack, "Key"))
    template = assertions.Template.from_stack(stack)
    calls = [json.dumps(item["Create"]) for item in of_type(template, "Custom::AWS")]
    statements = [
        statement
        for policy in of_type(template, "AWS::IAM::Policy")
        for statement in policy["PolicyDocument"]["Statement"]
    ]

    assert "CreateLogGroup" in calls[0]
    assert "ResourceAlreadyExistsException" in calls[0]
    assert 'retentionInDays\\":30' in calls[1]
    assert "AssociateKmsKey" in calls[2]
    assert all("/aws/sagemaker/Clusters/demo/abcdef012345" in call for call in calls)
    assert {item["Action"] for item in statements} == {
        "logs:AssociateKmsKey",
        "logs:CreateLogGroup",
        "logs:PutRetentionPolicy",
    }
    assert "*" not in [item["Resource"] for item in statements]
    (found,) = of_type(template, "AWS::Logs::MetricFilter")
    assert found["FilterPattern"] == "HealthMonitoringAgentDetectionEvent"


# what a reviewer looks for


@pytest.mark.parametrize("orchestrator", ["slurm", "eks"])
def test_cfn_lint_finds_nothing(orchestrator: str, request: pytest.FixtureRequest) -> None:
    from cfnlint.api import ManualArgs, lint

    template = request.getfixturevalue(orchestrator).to_json()

    assert [str(finding) for finding in lint(json.dumps(template), config=ManualArgs(regions=["us-west-2"]))] == []
