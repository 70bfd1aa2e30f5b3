"""The operator's chart, rendered by helm: valid for every Kubernetes, and no more rights than the operator needs."""

import base64
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from installed_charts import helm_program, helm_template
from kubernetes_schemas import MINORS, complaints

from holdfast_common import JOB_GROUP, JOB_KIND, JOB_PLURAL, JOB_VERSION
from holdfast_operator.hyperpod import DEFINITION, KIND

IMAGE = "registry/operator@sha256:" + "0" * 64


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return helm_program(tmp_path_factory.mktemp("helm"))


def rendered(helm: Path, repository: Path, *settings: str, minor: str = "1.34") -> list[dict[str, Any]]:
    chart = repository / "containers/operator/chart"
    options = [word for setting in (f"image={IMAGE}", *settings) for word in ("--set", setting)]
    return helm_template(helm, chart, *options, release="holdfast-operator", minor=minor)


def the(kind: str, manifests: Sequence[dict[str, Any]], name: str = "holdfast-operator") -> dict[str, Any]:
    (found,) = (one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


@pytest.fixture(scope="module")
def manifests(helm: Path, repository: Path) -> list[dict[str, Any]]:
    return rendered(helm, repository)


@pytest.mark.parametrize("minor", MINORS)
def test_every_kubernetes_takes_it(minor: str, manifests: list[dict[str, Any]]) -> None:
    assert {one["kind"]: complaints(one, minor) for one in manifests if complaints(one, minor)} == {}


def test_an_image_has_to_be_named(helm: Path, repository: Path) -> None:
    chart = repository / "containers/operator/chart"
    done = subprocess.run([helm, "template", "x", chart], capture_output=True, text=True, check=False, timeout=60)
    assert "image is needed" in done.stderr


def test_the_kind_has_the_names_that_the_code_uses_and_outlives_the_release(manifests: list[dict[str, Any]]) -> None:
    name = f"{JOB_PLURAL}.{JOB_GROUP}"
    definition = the("CustomResourceDefinition", manifests, name)
    spec = definition["spec"]
    assert (spec["group"], spec["names"]["kind"]) == (JOB_GROUP, JOB_KIND)
    (version,) = spec["versions"]
    assert version["name"] == JOB_VERSION
    assert version["subresources"].keys() == {"status", "scale"}
    assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_the_rights_on_the_security_page_are_the_charts(helm: Path, repository: Path) -> None:
    page = (repository / "docs/concepts/security.md").read_text()
    rows = re.findall(
        r"^\| `([a-z/ ]+)` \| ([a-z ]+) \| (?:all namespaces|cluster|its namespace)[^|]* \|", page, re.MULTILINE
    )
    everything = rendered(helm, repository, "kueue.enabled=true", "hyperPodPyTorchJobs.enabled=true")
    roles = [one for one in everything if one["kind"] in ("ClusterRole", "Role") and not is_for_users(one)]
    assert sorted(rows) == sorted(right for role in roles for right in rights(role))


def is_for_users(role: dict[str, Any]) -> bool:
    return any(label.startswith("rbac.authorization.k8s.io/aggregate") for label in role["metadata"]["labels"])


def test_the_operator_reads_no_secret_but_its_key_and_changes_no_node(manifests: list[dict[str, Any]]) -> None:
    assert rights(the("ClusterRole", manifests)) == {
        ("holdfastjobs", "get list watch delete"),
        ("holdfastjobs/status", "patch"),
        ("holdfastjobs/finalizers", "update"),
        ("pods", "get list watch create delete"),
        ("pods/log", "get"),
        ("secrets services", "create"),
        ("nodes", "get list watch"),
    }
    role = the("Role", manifests)
    assert rights(role) == {("secrets", "get"), ("leases", "create"), ("leases", "get patch")}
    assert [one.get("resourceNames") for one in role["rules"]] == [
        ["holdfast-operator-key"], None, ["holdfast-operator"],
    ]  # fmt: skip


def test_pods_may_be_changed_only_where_kueue_keeps_them(helm: Path, repository: Path) -> None:
    role = the("ClusterRole", rendered(helm, repository, "kueue.enabled=true"))
    assert [verbs for resources, verbs in sorted(rights(role)) if resources == "pods"] == [
        "get list watch create delete", "patch",
    ]  # fmt: skip


def rights(role: dict[str, Any]) -> set[tuple[str, str]]:
    return {(" ".join(rule["resources"]), " ".join(rule["verbs"])) for rule in role["rules"]}


def test_aws_s_kind_and_its_rights_come_only_where_they_are_asked_for(
    helm: Path, repository: Path, manifests: list[dict[str, Any]]
) -> None:
    found = rendered(helm, repository, "hyperPodPyTorchJobs.enabled=true")
    more = [one for one in found if one["metadata"]["name"] not in {each["metadata"]["name"] for each in manifests}]
    definition = the("CustomResourceDefinition", found, DEFINITION)
    (webhook,) = the("ValidatingWebhookConfiguration", found)["webhooks"]

    assert "hyperpodpytorchjobs" not in str(manifests)
    assert (definition["spec"]["names"]["kind"], definition["metadata"]["labels"]) == (
        KIND, {"app.kubernetes.io/name": "holdfast-operator"},
    )  # fmt: skip
    assert rights(the("ClusterRole", more, "holdfast-operator-hyperpod")) == {
        ("hyperpodpytorchjobs", "get list watch delete"),
        ("hyperpodpytorchjobs/status", "patch"),
        ("hyperpodpytorchjobs/finalizers", "update"),
        ("holdfastjobs", "create patch"),
        ("customresourcedefinitions", "get"),
    }
    assert [rule["resources"] for rule in webhook["rules"]] == [["holdfastjobs"], ["hyperpodpytorchjobs"]]
    (container,) = the("Deployment", found)["spec"]["template"]["spec"]["containers"]
    assert "--hyperpod-pytorch-jobs" in container["args"]
    assert [line for one in more for line in complaints(one, MINORS[-1])] == []


def test_its_pods_have_no_privilege_and_stand_on_two_nodes(manifests: list[dict[str, Any]]) -> None:
    spec = the("Deployment", manifests)["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (spec["replicas"], pod["affinity"].keys()) == (2, {"podAntiAffinity"})
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any("hostPath" in volume for volume in pod["volumes"])


def test_the_webhooks_certificate_is_of_its_service_and_of_the_authority_that_the_api_server_gets(
    manifests: list[dict[str, Any]],
) -> None:
    (webhook,) = the("ValidatingWebhookConfiguration", manifests)["webhooks"]
    secret = the("Secret", manifests, "holdfast-operator-certificate")
    authority = x509.load_pem_x509_certificate(base64.b64decode(webhook["clientConfig"]["caBundle"]))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["holdfast-operator.holdfast-system.svc"]
    assert webhook["clientConfig"]["service"]["name"] == the("Service", manifests)["metadata"]["name"]
    assert webhook["failurePolicy"] == "Ignore"


def test_without_admission_there_is_neither_webhook_nor_certificate(helm: Path, repository: Path) -> None:
    found = {one["kind"] for one in rendered(helm, repository, "admission.enabled=false")}
    assert not found & {"ValidatingWebhookConfiguration", "Secret", "Service"}


def test_the_image_is_built_from_what_is_named_and_pinned(repository: Path) -> None:
    folder = repository / "containers/operator"
    text = (folder / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE_IMAGE=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    sources = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    sent = re.findall(r"^!(\S+)$", (folder / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert sorted(sources) == sorted(sent)
    assert all((repository / "containers" / source).exists() for source in sources)
