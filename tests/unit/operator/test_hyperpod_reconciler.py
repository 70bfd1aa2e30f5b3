"""HyperPodPyTorchJobs carried over, against an API server in memory."""

from typing import Any

import pytest
from hyperpod_jobs import hyperpod_job
from memory_api import MemoryApi, MemoryCache

from holdfast_common import KubernetesError
from holdfast_operator.driver import ForeignDefinitionError, HyperPodReconciler, check_definition

THEIRS = "/apis/sagemaker.amazonaws.com/v1/namespaces/team/hyperpodpytorchjobs"
OURS = "/apis/holdfast.dev/v1alpha1/namespaces/team/holdfastjobs"
PODS = "/api/v1/namespaces/team/pods"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "hyperpodpytorchjobs.sagemaker.amazonaws.com"


class World:
    def __init__(self) -> None:
        self.api = MemoryApi()
        self.now_s, self.leads = 1000.0, True
        self.lines: list[str] = []
        access: Any = self.api
        cache: Any = MemoryCache(self.api)
        self.cache = cache
        self.reconciler = HyperPodReconciler(
            access, cache=cache, may_write=lambda: self.leads, report=self.lines.append, clock=lambda: self.now_s
        )

    def create(self, **fields: Any) -> None:
        job = hyperpod_job(**fields)
        self.api.create(THEIRS, {key: value for key, value in job.items() if key != "status"})

    def passes(self, count: int = 3) -> None:
        for _ in range(count):
            for job in self.cache.hyperpod_jobs():
                self.reconciler.reconcile(job)

    @property
    def job(self) -> dict[str, Any]:
        return self.api.objects[f"{THEIRS}/llama"]

    @property
    def child(self) -> dict[str, Any]:
        return self.api.objects[f"{OURS}/llama-pods"]

    def ends(self, kind: str = "Complete") -> None:
        """The child ends with a pod of each kind left."""
        time = "1970-01-01T00:16:40Z"
        condition = {"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time}
        self.child["status"] = {"conditions": [condition], "completionTime": time}
        for index, phase in enumerate(("Succeeded", "Failed")):
            metadata = {
                "name": f"llama-pods-{index}",
                "namespace": "team",
                "labels": {"holdfast.dev/job": "llama-pods"},
            }
            self.api.create(PODS, {"metadata": metadata})
            self.api.objects[f"{PODS}/llama-pods-{index}"]["status"] = {"phase": phase}

    @property
    def pods(self) -> list[str]:
        return sorted(path.rpartition("-")[2] for path in self.api.objects if path.startswith(f"{PODS}/"))


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_gets_one_holdfast_job_that_it_owns_and_then_nothing_is_written_any_more(world: World) -> None:
    world.create()
    world.passes()
    (owner,) = world.child["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("HyperPodPyTorchJob", world.job["metadata"]["uid"])
    assert [one["type"] for one in world.job["status"]["conditions"]] == ["Created"]
    world.api.calls.clear()
    world.passes()
    assert world.api.calls == []


def test_an_invalid_job_has_no_holdfast_job_and_says_why(world: World) -> None:
    world.create(elasticPolicy={"minReplicas": 1})
    world.passes()
    assert f"{OURS}/llama-pods" not in world.api.objects
    assert world.job["status"]["conditions"][-1]["message"].startswith("spec.elasticPolicy.maxReplicas: got nothing")


def test_a_holdfast_job_of_that_name_that_is_somebody_else_s_is_left_alone(world: World) -> None:
    there = {"metadata": {"name": "llama-pods", "namespace": "team"}, "spec": {}}
    world.api.create(OURS, there)
    world.create()
    world.passes()
    assert world.child["spec"] == {}
    assert (
        "'llama-pods', the name of a HoldfastJob that is not this job's"
        in (world.job["status"]["conditions"][-1]["message"])
    )


def test_a_suspension_and_other_limits_reach_the_holdfast_job(world: World) -> None:
    world.create(policy={"jobMaxRetryCount": 5, "activeDeadlineSeconds": 60})
    world.passes()
    world.job["spec"]["runPolicy"] = {"suspend": True, "jobMaxRetryCount": 6}
    world.passes()
    assert world.child["spec"]["suspend"] is True
    assert world.child["spec"]["recovery"] == {"launcherRestarts": 6}
    assert world.child["spec"]["deadlines"] == {}


def test_an_elastic_job_and_new_log_rules_are_carried_over_once(world: World) -> None:
    world.create(elasticPolicy={"minReplicas": 2, "maxReplicas": 3, "scalingTimeoutInSeconds": 60})
    world.passes()
    began = {"type": "Running", "status": "True", "reason": "R", "lastTransitionTime": "1970-01-01T00:16:00Z"}
    world.child["status"] = {"conditions": [began]}
    world.passes()
    assert world.child["spec"]["nodes"] == {"size": 2, "spares": 0, "min": 2, "max": 3}
    world.now_s = 1020.0
    rules = [{"name": "x", "logPattern": "x", "faultOnMatch": True}]
    world.job["spec"]["runPolicy"] = {"logMonitoringConfiguration": rules}
    world.passes()
    assert (world.child["spec"]["nodes"]["size"], world.child["spec"]["logRules"]) == (3, rules)
    world.api.calls.clear()
    world.passes()
    assert [call for call in world.api.writes() if call[1].startswith(OURS)] == []


def test_the_state_of_the_holdfast_job_is_shown(world: World) -> None:
    world.create()
    world.passes()
    world.ends("Failed")
    world.passes(1)
    failed = world.job["status"]["conditions"][-1]
    assert (failed["type"], failed["status"], failed["message"]) == ("Failed", "True", "m")


def test_a_job_that_has_ended_does_not_run_again_when_its_holdfast_job_is_deleted(world: World) -> None:
    world.create()
    world.passes()
    world.ends()
    world.passes()
    del world.api.objects[f"{OURS}/llama-pods"]
    world.passes()
    assert f"{OURS}/llama-pods" not in world.api.objects
    assert world.job["status"]["conditions"][-1]["type"] == "Complete"


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("OnlyComplete", ["1"]), ("None", ["0", "1"])])
def test_ended_pods_are_removed_as_the_policy_has_it(world: World, policy: str, left: list[str]) -> None:
    world.create(policy={"cleanPodPolicy": policy})
    world.passes()
    world.ends()
    world.passes()
    assert world.pods == left


