"""Jobs of newer versions on an older API server: what is applied, and which index a pod gets."""

import base64
import json
from typing import Any

import pytest

from holdfast.localcloud.kubernetes.older_server import COMPLETIONS_LABEL, IndexedJobError, Indexes, for_server
from holdfast_common import KubernetesError

INDEX = "batch.kubernetes.io/job-completion-index"
JOB_SPEC = {"completions": 2, "completionMode": "Indexed", "template": {"spec": {"containers": [{"name": "a"}]}}}


def job(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ddp"}, "spec": {**JOB_SPEC, **spec}}


def cron_job() -> dict[str, Any]:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": JOB_SPEC}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hello"}, "spec": spec}


# -- manifests


def test_an_indexed_job_is_labelled_for_a_server_that_has_none() -> None:
    changed = for_server(job(), minor=20)["spec"]
    assert "completionMode" not in changed
    assert changed["template"]["metadata"]["labels"] == {COMPLETIONS_LABEL: "2"}
    assert for_server(job(completionMode="NonIndexed"), minor=21)["spec"]["template"] == JOB_SPEC["template"]


def test_a_cron_job_gets_the_version_that_the_server_has_and_its_jobs_their_label() -> None:
    changed = for_server(cron_job(), minor=20)
    assert changed["apiVersion"] == "batch/v1beta1"
    assert changed["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"] == {COMPLETIONS_LABEL: "2"}
    assert for_server(cron_job(), minor=21)["apiVersion"] == "batch/v1"


@pytest.mark.parametrize(
    ("version", "kind", "older", "since"),
    [
        ("policy/v1", "PodDisruptionBudget", "policy/v1beta1", 21),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "autoscaling/v2beta2", 23),
    ],
)
def test_objects_beside_a_deployment_get_the_version_that_the_server_has(
    version: str, kind: str, older: str, since: int
) -> None:
    thing = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"minAvailable": 1}}
    assert for_server(thing, minor=since - 1) == {**thing, "apiVersion": older}
    assert for_server(thing, minor=since) == thing


def test_ports_of_a_service_get_the_protocol_that_newer_servers_take_for_granted() -> None:
    ports = [{"port": 6006}, {"port": 53, "protocol": "UDP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}}
    assert for_server(service, minor=20)["spec"]["ports"] == [{"port": 6006, "protocol": "TCP"}, ports[1]]
    assert for_server(service, minor=21) == service
    headless = {**service, "spec": {"clusterIP": "None"}}
    assert for_server(headless, minor=20) == headless


@pytest.mark.parametrize("thing", [job(), cron_job()])
def test_nothing_changes_for_a_server_that_has_indexed_jobs(thing: dict[str, Any]) -> None:
    before = json.dumps(thing)
    assert for_server(thing, minor=22) == thing
    for_server(thing, minor=20)
    assert json.dumps(thing) == before


def test_an_indexed_job_without_completions_is_refused_as_by_newer_servers() -> None:
    with pytest.raises(IndexedJobError, match=r"spec\.completions is required with completionMode: Indexed"):
        for_server(job(completions=None), minor=20)


# -- indexes


class Job:
    """A Job's pods, as the API server and the Job controller handle them."""

    def __init__(self, *, completions: int = 3) -> None:
        self.pods: list[dict[str, Any]] = []
        self.completions, self.now = completions, 0.0
        self.indexes = Indexes(pods=lambda _: self.pods, clock=lambda: self.now)

    def review(self, *, dry_run: bool = False, **spec: Any) -> dict[str, Any]:
        owner = {"kind": "Job", "name": "ddp", "uid": "7", "controller": True}
        pod = {
            "metadata": {
                "generateName": "ddp-",
                "labels": {COMPLETIONS_LABEL: str(self.completions)},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": "a"}], **spec},
        }
        request = {"uid": "1", "namespace": "default", "object": pod, "dryRun": dry_run}
        response: dict[str, Any] = self.indexes.admit({"request": request})["response"]
        if not response["allowed"]:
            return response
        for step in json.loads(base64.b64decode(response["patch"])):
            _, part, field = step["path"].split("/")
            pod[part][field] = step["value"]
        return {"metadata": {**pod["metadata"]}, "spec": pod["spec"], "status": {"phase": "Pending"}}

    def create(self) -> dict[str, Any]:
        self.pods.append(self.review())
        return self.pods[-1]


def index(pod: dict[str, Any]) -> str:
    found: str = pod["metadata"]["annotations"][INDEX]
    return found


def test_a_pod_gets_the_lowest_free_index_and_all_that_names_it() -> None:
    made = Job()
    made.create()
    pod = made.review(initContainers=[{"name": "i", "env": [{"name": "X", "value": "1"}]}])
    assert (index(pod), pod["metadata"]["labels"][INDEX]) == ("1", "1")
    assert pod["metadata"]["name"].startswith("ddp-1-")
    assert pod["spec"]["hostname"] == "ddp-1"
    variable = {"name": "JOB_COMPLETION_INDEX", "value": "1"}
    assert pod["spec"]["containers"] == [{"name": "a", "env": [variable]}]
    assert pod["spec"]["initContainers"][0]["env"] == [{"name": "X", "value": "1"}, variable]


def test_reviews_of_pods_that_are_not_listed_yet_get_different_indexes() -> None:
    made = Job()
    assert [index(made.review()) for _ in range(3)] == ["0", "1", "2"]
    refused = made.review()
    assert refused["allowed"] is False
    assert refused["status"]["message"] == "no completion index: each of the 3 of Job ddp has a pod"


def test_the_index_of_a_failed_or_deleted_pod_is_given_again_and_that_of_a_success_never() -> None:
    made = Job()
    failed, succeeded, deleted = (made.create() for _ in range(3))
    failed["status"]["phase"], succeeded["status"]["phase"] = "Failed", "Succeeded"
    deleted["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z"
    assert [index(made.create()) for _ in range(2)] == ["0", "2"]
    assert made.review()["allowed"] is False


def test_an_index_whose_pod_was_never_created_is_free_after_the_requests_deadline() -> None:
    made = Job(completions=1)
    made.review()
    made.now = 29.0
    assert made.review()["allowed"] is False
    made.now = 31.0
    assert index(made.review(dry_run=True)) == "0"
    assert index(made.review()) == "0"


def test_a_pod_without_a_job_is_left_alone_and_one_without_a_list_of_pods_refused() -> None:
    def gone(_: str) -> list[dict[str, Any]]:
        raise KubernetesError(0, "timed out")

    made = Job()
    pod = {"metadata": {"labels": {COMPLETIONS_LABEL: "2"}}, "spec": {}}
    assert made.indexes.admit({"request": {"uid": "1", "object": pod}})["response"] == {"uid": "1", "allowed": True}
    made.indexes = Indexes(pods=gone)
    assert made.review()["status"]["message"] == "no completion index: timed out"
