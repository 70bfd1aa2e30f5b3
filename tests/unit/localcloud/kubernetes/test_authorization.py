"""AWS's access policies: what the page says, and what follows for a request to the Kubernetes API."""
# ruff: noqa: E501 - lines of the page are as AWS writes them

import json
import re

import pytest

from holdfast.catalog import ACCESS_POLICIES_FILE, AccessRule, access_policies
from holdfast.localcloud.kubernetes.access import Association, Attributes, Scope, allowing, attributes_of

PREFIX = "arn:aws:eks::aws:cluster-access-policy/"
READ, WRITE = {"get", "list", "watch"}, {"create", "delete", "deletecollection", "patch", "update"}
CLUSTER = Scope()

# Lines of the page as it is written, EKS user guide, access-policy-permissions: one of each table at the least.
PAGE = {
    "AmazonEKSAdminPolicy": """
|  `authorization.k8s.io`  |  `localsubjectaccessreviews`  |  `create`  |
|  `rbac.authorization.k8s.io`  |  `rolebindings`, `roles`  |  `create`, `delete`, `deletecollection`, `get`, `list`, `patch`, `update`, `watch`  |
|  |  `pods/attach`, `pods/exec`, `pods/portforward`, `pods/proxy`, `secrets`, `services/proxy`  |  `get`, `list`, `watch`  |
|  |  `serviceaccounts`  |  `impersonate`  |
""",
    "AmazonEKSAdminViewPolicy": "|  `*`  |  `*`  |  `get`, `list`, `watch`  |",
    "AmazonEKSEditPolicy": """
|  `apps`  |  `daemonsets`, `deployments`, `deployments/rollback`, `deployments/scale`, `replicasets`, `replicasets/scale`, `statefulsets`, `statefulsets/scale`  |  `create`, `delete`, `deletecollection`, `patch`, `update`  |
|  `batch`  |  `cronjobs`, `jobs`  |  `create`, `delete`, `deletecollection`, `patch`, `update`  |
|  |  `configmaps`, `events`, `persistentvolumeclaims`, `replicationcontrollers`, `replicationcontrollers/scale`, `secrets`, `serviceaccounts`, `services`, `services/proxy`  |  `create`, `delete`, `deletecollection`, `patch`, `update`  |
|  |  `pods`, `pods/attach`, `pods/exec`, `pods/portforward`, `pods/proxy`  |  `create`, `delete`, `deletecollection`, `patch`, `update`  |
""",
    "AmazonEKSViewPolicy": """
|  `discovery.k8s.io`  |  `endpointslices`  |  `get`, `list`, `watch`  |
|  `policy`  |  `poddisruptionbudgets`, `poddisruptionbudgets/status`  |  `get`, `list`, `watch`  |
|  |  `configmaps`, `endpoints`, `persistentvolumeclaims`, `persistentvolumeclaims/status`, `pods`, `replicationcontrollers`, `replicationcontrollers/scale`, `serviceaccounts`, `services`, `services/status`  |  `get`, `list`, `watch`  |
|  |  `bindings`, `events`, `limitranges`, `namespaces/status`, `pods/log`, `pods/status`, `replicationcontrollers/status`, `resourcequotas`, `resourcequotas/status`  |  `get`, `list`, `watch`  |
|  |  `namespaces`  |  `get`, `list`, `watch`  |
""",
    "AmazonEKSPodIdentityPolicy": "|  |  `pods`  |  `list`  |",
    "AmazonEKSSecretAdminPolicy": "|  |  `secrets`  |  `*`  |",
    "AmazonEKSSecretReaderPolicy": "|  |  `secrets`  |  `get`, `list`, `watch`  |",
    "AWSBackupFullAccessPolicyForBackup": "|  `*`  |  `*`  |  `list`, `get`  |",
    "AWSBackupFullAccessPolicyForRestore": """
|  `*`  |  `*`  |  `list`, `get`, `create`  |
|  `rbac.authorization.k8s.io`  |  `roles`, `clusterroles`  |  `create`, `update`, `escalate`, `bind`  |
""",
    "AmazonEKSHybridPolicy": "|  `*`  |  `nodes`  |  `list`  |",
    "AmazonEKSACKPolicy": """
|  |  `namespaces`  |  `get`, `watch`, `list`  |
|  `coordination.k8s.io`  |  `leases`  |  `create`, `get`, `list`, `watch`  |
|  `apiextensions.k8s.io`  |  `customresourcedefinitions`  |  `*`  |
""",
    "AmazonEKSArgoCDClusterPolicy": "|  |  `namespaces`  |  `create`, `get`, `update`, `patch`, `delete`  |",
    "AmazonEKSArgoCDPolicy": "|  |  `events`  |  `get`, `list`, `watch`, `patch`, `create`  |",
    "AmazonEKSKROPolicy": "|  `kro.run`  |  `*`  |  `*`  |",
}  # fmt: skip


