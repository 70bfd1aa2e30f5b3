"""A HyperPodPyTorchJob as a HoldfastJob: each field honoured, refused, or named as without effect."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hyperpod_jobs import CONTAINER, hyperpod_job

from holdfast_operator.driver import answer_to
from holdfast_operator.hyperpod import (
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
    assert made["spec"]["recovery"] == {"launcherRestarts": 50, "jobRestarts": 1}
    assert made["spec"]["logRules"] == SAMPLE["logMonitoringConfiguration"]
    assert made["spec"]["template"]["metadata"]["labels"] == {"HPJob": "llama"}
    assert made["spec"]["template"]["spec"]["containers"] == [CONTAINER]
    assert without_effect(job) == [
        "runPolicy.restartPolicy.evalPeriodSeconds",
        "runPolicy.restartPolicy.numRestartBeforeFullJobRestart",
    ]


def test_a_job_of_another_person_s_repository_is_valid(repository: Path) -> None:
    text = (repository / "tests/cases/ordinary_jobs/eks/04-hyperpodpytorchjob.yaml").read_text()
    assert hyperpod_mistakes(yaml.safe_load(text)) == []


def test_deadlines_spares_suspension_and_offenders_are_carried_over() -> None:
    policy = {
        "startupDeadlineSeconds": 60,
        "activeDeadlineSeconds": 600,
        "suspend": True,
        "restartPolicy": {"evalPeriodSeconds": 1, "maxNumRepeatOffendersToAvoid": 0},
    }
    spec = to_holdfast_job(hyperpod_job(policy=policy, replica={"spares": 1}))["spec"]
    assert spec["deadlines"] == {"startSeconds": 60, "activeSeconds": 600}
    assert spec["suspend"] is True
    assert spec["nodes"] == {"size": 2, "spares": 1}
    assert spec["recovery"] == {"nodeFailures": 0}


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
        (hyperpod_job(elasticPolicy={"minReplicas": 1}), "spec.elasticPolicy: no job is resized here"),
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


def test_a_job_for_a_queue_is_refused() -> None:
    job = hyperpod_job()
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    assert hyperpod_mistakes(job) == [
        "metadata.labels: got kueue.x-k8s.io/queue-name; leave it out, jobs do not wait in Kueue's queues here"
    ]


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
    accepted = hyperpod_status(hyperpod_job(policy={"faultDeadlineSeconds": 60}), Status())
    refused = hyperpod_status(hyperpod_job(), Status(), mistakes=["spec.x: wrong"])
    assert accepted["conditions"][0]["message"] == "without effect here: runPolicy.faultDeadlineSeconds"
    assert [(one["type"], one["message"]) for one in refused["conditions"]][1:] == [("Failed", "spec.x: wrong")]


def review(new: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    request = {"uid": "1", "object": new, "oldObject": old}
    answer = answer_to({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    found: dict[str, Any] = answer["response"]
    return found


def test_admission_refuses_mistakes_and_changes_of_what_runs() -> None:
    assert review(hyperpod_job())["allowed"]
    assert "spec.nprocPerNode" in review(hyperpod_job(nprocPerNode=8))["status"]["message"]
    assert review(hyperpod_job(policy={"suspend": True}), hyperpod_job())["allowed"]
    refused = review(hyperpod_job(replica={"replicas": 3}), hyperpod_job())
    assert "spec: got other replicaSpecs or nprocPerNode" in refused["status"]["message"]