@pytest.mark.parametrize(("ttl_s", "at_s", "is_there"), [(60, 1059, True), (60, 1060, False), (-1, 1e9, True)])
def test_an_ended_job_is_deleted_after_its_time(world: World, ttl_s: int, at_s: float, is_there: bool) -> None:
    world.create(policy={"ttlSecondsAfterFinished": ttl_s})
    world.passes()
    world.ends()
    world.now_s = at_s
    world.passes()
    assert (f"{THEIRS}/llama" in world.api.objects) is is_there


def test_without_the_lease_nothing_is_written(world: World) -> None:
    world.create()
    world.leads = False
    world.api.calls.clear()
    world.passes()
    assert world.api.writes() == []


def test_an_api_server_without_an_answer_is_no_mistake_of_the_job(world: World) -> None:
    world.create()
    with world.api.refusing(f"POST {OURS}", 503), pytest.raises(KubernetesError):
        world.passes()
    world.passes()
    assert [one["type"] for one in world.job["status"]["conditions"]] == ["Created"]


def test_a_quota_for_holdfast_jobs_is_shown_as_the_reason(world: World) -> None:
    world.create()
    with world.api.refusing(f"POST {OURS}", 403, "exceeded quota: jobs"):
        world.passes()
    assert "exceeded quota: jobs" in world.job["status"]["conditions"][-1]["message"]
    world.passes()
    assert [one["type"] for one in world.job["status"]["conditions"]] == ["Created"]


def test_the_kind_of_aws_s_operator_is_not_served(world: World) -> None:
    client: Any = world.api
    world.api.create(
        DEFINITION, {"metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "hp-training-operator"}}}
    )
    with pytest.raises(ForeignDefinitionError, match="allowed: that of this chart"):
        check_definition(client)
    world.api.objects[f"{DEFINITION}/{NAME}"]["metadata"]["labels"] = {"app.kubernetes.io/name": "holdfast-operator"}
    check_definition(client)