def rows(text: str) -> list[AccessRule]:
    cells = [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:4]] for line in text.strip().splitlines()]
    return [
        AccessRule(api_groups=tuple(groups) or ("",), resources=tuple(resources), verbs=tuple(verbs))
        for groups, resources, verbs in cells
    ]


@pytest.mark.parametrize("name", sorted(PAGE))
def test_the_catalogue_has_the_rows_of_the_page(name: str) -> None:
    assert [row for row in rows(PAGE[name]) if row not in access_policies()[PREFIX + name].rules] == []


def test_each_table_has_as_many_rows_as_the_page() -> None:
    counted = {name: len(access_policies()[PREFIX + name].rules) for name in PAGE}
    assert counted == {
        "AmazonEKSAdminPolicy": 22,
        "AmazonEKSAdminViewPolicy": 1,
        "AmazonEKSEditPolicy": 20,
        "AmazonEKSViewPolicy": 10,
        "AmazonEKSPodIdentityPolicy": 1,
        "AmazonEKSSecretAdminPolicy": 1,
        "AmazonEKSSecretReaderPolicy": 1,
        "AWSBackupFullAccessPolicyForBackup": 1,
        "AWSBackupFullAccessPolicyForRestore": 2,
        "AmazonEKSHybridPolicy": 1,
        "AmazonEKSACKPolicy": 5,
        "AmazonEKSArgoCDClusterPolicy": 4,
        "AmazonEKSArgoCDPolicy": 4,
        "AmazonEKSKROPolicy": 4,
    }


def test_every_policy_has_a_source_of_some_date() -> None:
    data = json.loads(ACCESS_POLICIES_FILE.read_text())

    assert {entry["source"] for entry in data["policies"].values()} == set(data["sources"])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", source["date"]) for source in data["sources"].values())
    assert [name for name, entry in data["policies"].items() if not entry["rules"] and entry["detail"] == "table"] == []


def allowed(policy: str, verb: str, resource: str = "", *, scope: Scope = CLUSTER, **more: str) -> bool:
    associations = [Association(policy=access_policies()[PREFIX + policy], scope=scope)]
    return allowing(associations, Attributes(verb=verb, resource=resource, **more)) is not None


