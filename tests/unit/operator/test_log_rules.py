"""Log rules: what trips one and what nearly does, the restart that follows, and mistakes."""

import sys
import time
from typing import Any

import pytest
from operated_jobs import NOW_S, job, nodes, pod, pods

from holdfast_operator.decisions import DeletePod, PodFacts, decide
from holdfast_operator.driver import Matcher, SlowPatternError
from holdfast_operator.jobs import log_rule_mistakes, mistakes, read_log_rules
from holdfast_operator.logs import LogWatch, Trip, matched

UIDS = frozenset({"pod-0", "pod-1"})
STARTS = {"name": "starts", "logPattern": ".*Train Epoch.*", "expectedStartCutOffInSeconds": 60}
HANGS = {"name": "hangs", "logPattern": ".*Train Epoch.*", "expectedRecurringFrequencyInSeconds": 10}
SPIKES = {
    "name": "spikes", "logPattern": r".*training_loss_step (\d+(?:\.\d+)?).*", "metricThreshold": 2.0, "operator": "gt",
    "metricEvaluationDataPoints": 3,
}  # fmt: skip
SLOWS = {
    "name": "slows", "logPattern": ".* (.+)TFLOPs.*", "expectedRecurringFrequencyInSeconds": 5, "metricThreshold": 100,
    "operator": "lt", "metricEvaluationDataPoints": 2,
}  # fmt: skip
FAULTS = {"name": "faults", "logPattern": ".*RuntimeError.*out of memory.*", "faultOnMatch": True}
STEP = "2026-11-30 [INFO] Train Epoch: 5 loss=0.8"
Lines = dict[float, str]


def tripped(rule: dict[str, Any], lines: Lines, *, until_s: float, uid: str = "pod-0", is_new: bool = True) -> str:
    """Look each second at the lines of one of two pods; return state and rule of the trip, or nothing."""
    (parsed,) = read_log_rules([rule])
    watch = LogWatch([parsed], stopped=(), is_new=is_new, now_s=0.0)
    for second in range(int(until_s) + 1):
        found = [text for at_s, text in lines.items() if second - 1 < at_s <= second]
        if watch.active:
            matches = matched(parsed.pattern, parsed.stop_pattern, found)
            watch.saw(parsed.name, uid=uid, lines=found, matches=matches, now_s=float(second))
        if trip := watch.trip(pods=UIDS, now_s=float(second)):
            return f"{trip.state} {trip.rule} at {second} s"
    return ""


@pytest.mark.parametrize(
    ("rule", "trips", "nearly"),
    [
        (STARTS, {70: STEP}, {59: STEP}),
        (HANGS, {1: STEP, 12: STEP}, {1: STEP, 10: STEP, 19: STEP, 28: STEP}),
        (
            SPIKES,
            {1: "training_loss_step 2.1", 2: "training_loss_step 9", 3: "training_loss_step 2.01"},
            dict(enumerate(map("training_loss_step {}".format, (9, 9, 2.0, 9)))),
        ),
        (SLOWS, {1: "speed: 99.5 TFLOPs", 2: "speed: 12 TFLOPs"}, {1: "speed: 12 TFLOPs", 2: "speed: 100 TFLOPs"}),
        (FAULTS, {1: "RuntimeError: CUDA out of memory"}, {1: "RuntimeError: CUDA error", 2: "out of memory"}),
    ],
    ids=["start", "recurring", "spike", "low", "fault"],
)  # fmt: skip
def test_each_kind_of_rule_trips_on_its_log_and_not_on_one_that_nearly_does(
    rule: dict[str, Any], trips: Lines, nearly: Lines
) -> None:
    until_s = max(*trips, *nearly)
    assert rule["name"] in tripped(rule, trips, until_s=until_s)
    assert tripped(rule, nearly, until_s=until_s) == ""


@pytest.mark.parametrize(
    ("rule", "lines", "found"),
    [
        (STARTS, {}, "HANGING starts at 60 s"),
        (STARTS, {1: STEP}, ""),
        (HANGS, {}, ""),
        (HANGS, {1: STEP}, "HANGING hangs at 11 s"),
        ({**HANGS, "expectedStartCutOffInSeconds": 30}, {}, "HANGING hangs at 30 s"),
        (SLOWS, {1: "speed: 120 TFLOPs"}, "HANGING slows at 6 s"),
        (SPIKES, {1: "training_loss_step nan", 90: ""}, ""),
        (FAULTS, {3: "RuntimeError: CUDA out of memory"}, "FAULTED faults at 3 s"),
        (
            {**FAULTS, "metricThreshold": 1, "operator": "gt"},
            {3: "RuntimeError: out of memory"},
            "FAULTED faults at 3 s",
        ),
        ({**HANGS, "stopPattern": ".*done"}, {1: STEP, 5: "all done"}, ""),
        ({**FAULTS, "stopPattern": ".*done"}, {1: "done", 2: "RuntimeError: out of memory"}, ""),
        ({**FAULTS, "stopPattern": ".*done"}, {1: "RuntimeError: out of memory", 2: "done"}, "FAULTED faults at 1 s"),
        ({**HANGS, "logPattern": "Train"}, {1: STEP}, ""),
    ],
)
def test_a_rule_has_the_semantics_of_aws_s_page(rule: dict[str, Any], lines: Lines, found: str) -> None:
    assert tripped(rule, lines, until_s=100) == found


