"""A HyperPodPyTorchJob as a HoldfastJob: each field honoured, refused, or named as without effect."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hyperpod_jobs import CONTAINER, hyperpod_job

from holdfast_operator.driver import answer_to
from holdfast_operator.hyperpod import (
    grown_size,
    hyperpod_mistakes,
    hyperpod_status,
    to_holdfast_job,
    without_effect,
)
from holdfast_operator.jobs import Status, mistakes, read_status

SAMPLE = {
    "jobMaxRetryCount": 50,
    "restartPolicy": {"numRestartBeforeFullJobRestart": 3, "evalPeriodSeconds": 21600, "maxFullJobRestarts": 1},
    "cleanPodPolicy": "All",
    "logMonitoringConfiguration": [
        {"name": "JobStart", "logPattern": ".*Experiment configuration.*", "expectedStartCutOffInSeconds": 120},
        {
            "name": "JobHangingDetection",
            "logPattern": r".*\[Epoch 0 Batch \d+.*'training_loss_step': (\d+(\.\d+)?).*",
            "expectedRecurringFrequencyInSeconds": 300,
            "expectedStartCutOffInSeconds": 600,
        },
        {
            "name": "LossSpikeDetection",
            "logPattern": r".*training_loss_step (\d+(?:\.\d+)?).*",
            "metricThreshold": 2.0,
            "operator": "gt",
            "metricEvaluationDataPoints": 5,
        },
        {"name": "GPU Error", "logPattern": ".*RuntimeError.*out of memory.*", "faultOnMatch": True},
    ],
}
"""Run policy of AWS's page, and rules of its samples."""


def test_the_sample_of_aws_s_page_is_a_valid_job_whose_restart_limits_are_kept() -> None:
    job = hyperpod_job(policy=SAMPLE)
    made = to_holdfast_job(job)

    assert hyperpod_mistakes(job) == []
    assert mistakes(made) == []
    assert made["metadata"]["name"] == "llama-pods"
    assert made["spec"]["nodes"] == {"size": 2, "spares": 0}
    assert made["spec"]["processesPerNode"] == 8
    assert made["spec"]["recovery"] == {
        "launcherRestarts": 50, "jobRestarts": 1, "restartAllAfter": 3, "periodSeconds": 21600,
    }  # fmt: skip
    assert made["spec"]["logRules"] == SAMPLE["logMonitoringConfiguration"]
    assert made["spec"]["template"]["metadata"]["labels"] == {"HPJob": "llama"}
    assert made["spec"]["template"]["spec"]["containers"] == [CONTAINER]
    assert without_effect(job) == []


def test_a_job_of_another_person_s_repository_is_valid(repository: Path) -> None:
    text = (repository / "tests/cases/ordinary_jobs/eks/04-hyperpodpytorchjob.yaml").read_text()
    assert hyperpod_mistakes(yaml.safe_load(text)) == []


def test_deadlines_spares_suspension_and_offenders_are_carried_over() -> None:
    policy = {
        "startupDeadlineSeconds": 60,
        "activeDeadlineSeconds": 600,
        "faultDeadlineSeconds": 90,
        "suspend": True,
        "restartPolicy": {"evalPeriodSeconds": 1, "maxNumRepeatOffendersToAvoid": 0},
    }
    spec = to_holdfast_job(hyperpod_job(policy=policy, replica={"spares": 1}))["spec"]
    assert spec["deadlines"] == {"startSeconds": 60, "activeSeconds": 600, "faultSeconds": 90}
    assert spec["suspend"] is True
    assert spec["nodes"] == {"size": 2, "spares": 1}
    assert spec["recovery"] == {"nodeFailures": 0, "periodSeconds": 1}