@pytest.mark.parametrize(
    ("policy", "verb", "resource", "group", "expected"),
    [
        ("AmazonEKSViewPolicy", "get", "pods", "", True),
        ("AmazonEKSViewPolicy", "get", "pods/log", "", True),
        ("AmazonEKSViewPolicy", "delete", "pods", "", False),
        ("AmazonEKSViewPolicy", "get", "secrets", "", False),
        ("AmazonEKSViewPolicy", "get", "pods/exec", "", False),
        ("AmazonEKSViewPolicy", "get", "pods", "metrics.k8s.io", False),
        ("AmazonEKSViewPolicy", "list", "nodes", "", False),
        ("AmazonEKSEditPolicy", "create", "pods/exec", "", True),
        ("AmazonEKSEditPolicy", "get", "secrets", "", True),
        ("AmazonEKSEditPolicy", "create", "roles", "rbac.authorization.k8s.io", False),
        ("AmazonEKSEditPolicy", "create", "hyperpodpytorchjobs", "sagemaker.amazonaws.com", False),
        ("AmazonEKSAdminPolicy", "create", "roles", "rbac.authorization.k8s.io", True),
        ("AmazonEKSAdminPolicy", "create", "clusterroles", "rbac.authorization.k8s.io", False),
        ("AmazonEKSAdminPolicy", "patch", "resourcequotas", "", False),
        ("AmazonEKSAdminViewPolicy", "watch", "anything/status", "example.com", True),
        ("AmazonEKSAdminViewPolicy", "impersonate", "users", "", False),
        ("AmazonEKSClusterAdminPolicy", "impersonate", "users", "", True),
        ("AmazonEKSSecretReaderPolicy", "update", "secrets", "", False),
        ("AmazonSagemakerHyperpodTrainingPolicy", "create", "hyperpodpytorchjobs", "sagemaker.amazonaws.com", True),
        ("AmazonSagemakerHyperpodTrainingPolicy", "create", "configmaps", "", False),
        ("AmazonSagemakerHyperpodTrainingPolicy", "deletecollection", "pods", "", False),
        ("AmazonSagemakerHyperpodInferencePolicy", "list", "ingresses", "networking.k8s.io", True),
        ("AmazonSagemakerHyperpodSpaceTemplatePolicy", "get", "workspacetemplates", "workspace.jupyter.org", True),
        ("AmazonSagemakerHyperpodUserClusterPolicy", "list", "nodes", "", True),
        (
            "AmazonSagemakerHyperpodUserClusterPolicy",
            "list",
            "customresourcedefinitions",
            "apiextensions.k8s.io",
            False,
        ),
        ("AmazonSagemakerHyperpodControllerPolicy", "get", "pods", "", False),
    ],
)
def test_a_policy_allows_what_its_rules_say(policy: str, verb: str, resource: str, group: str, expected: bool) -> None:
    assert allowed(policy, verb, resource, api_group=group, namespace="dev") is expected


@pytest.mark.parametrize(
    ("namespaces", "namespace", "expected"),
    [
        (("dev",), "dev", True),
        (("dev",), "dev-2", False),
        (("dev-*",), "dev-2", True),
        (("dev-*",), "dev", False),
        (("*-jobs", "dev"), "team-jobs", True),
        (("d.v",), "dev", False),
        (("*",), "kube-system", True),
        (("*",), "", False),
    ],
)
def test_a_scope_is_namespaces_with_wildcards(namespaces: tuple[str, ...], namespace: str, expected: bool) -> None:
    scope = Scope(namespaces=namespaces)
    assert allowed("AmazonEKSViewPolicy", "get", "pods", scope=scope, namespace=namespace) is expected


def test_a_policy_of_a_namespace_is_not_about_the_cluster() -> None:
    scope = Scope(namespaces=("*",))

    assert not allowed("AmazonEKSClusterAdminPolicy", "list", "nodes", scope=scope)
    assert not allowed("AmazonEKSClusterAdminPolicy", "get", path="/metrics", scope=scope)
    assert allowed("AmazonEKSClusterAdminPolicy", "get", path="/metrics")


def test_paths_end_in_a_wildcard_or_are_meant_as_they_are() -> None:
    policy = "AmazonEKSArgoCDClusterPolicy"
    found = {path: allowed(policy, "get", path=path) for path in ("/api", "/apis/batch/v1", "/apisx", "/metrics")}
    assert found == {"/api": True, "/apis/batch/v1": True, "/apisx": False, "/metrics": False}


def test_names_limit_a_rule() -> None:
    def may(name: str) -> bool:
        where = {"api_group": "apiextensions.k8s.io", "name": name}
        return allowed("AmazonEKSArgoCDClusterPolicy", "delete", "customresourcedefinitions", **where)

    assert may("applications.argoproj.io")
    assert not may("queues.kueue.x-k8s.io")
    assert not may("")


def test_the_attributes_of_a_review_are_read() -> None:
    asked = {"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "a"}
    found = attributes_of({"resourceAttributes": asked})
    assert found == Attributes(verb="get", api_group="apps", resource="deployments/scale", namespace="a")
    assert attributes_of({"nonResourceAttributes": {"path": "/x", "verb": "get"}}).path == "/x"


@pytest.mark.parametrize(
    "spec", [{}, {"resourceAttributes": None}, {"resourceAttributes": {"verb": ["get"]}}, {"nonResourceAttributes": {}}]
)
def test_rejects_a_review_that_asks_nothing(spec: dict[str, object]) -> None:
    associations = [Association(policy=access_policies()[PREFIX + "AmazonEKSClusterAdminPolicy"], scope=CLUSTER)]
    assert allowing(associations, attributes_of(spec)) is None