@pytest.mark.parametrize(
    ("operator", "slow"), [("gt", [3]), ("gteq", [2, 3]), ("lt", [1]), ("lteq", [1, 2]), ("eq", [2])]
)
def test_a_metric_is_compared_as_the_operator_says(operator: str, slow: list[int]) -> None:
    rule = {"name": "x", "logPattern": r"(\d)", "metricThreshold": 2, "operator": operator}
    assert [value for value in (1, 2, 3) if tripped(rule, {1: str(value)}, until_s=1)] == slow


def test_metrics_are_counted_in_each_pod_and_matches_of_any_pod_are_the_jobs() -> None:
    watch = LogWatch(read_log_rules([SPIKES, HANGS]), stopped=(), is_new=True, now_s=0.0)
    for second in range(20):
        lines = ["training_loss_step 9", STEP]
        for name, rule in (("spikes", SPIKES), ("hangs", HANGS)):
            found = matched(str(rule["logPattern"]), "", lines)
            watch.saw(name, uid=f"pod-{second % 10}", lines=lines, matches=found, now_s=float(second))
        assert watch.trip(pods=UIDS, now_s=float(second)) is None


def test_what_was_missed_starts_timers_again_and_arms_none() -> None:
    (rule,) = read_log_rules([{**HANGS, "expectedStartCutOffInSeconds": 30}])
    watch = LogWatch([rule], stopped=(), is_new=True, now_s=0.0)
    watch.missed(now_s=29.0)
    assert watch.trip(pods=UIDS, now_s=58.0) is None
    assert watch.trip(pods=UIDS, now_s=59.0) is not None
    watch.missed(now_s=58.0, are_lost=True)
    assert watch.trip(pods=UIDS, now_s=1e6) is None, "its first match may be in what is lost"
    late = LogWatch([rule], stopped=(), is_new=False, now_s=0.0)
    assert late.trip(pods=UIDS, now_s=1e6) is None, "its first match may have been before"
    assert LogWatch([rule], stopped=("hangs",), is_new=True, now_s=0.0).trip(pods=UIDS, now_s=1e6) is None


TRIP = Trip(rule="hangs", state="HANGING", what="no line", pods=frozenset({"pod-0", "pod-1"}))


def test_a_trip_restarts_all_pods_and_costs_one_of_the_manifests_restarts() -> None:
    status: dict[str, Any] = {}
    for number in range(4):
        one = job(recovery={"launcherRestarts": 3}, status=status)
        there = [pod(one, index, uid=f"pod-{index}" if number == 0 else f"{number}-{index}") for index in range(4)]
        trip = TRIP if number == 0 else Trip(rule="h", state="HANGING", what="w", pods=frozenset({f"{number}-1"}))
        found = decide(one, pods=there, nodes=nodes(), now_s=NOW_S, trip=trip)
        status = found.status.manifest(generation=1, selector="x")
        assert found.status.launcher_restarts == number + 1
        assert found.status.state == ("Running" if number < 3 else "Failed")
        if number < 3:
            assert [a.uid for a in found.actions if isinstance(a, DeletePod)] == [each.uid for each in there]
            again = decide(job(status=status), pods=there, nodes=nodes(), now_s=NOW_S, trip=trip)
            assert again.status.launcher_restarts == number + 1
    failed = found.status.condition("Failed")
    assert failed is not None
    assert failed.message == "launcher restarts: got 4; allowed: 3; the last one: log rule h is HANGING: w"


def test_a_trip_after_the_launcher_restarts_of_a_period_costs_a_restart_of_the_job_as_well() -> None:
    recovery = {"restartAllAfter": 0}
    found = decide(job(recovery=recovery), pods=pods(job()), nodes=nodes(), now_s=NOW_S, trip=TRIP)
    assert (found.status.launcher_restarts, found.status.job_restarts, len(found.actions)) == (1, 1, 4)
    status = found.status.manifest(generation=1, selector="x")
    later = [pod(job(), index, uid=f"new-{index}") for index in range(4)]
    again = decide(job(recovery=recovery, status=status), pods=later, nodes=nodes(), now_s=NOW_S + 60, trip=TRIP)
    assert (again.actions, again.status.job_restarts) == ((), 1)


