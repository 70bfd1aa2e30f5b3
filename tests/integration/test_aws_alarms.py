"""Alarms of the embedded CloudWatch: data points put through its API, states and notices read through it."""

import json
import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import serve
from holdfast.localcloud.aws.monitoring.evaluation import Evaluation

REGION = "us-west-2"
ACCOUNT = "123456789012"
NOON = datetime(2026, 11, 23, 12, 0, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    running = serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated")
    made = {}

    def client(service):
        if service not in made:
            made[service] = boto3.client(service, region_name=REGION, **running.client_arguments)
        return made[service]

    yield client
    for one in made.values():
        one.close()
    running.stop()


@pytest.fixture
def evaluation(cloud):
    """The clock of the alarms, in the hand of the test."""
    account = cloud("sts").get_caller_identity()["Account"]
    return Evaluation(client=cloud, account=account, region=REGION, in_moto=lambda _: nullcontext())


def put(cloud, name, *values, end=NOON):
    """A value for each of the minutes before ``end``; None for a minute without one."""
    whole = end.replace(second=0, microsecond=0)
    for back, value in enumerate(reversed(values), start=1):
        if value is not None:
            datum = {"MetricName": name, "Value": value, "Timestamp": whole - timedelta(minutes=back)}
            cloud("cloudwatch").put_metric_data(Namespace="Lab", MetricData=[datum])


def state(cloud, name):
    (alarm,) = cloud("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return alarm["StateValue"], alarm["StateReason"]


def alarm(cloud, name, metric, **more):
    cloud("cloudwatch").put_metric_alarm(
        **{
            "AlarmName": name,
            "Namespace": "Lab",
            "MetricName": metric,
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "notBreaching",
            **more,
        }
    )


def test_an_alarm_goes_off_tells_its_topic_and_is_over(cloud, evaluation):
    topic = cloud("sns").create_topic(Name="alarms")["TopicArn"]
    queue = cloud("sqs").create_queue(QueueName="alarms")["QueueUrl"]
    arn = cloud("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    cloud("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    alarm(cloud, "lost", "Lost", AlarmActions=[topic], OKActions=[topic])

    evaluation.minute(NOON)
    assert state(cloud, "lost")[0] == "OK"
    put(cloud, "Lost", 2.0)
    evaluation.minute(NOON)

    value, reason = state(cloud, "lost")
    assert value == "ALARM"
    assert reason == ("Threshold Crossed: 1 datapoint(s) [2.0] was greater than or equal to the threshold (1).")
    evaluation.minute(NOON + timedelta(minutes=1))
    evaluation.minute(NOON + timedelta(minutes=3))
    assert state(cloud, "lost")[0] == "OK"
    told = [
        json.loads(message["Body"])
        for _ in range(3)
        for message in cloud("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=0).get("Messages", [])
    ]
    changes = {(one["OldStateValue"], one["NewStateValue"]) for one in told}
    assert {("OK", "ALARM"), ("ALARM", "OK")} <= changes


def test_an_alarm_that_is_not_evaluated_keeps_its_state_without_data(cloud, evaluation):
    cloud("cloudwatch").put_metric_alarm(
        AlarmName="slow",
        Namespace="Lab",
        MetricName="Latency",
        ExtendedStatistic="p99",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="breaching",
    )
    alarm(cloud, "lost", "Lost", TreatMissingData="breaching")
    deadline = time.monotonic() + 10
    while (before := state(cloud, "slow"))[0] != "INSUFFICIENT_DATA":  # a new one gets it a moment later
        assert time.monotonic() < deadline, before
        time.sleep(0.02)

    evaluation.minute(NOON)

    assert (state(cloud, "slow") == before, state(cloud, "lost")[0]) == (True, "ALARM")


def test_a_composite_alarm_that_is_put_again_keeps_its_state(cloud):
    watch = cloud("cloudwatch")
    watch.put_composite_alarm(AlarmName="all", AlarmRule='ALARM("lost")')
    watch.set_alarm_state(AlarmName="all", StateValue="ALARM", StateReason="by hand")
    watch.put_composite_alarm(AlarmName="all", AlarmRule='ALARM("found")')

    (found,) = watch.describe_alarms(AlarmNames=["all"], AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]
    assert found["StateValue"] == "ALARM"


def test_an_expression_sees_events_of_several_metrics(cloud, evaluation):
    metrics = [
        {
            "Id": name,
            "MetricStat": {"Metric": {"Namespace": "Lab", "MetricName": name}, "Period": 60, "Stat": "Sum"},
            "ReturnData": False,
        }
        for name in ("failed", "told")
    ]
    cloud("cloudwatch").put_metric_alarm(
        AlarmName="total",
        Metrics=[*metrics, {"Id": "total", "Expression": "FILL(failed, 0) + FILL(told, 0)", "ReturnData": True}],
        EvaluationPeriods=1,
        Threshold=2,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
    )
    put(cloud, "failed", 1.0)
    evaluation.minute(NOON)
    assert state(cloud, "total")[0] == "OK"
    put(cloud, "told", 1.0)
    evaluation.minute(NOON)
    assert state(cloud, "total")[0] == "ALARM"


def test_what_comes_after_a_filled_minute_was_judged_is_not_seen_by_one_of_one_but_by_one_of_three(cloud, evaluation):
    for name, periods in (("narrow", 1), ("wide", 3)):
        cloud("cloudwatch").put_metric_alarm(
            AlarmName=name,
            Metrics=[
                {
                    "Id": "late",
                    "MetricStat": {"Metric": {"Namespace": "Lab", "MetricName": "late"}, "Period": 60, "Stat": "Sum"},
                    "ReturnData": False,
                },
                {"Id": "filled", "Expression": "FILL(late, 0)", "ReturnData": True},
            ],
            EvaluationPeriods=periods,
            DatapointsToAlarm=1,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
        )
    evaluation.minute(NOON)
    put(cloud, "late", 1.0)
    evaluation.minute(NOON + timedelta(minutes=1))

    assert state(cloud, "narrow")[0] == "OK"
    assert state(cloud, "wide")[0] == "ALARM"


def test_silence_is_what_the_alarm_says_it_is(cloud, evaluation):
    for treatment in ("missing", "breaching", "notBreaching"):
        alarm(cloud, f"silence-{treatment}", "Silent", TreatMissingData=treatment)
    evaluation.minute(NOON)

    found = {
        treatment: state(cloud, f"silence-{treatment}")[0] for treatment in ("missing", "breaching", "notBreaching")
    }
    assert found == {"missing": "INSUFFICIENT_DATA", "breaching": "ALARM", "notBreaching": "OK"}


def test_what_is_not_evaluated_is_accepted_and_named_in_the_log(cloud, evaluation, caplog):
    alarm(cloud, "slow", "Slow", ComparisonOperator="GreaterThanUpperThreshold")
    cloud("cloudwatch").put_composite_alarm(AlarmName="any", AlarmRule="ALARM(slow)")
    put(cloud, "Slow", 2.0)
    evaluation.minute(NOON)

    answer = cloud("cloudwatch").describe_alarms(AlarmNames=["any"], AlarmTypes=["CompositeAlarm"])
    assert answer["CompositeAlarms"][0]["StateValue"] == "INSUFFICIENT_DATA"
    assert state(cloud, "slow")[0] != "ALARM"
    for name, part in (("slow", "comparison operator GreaterThanUpperThreshold"), ("any", "composite alarm")):
        assert f"alarm {name}: accepted but not evaluated by the embedded CloudWatch: {part}" in caplog.messages


def test_a_window_of_half_an_hour_slides_by_the_minute(cloud, evaluation):
    alarm(cloud, "idle", "Progress", Period=1800, ComparisonOperator="LessThanThreshold", TreatMissingData="breaching")
    put(cloud, "Progress", 1.0)
    evaluation.minute(NOON + timedelta(minutes=29))
    assert state(cloud, "idle")[0] == "OK"
    evaluation.minute(NOON + timedelta(minutes=30))
    assert state(cloud, "idle")[0] == "OK", "the last real data point is still in the evaluation range"
    evaluation.minute(NOON + timedelta(minutes=91))
    assert state(cloud, "idle")[0] == "ALARM"


def test_a_metric_filter_beyond_the_subset_is_named_and_one_filter_has_one_name(cloud, caplog):
    cloud("logs").create_log_group(logGroupName="patterns")
    transformation = {"metricName": "A", "metricNamespace": "Lab", "metricValue": "1"}
    cloud("logs").put_metric_filter(
        logGroupName="patterns", filterName="regex", filterPattern="%a+%", metricTransformations=[transformation]
    )
    (warning,) = caplog.messages
    assert warning.startswith("log group patterns: metric filter regex: accepted but not evaluated")
    with pytest.raises(ClientError, match="Invalid filter pattern"):
        cloud("logs").filter_log_events(logGroupName="patterns", filterPattern="%a+%")
    for value in ("1", "2"):
        cloud("logs").put_metric_filter(
            logGroupName="patterns",
            filterName="one",
            filterPattern="{ $.a = 1 }",
            metricTransformations=[{**transformation, "metricValue": value}],
        )
    (kept,) = cloud("logs").describe_metric_filters(logGroupName="patterns", filterNamePrefix="one")["metricFilters"]
    assert kept["metricTransformations"][0]["metricValue"] == "2"


def test_log_events_are_found_by_pattern(cloud):
    logs = cloud("logs")
    logs.create_log_group(logGroupName="search")
    logs.create_log_stream(logGroupName="search", logStreamName="a")
    messages = [json.dumps({"level": level, "n": n}) for n, level in enumerate(("info", "error", "error"))]
    moment = int(datetime.now(tz=UTC).timestamp() * 1000)
    events = [{"timestamp": moment, "message": one} for one in messages]
    logs.put_log_events(logGroupName="search", logStreamName="a", logEvents=events)

    found = logs.filter_log_events(logGroupName="search", filterPattern='{ $.level = "error" && $.n > 1 }')["events"]

    assert [json.loads(event["message"])["n"] for event in found] == [2]


@pytest.mark.e2e
def test_a_line_in_a_log_group_sets_off_an_alarm_within_two_minutes(cloud):
    logs = cloud("logs")
    logs.create_log_group(logGroupName="live")
    logs.create_log_stream(logGroupName="live", logStreamName="a")
    logs.put_metric_filter(
        logGroupName="live",
        filterName="live",
        filterPattern="{ $.kind = node_lost }",
        metricTransformations=[{"metricName": "Live", "metricNamespace": "Lab", "metricValue": "1"}],
    )
    alarm(cloud, "live", "Live")
    event = {"timestamp": int(time.time() * 1000), "message": json.dumps({"kind": "node_lost"})}
    logs.put_log_events(logGroupName="live", logStreamName="a", logEvents=[event])
    seen = [state(cloud, "live")[0]]
    deadline = time.monotonic() + 140
    while seen[-1] != "ALARM" and time.monotonic() < deadline:
        time.sleep(1)
        if (now := state(cloud, "live")[0]) != seen[-1]:
            seen.append(now)
    assert seen[-1] == "ALARM"
