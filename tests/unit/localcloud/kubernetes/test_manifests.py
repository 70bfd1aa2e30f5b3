"""Manifests against the schemas of Kubernetes 1.31 to 1.36, and the page that says what the local one lacks."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_schemas import MINORS, complaints, defined, has_field, kinds
from kubernetes_things import deployment, pod

from kubernetes_tables import behaviours, gone, newer

OF_OPERATORS = {("jobset.x-k8s.io/v1alpha2", "JobSet"), ("holdfast.dev/v1alpha1", "HoldfastJob")} | {
    ("trainer.kubeflow.org/v1alpha1", kind) for kind in ("ClusterTrainingRuntime", "TrainJob")
}
"""Kinds whose definitions come with an operator."""


def shipped(repository: Path) -> dict[str, list[dict[str, Any]]]:
    """Every file of this repository that holds manifests, and what they are. Charts' templates are no YAML yet."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.yaml", "*.yml"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found = {}
    for name in listed:
        text = (repository / name).read_text(encoding="utf-8") if (repository / name).is_file() else ""
        if (
            "/templates/" in name
            or name.startswith("tests/cases/ordinary_jobs/")
            or not re.search(r"^apiVersion: (?!v2$)", text, re.MULTILINE)
        ):
            continue
        documents = [one for one in yaml.safe_load_all(text) if isinstance(one, dict) and "kind" in one]
        # kubectl takes a List apart before it asks a server
        found[name] = [each for one in documents for each in (one["items"] if one["kind"] == "List" else [one])]
    return found


def test_manifests_are_taken_by_every_version(repository: Path) -> None:
    files = shipped(repository)
    own = defined([one for manifests in files.values() for one in manifests]) | OF_OPERATORS
    wrong = [
        f"{name} on {minor}: {complaint}"
        for name, manifests in files.items()
        for manifest in manifests
        for minor in MINORS
        for complaint in complaints(manifest, minor, own=own)
    ]

    assert "tests/cases/clients/hyperpodpytorchjobs.yaml" in files
    assert wrong == []


@pytest.mark.parametrize("minor", MINORS)
def test_a_wrong_manifest_is_found(minor: str) -> None:
    good = deployment("web", image="x", replicas=1)
    misspelt = {**good, "spec": {**good["spec"], "replica": 1}}
    mistyped = {**good, "spec": {**good["spec"], "replicas": "1"}}
    lacking = {**good, "spec": {key: value for key, value in good["spec"].items() if key != "selector"}}

    assert complaints(good, minor) == []
    assert complaints(pod("web", image="x"), minor) == []
    assert complaints(misspelt, minor) == ["spec: Additional properties are not allowed ('replica' was unexpected)"]
    assert "is not of type" in complaints(mistyped, minor)[0]
    assert complaints(lacking, minor) == ["spec: 'selector' is a required property"]
    assert complaints({**good, "apiVersion": "apps/v1beta1"}, minor) == ["no kind apps/v1beta1 Deployment"]


def test_what_is_said_to_be_newer_is_in_the_versions_that_have_it() -> None:
    """Alpha kinds come and go; everything that was beta by 1.31 has to be in all of them."""
    missing = [
        f"{one['gate']} on {minor}"
        for one in newer()
        for minor in MINORS
        if one["kind"] and one["beta"] and not has_field(minor, one["kind"], one["field"])
    ]

    assert missing == []
    assert has_field("1.35", "scheduling.k8s.io/v1alpha1 Workload", "spec")
    assert not has_field("1.34", "scheduling.k8s.io/v1alpha1 Workload", "spec")


def test_what_is_said_to_be_gone_is_in_none_of_them() -> None:
    named = {one["api"] for one in gone()}
    allowed = {
        # what came to these versions later has nothing of the old kinds
        ("admissionregistration.k8s.io/v1beta1", kind)
        for kind in (
            *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
            *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
        )
    } | {("networking.k8s.io/v1beta1", kind) for kind in ("IPAddress", "ServiceCIDR")}
    general = {"DeleteOptions", "WatchEvent"}
    there = {
        (api, kind.removesuffix("List"))
        for minor in MINORS
        for api, kind in kinds(minor)
        if api in named and kind not in general
    }

    assert there - allowed == set()


def test_every_behaviour_that_is_relied_on_has_its_test(repository: Path) -> None:
    folder = repository / "tests" / "e2e" / "kubernetes"
    there = {
        (file.stem.removeprefix("test_conformance_"), name)
        for file in folder.glob("test_conformance_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert {(one["area"], one["test"]) for one in behaviours()} == there
    assert len(behaviours()) == len({one["test"] for one in behaviours()})