@pytest.mark.parametrize(
    "there",
    [
        [pod(job(), index, uid=f"new-{index}") for index in range(4)],
        pods(job(), pod(job(), 3, phase="Succeeded")),
        [pod(job(), index, is_deleted=True) for index in range(4)],
    ],
    ids=["pods of a later run", "a job that finishes", "pods that go"],
)
def test_a_trip_of_what_is_over_restarts_nothing(there: list[PodFacts]) -> None:
    found = decide(job(), pods=there, nodes=nodes(), now_s=NOW_S, trip=TRIP)
    assert (found.status.launcher_restarts, found.status.restarting) == (0, ())


def test_a_launcher_that_ends_during_the_restart_neither_finishes_the_job_nor_is_charged() -> None:
    status = {"restartingPods": ["pod-0", "pod-1"], "stops": [{"what": "w"}]}
    there = [pod(job(), 0, phase="Succeeded", is_deleted=True), pod(job(), 1, phase="Failed", exit_code=137)]
    found = decide(job(status=status), pods=there, nodes=nodes(), now_s=NOW_S)
    assert (found.status.finished_s, found.status.launcher_restarts) == (None, 0)
    assert [one.uid for one in found.actions if isinstance(one, DeletePod)] == ["pod-1"]


def test_the_node_of_a_fault_is_charged_and_that_of_a_hang_is_not() -> None:
    fault = Trip(rule="x", state="FAULTED", what="w", pods=TRIP.pods, uid="pod-1")
    hang, faulted = (decide(job(), pods=pods(job()), nodes=nodes(), now_s=NOW_S, trip=one) for one in (TRIP, fault))
    assert (hang.status.node_failures, faulted.status.node_failures) == ((), (("n1", 1),))


def test_a_pattern_that_backtracks_for_ever_is_ended_and_the_next_one_is_matched() -> None:
    evil, good = read_log_rules([{**FAULTS, "logPattern": "(a+)+b"}, {**FAULTS, "logPattern": r"a+(\d)"}])
    matcher, before = Matcher(), time.process_time()
    try:
        with pytest.raises(SlowPatternError):
            matcher.matched(evil, ["a" * 60])
        assert matcher.matched(good, ["b", "aa7"]) == [(1, False, 7.0)]
        assert matcher._process is not None
        matcher._process.kill()
        with pytest.raises(SlowPatternError):
            matcher.matched(good, ["aa7"])
        assert matcher.matched(good, ["aa7"]) == [(0, False, 7.0)]
    finally:
        matcher.close()
    assert time.process_time() - before < 1.0, f"the operator's own process matched ({sys.executable})"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "r[0].name: got ''; allowed: a name"),
        ({"logPattern": None}, "r[0].logPattern: got nothing; allowed: a regular expression"),
        ({"logPattern": "("}, "r[0].logPattern: got '(' (missing ), unterminated subpattern at position 0)"),
        ({"logPattern": "x" * 513}, "r[0].logPattern: got 513 characters; allowed: a regular expression of up to 512"),
        ({"stopPattern": "["}, "r[0].stopPattern: got '['"),
        ({"expectedStartCutOffInSeconds": 0}, "expectedStartCutOffInSeconds: got 0; allowed: a whole number from 1"),
        ({"metricThreshold": "2"}, "r[0].metricThreshold: got '2'; allowed: a number"),
        ({"metricThreshold": 2}, "r[0].operator: got nothing; allowed: gt, gteq, lt, lteq, eq"),
        ({"operator": "ge"}, "r[0].operator: got 'ge'"),
        ({"metricThreshold": 2, "operator": "gt"}, "r[0].logPattern: got no group; allowed: one for the metric"),
        ({"faultOnMatch": "yes"}, "r[0].faultOnMatch: got 'yes'; allowed: true, false"),
        ({"faultOnMatch": False}, "r[0]: got a rule that checks nothing"),
        ({"oops": 1}, "r[0].oops: unknown field"),
    ],
)
def test_mistakes_of_a_rule_are_refused_by_name(changes: dict[str, Any], words: str) -> None:
    assert list(log_rule_mistakes([FAULTS], "r")) == []
    assert words in "\n".join(log_rule_mistakes([{**FAULTS, **changes}], "r"))


def test_rules_are_a_short_list_with_a_name_each_and_all_mistakes_are_found_at_once() -> None:
    assert "r: got 17 entries; allowed: a list of up to 16" in next(log_rule_mistakes([FAULTS] * 17, "r"))
    assert "r: got {}; allowed: a list" in next(log_rule_mistakes({}, "r"))
    assert list(log_rule_mistakes([FAULTS, FAULTS], "r")) == [
        "r[1].name: got 'faults' again; allowed: a name for each rule"
    ]
    found = mistakes({"metadata": {"name": "x"}, "spec": {"logRules": [{"name": 1}], "nodes": {}, "template": 1}})
    assert [line.partition(":")[0] for line in found] == [
        "spec.nodes", "spec.logRules[0].name", "spec.logRules[0].logPattern", "spec.logRules[0]", "spec.template",
    ]  # fmt: skip