@pytest.mark.parametrize(
    ("given", "resources", "processes"),
    [
        ("4", {"limits": {"nvidia.com/gpu": 8}}, 4),
        ("auto", {"limits": {"nvidia.com/gpu": 8, "cpu": "179"}}, 8),
        ("gpu", {"requests": {"nvidia.com/mig-1g.10gb": "2"}}, 2),
        ("auto", {"limits": {"aws.amazon.com/neurondevice": 16}}, 16),
        ("cpu", {"limits": {"nvidia.com/gpu": 8, "cpu": "3500m"}}, 4),
        ("auto", {}, 1),
    ],
)
def test_ranks_per_node_come_from_the_text_or_from_the_container_s_devices(
    given: str, resources: dict[str, Any], processes: int
) -> None:
    template = {"spec": {"containers": [{**CONTAINER, "resources": resources}]}}
    job = hyperpod_job(replica={"template": template}, nprocPerNode=given)
    assert to_holdfast_job(job)["spec"]["processesPerNode"] == processes


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (hyperpod_job(elasticPolicy={"minReplicas": 1}), "spec.elasticPolicy.maxReplicas: got nothing"),
        (hyperpod_job(elasticPolicy=[1]), "spec.elasticPolicy: got [1]; allowed: an object"),
        (hyperpod_job(elasticPolicy={"maxReplicas": 4, "oops": 1}), "spec.elasticPolicy.oops: unknown field"),
        (hyperpod_job(elasticPolicy={"maxReplicas": "4"}), "spec.elasticPolicy.maxReplicas: got '4'"),
        (
            hyperpod_job(elasticPolicy={"minReplicas": 2, "maxReplicas": 3, "replicaDiscreteValues": [2, 3, 8]}),
            "spec.elasticPolicy.replicaDiscreteValues: got [2, 3, 8]; allowed: whole numbers from 2 to 3",
        ),
        (
            hyperpod_job(elasticPolicy={"minReplicas": 1, "maxReplicas": 8}),
            "spec.elasticPolicy.minReplicas: got 1 with max 8 and spares 0; allowed: 5 to 8",
        ),
        (
            hyperpod_job(elasticPolicy={"minReplicas": 1, "maxReplicas": 8, "replicaDiscreteValues": [2, 8]}),
            "spec.elasticPolicy.replicaDiscreteValues: got 2 with max 8 and spares 0; allowed: 5 to 8",
        ),
        (
            hyperpod_job(elasticPolicy={"minReplicas": 3, "maxReplicas": 4}),
            "spec.replicaSpecs[0].replicas: got 2; allowed: 3, 4",
        ),
        (
            hyperpod_job(elasticPolicy={"minReplicas": 2, "maxReplicas": 3, "replicaIncrementStep": 2}),
            "spec.elasticPolicy.replicaIncrementStep: got 2, which does not lead from min 2 to max 3",
        ),
        (hyperpod_job(nprocPerNode=8), "spec.nprocPerNode: got 8; allowed: 'auto', 'cpu', 'gpu', or a number as text"),
        (hyperpod_job(replicaSpecs=[]), "spec.replicaSpecs: got 0; allowed: a list of one object"),
        (hyperpod_job(replica={"maxReplicas": 4}), "spec.replicaSpecs[0].maxReplicas: got 4"),
        (hyperpod_job(replica={"spares": 2}), "spec.replicaSpecs[0].spares: got 2; allowed: 0 to 1"),
        (hyperpod_job(replica={"name": ""}), "spec.replicaSpecs[0].name: got ''"),
        (hyperpod_job(replica={"template": {}}), "spec.replicaSpecs[0].template.spec.containers: got nothing"),
        (hyperpod_job(replica={"name": "Pods"}), "metadata.name and spec.replicaSpecs[0].name: got 'llama-Pods'"),
        (hyperpod_job(policy={"cleanPodPolicy": "Some"}), "got 'Some'; allowed: All, OnlyComplete, None"),
        (hyperpod_job(policy={"workloadMode": "Deployment"}), "spec.runPolicy.workloadMode"),
        (hyperpod_job(policy={"ttlSecondsAfterFinished": -2}), "got -2; allowed: a whole number from -1"),
        (hyperpod_job(policy={"restartPolicy": {}}), "evalPeriodSeconds: got nothing"),
        (hyperpod_job(policy={"backoffLimit": 1}), "spec.runPolicy.backoffLimit: unknown field"),
        (hyperpod_job(policy={"logMonitoringConfiguration": [{"name": "x"}]}), "[0].logPattern: got nothing"),
        (
            hyperpod_job(policy={"logMonitoringConfiguration": [{"name": "x", "logPattern": "a"}]}),
            "spec.runPolicy.logMonitoringConfiguration[0]: got a rule that checks nothing",
        ),
        (
            hyperpod_job(policy={"logMonitoringConfiguration": [{"name": "x", "logPattern": "("}]}),
            "[0].logPattern: got '(' (missing ), unterminated subpattern at position 0)",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_own_name(job: dict[str, Any], words: str) -> None:
    found = "\n".join(hyperpod_mistakes(job))
    assert words in found
    assert not re.search(r"spec\.(nodes|template|processesPerNode)", found)


def test_all_mistakes_are_found_at_once_and_each_of_them_once() -> None:
    """The last ones are of AWS's own sample of an elastic job."""
    elastic = {"minReplicas": 1, "maxReplicas": 4, "replicaIncrementStep": 1, "replicaDiscreteValues": [2, 4, 8]}
    job = hyperpod_job(
        policy={"jobMaxRetryCount": -1, "logMonitoringConfiguration": [{"name": "x", "logPattern": "("}]},
        replica={"replicas": 4, "maxReplicas": 8},
        elasticPolicy=elastic,
        nprocPerNode=8,
    )
    job["metadata"]["name"] = "Llama"
    found = hyperpod_mistakes(job)
    assert sorted(line.partition(": ")[0] for line in found) == [
        "metadata.name and spec.replicaSpecs[0].name",
        "spec.elasticPolicy",
        "spec.elasticPolicy.replicaDiscreteValues",
        "spec.nprocPerNode",
        "spec.replicaSpecs[0].maxReplicas",
        "spec.runPolicy.jobMaxRetryCount",
        "spec.runPolicy.logMonitoringConfiguration[0]",
        "spec.runPolicy.logMonitoringConfiguration[0].logPattern",
    ]
    assert "spec.elasticPolicy: got replicaIncrementStep and replicaDiscreteValues; allowed: one of them" in found
    assert "spec.replicaSpecs[0].maxReplicas: got 8; allowed: 4, as elasticPolicy.maxReplicas" in found


@pytest.mark.parametrize(
    ("elastic", "nodes"),
    [
        ({"replicaIncrementStep": 2, "maxReplicas": 6}, {"min": 4, "max": 6, "step": 2}),
        ({"replicaDiscreteValues": [4, 5], "maxReplicas": 6}, {"sizes": [4, 5]}),
    ],
)
def test_an_elastic_policy_is_the_job_s_sizes_and_its_shutdown_the_pods_grace(
    elastic: dict[str, Any], nodes: dict[str, Any]
) -> None:
    policy = {"minReplicas": 4, "gracefulShutdownTimeoutInSeconds": 600, "faultyScaleDownTimeoutInSeconds": 30}
    job = hyperpod_job(replica={"replicas": 4}, elasticPolicy={**policy, **elastic})
    made = to_holdfast_job(job)["spec"]
    assert (hyperpod_mistakes(job), made["nodes"]) == ([], {"size": 4, "spares": 0, **nodes})
    assert made["template"]["spec"]["terminationGracePeriodSeconds"] == 600
    assert without_effect(job) == ["elasticPolicy.faultyScaleDownTimeoutInSeconds"]


@pytest.mark.parametrize(
    ("size", "since_s", "is_running", "grown"),
    [(4, 0, True, 4), (4, 59, True, 4), (4, 60, True, 6), (4, 600, False, 4), (5, 600, True, 5), (6, 0, True, 6)],
)
def test_an_elastic_job_grows_once_it_has_run_for_its_timeout_unless_it_was_scaled(
    size: int, since_s: int, is_running: bool, grown: int
) -> None:
    elastic = {"minReplicas": 4, "maxReplicas": 6, "scalingTimeoutInSeconds": 20}
    policy = {"restartPolicy": {"evalPeriodSeconds": 1, "scaleUpSnoozeTimeInSeconds": 60}}
    job = hyperpod_job(policy=policy, replica={"replicas": 4}, elasticPolicy=elastic)
    known = running(condition("Running", true=is_running))
    began = known.condition("Running")
    assert began is not None
    assert grown_size(job, size, known, now_s=began.since_s + since_s) == grown
    assert grown_size(hyperpod_job(), 2, known, now_s=began.since_s + since_s) == 2


def test_a_job_s_queue_and_priority_are_those_of_its_holdfast_job() -> None:
    job = hyperpod_job()
    labels = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high", "app": "x"}
    job["metadata"]["labels"] = labels
    assert hyperpod_mistakes(job) == []
    made = to_holdfast_job(job)["metadata"]["labels"]
    assert made == {"HPJob": "llama", **{name: value for name, value in labels.items() if name != "app"}}


def running(*conditions: dict[str, Any], **more: Any) -> Status:
    return read_status({"conditions": list(conditions), "startTime": "2026-11-29T10:00:01Z", **more})


def condition(kind: str, *, true: bool = True, message: str = "") -> dict[str, Any]:
    status = "True" if true else "False"
    return {
        "type": kind,
        "status": status,
        "reason": "R",
        "message": message,
        "lastTransitionTime": "2026-11-29T10:01:00Z",
    }


@pytest.mark.parametrize(
    ("child", "shown"),
    [
        (Status(), "Created"),
        (running(condition("Running", true=False)), "Created"),
        (running(condition("Running")), "Running"),
        (running(condition("Running", true=False), condition("Suspended")), "Suspended"),
        (running(condition("Running"), condition("Complete")), "Complete"),
        (running(condition("Running"), condition("Failed")), "Failed"),
        (running(condition("Running"), condition("Invalid")), "Failed"),
        (running(condition("Running"), condition("Invalid", true=False)), "Running"),
    ],
)
def test_the_last_true_condition_is_what_hyp_shows(child: Status, shown: str) -> None:
    found = hyperpod_status(hyperpod_job(), child)
    assert next(one["type"] for one in reversed(found["conditions"]) if one["status"] == "True") == shown
    created = found["conditions"][0]
    assert (created["type"], created["lastTransitionTime"]) == ("Created", "2026-11-29T10:00:00Z")


def test_the_status_has_the_fields_of_aws_s_model_and_no_other() -> None:
    child = running(condition("Running"), restarts={"launchers": 2, "jobs": 1}, completionTime="2026-11-29T11:00:00Z")
    found = hyperpod_status(hyperpod_job(), child)
    assert found.keys() == {"conditions", "restartCount", "startTime", "completionTime"}
    assert found["restartCount"] == 3
    assert {key for one in found["conditions"] for key in one} == {
        "type", "status", "reason", "message", "lastTransitionTime",
    }  # fmt: skip


def test_what_has_no_effect_stands_in_the_first_condition_and_mistakes_in_failed() -> None:
    idle = {"restartPolicy": {"evalPeriodSeconds": 60, "scaleUpSnoozeTimeInSeconds": 60}}
    accepted = hyperpod_status(hyperpod_job(policy=idle), Status())
    refused = hyperpod_status(hyperpod_job(), Status(), mistakes=["spec.x: wrong"])
    assert (
        accepted["conditions"][0]["message"]
        == "without effect here: runPolicy.restartPolicy.scaleUpSnoozeTimeInSeconds"
    )
    assert [(one["type"], one["message"]) for one in refused["conditions"]][1:] == [("Failed", "spec.x: wrong")]


def review(new: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    request = {"uid": "1", "object": new, "oldObject": old}
    answer = answer_to(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}, trial=lambda _: ""
    )
    found: dict[str, Any] = answer["response"]
    return found


def test_admission_refuses_mistakes_and_changes_of_what_runs() -> None:
    assert review(hyperpod_job())["allowed"]
    assert "spec.nprocPerNode" in review(hyperpod_job(nprocPerNode=8))["status"]["message"]
    assert review(hyperpod_job(policy={"suspend": True}), hyperpod_job())["allowed"]
    refused = review(hyperpod_job(replica={"replicas": 3}), hyperpod_job())
    assert "spec: got other replicaSpecs or nprocPerNode" in refused["status"]["message"]
