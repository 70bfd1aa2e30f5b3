"""Kinds that no controller serves, and images that a local cluster does not have."""

from typing import Any

import pytest

from holdfast.cli.kubernetes import Resource, Rights, image_hint, is_defined, unserved

JOBS = Resource(group_version="kubeflow.org/v1", plural="pytorchjobs", namespaced=True)


def role(name: str, *rules: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(role_name: str, account: str, *, kind: str = "ClusterRole") -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "kubeflow"}
    return {"metadata": {"name": "x"}, "roleRef": {"kind": kind, "name": role_name}, "subjects": [subject]}


def pod(account: str, *, is_ready: bool = True, reason: str = "Err") -> dict[str, Any]:
    waiting = [] if is_ready else [{"state": {"waiting": {"reason": reason, "message": "a"}}}]
    return {
        "metadata": {"name": f"{account}-0", "namespace": "kubeflow", "uid": "u"},
        "spec": {"serviceAccountName": account, "containers": [{"name": "a"}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": waiting,
        },
    }


WRITES = {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs", "pytorchjobs/status"], "verbs": ["*"]}
READS = {**WRITES, "verbs": ["get", "list"]}
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@pytest.mark.parametrize(
    ("rule", "bound", "pods", "why"),
    [
        (WRITES, "operator", [pod("operator")], None),
        (WRITES, "operator", [pod("operator", is_ready=False)], "pod kubeflow/operator-0 is not ready: Err: a"),
        (WRITES, "operator", [pod("other")], "none is installed"),
        (READS, "operator", [pod("operator")], "none is installed"),
        (ALL, "operator", [pod("operator")], "none is installed"),
        (WRITES, "other", [pod("operator")], "none is installed"),
    ],
)  # fmt: skip
def test_a_kind_is_served_where_a_pod_that_is_ready_may_write_it(
    rule: dict[str, Any], bound: str, pods: list[dict[str, Any]], why: str | None
) -> None:
    rights = Rights(roles=(role("r", rule),), bindings=(binding("r", bound),), pods=tuple(pods))
    assert unserved(JOBS, rights) == why


def test_kinds_of_kubernetes_itself_are_served_by_it() -> None:
    own = {"batch/v1": False, "v1": False, "networking.k8s.io/v1": False, "kubeflow.org/v1": True}
    more = {"jobset.x-k8s.io/v1alpha2": True, "apps/v1": False, "sagemaker.amazonaws.com/v1": True}
    for version, expected in {**own, **more}.items():
        assert is_defined(Resource(group_version=version, plural="x", namespaced=True)) is expected


@pytest.mark.parametrize(
    ("why", "image"),
    [
        ('ImagePullBackOff: Back-off pulling image "nvcr.io/nvidia/pytorch:25"', "nvcr.io/nvidia/pytorch:25"),
        ('ErrImagePull: rpc error: failed to pull image "docker.io/library/x:1": no', "docker.io/library/x:1"),
        ("ErrImageNeverPull", "IMAGE"),
    ],
)  # fmt: skip
def test_an_image_that_is_not_there_is_told_with_the_command_that_adds_it(why: str, image: str) -> None:
    assert f"holdfast images add docker://{image} {image}" in image_hint(why)


@pytest.mark.parametrize("why", ["", "CrashLoopBackOff", "exit code 1", "Unschedulable: 0/5 nodes are available"])
def test_other_reasons_have_no_word_about_images(why: str) -> None:
    assert image_hint(why) == ""
