"""
A first creation fails at a resource of each type, after the service has made it; the second one works.

CloudFormation takes back what it made, and ``RetainExceptOnCreate`` keeps nothing of it (template reference,
"DeletionPolicy attribute"); so nothing is left that the second creation could meet.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import NAMES, ROOT, Cloud, document, synthesise
from inventory import inventory
from orders import forget_logs, reached

from holdfast.localcloud.aws import serve
from holdfast.localcloud.aws.cloudformation.template import dependencies
from holdfast.localcloud.aws.common import Mishaps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SNAPSHOTS = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
NOTHING_TO_FAIL = frozenset({"AWS::CDK::Metadata"})


def environments(orchestrator: str) -> list[str]:
    """Those that make their own network and cluster, the largest last."""
    found = []
    for name in NAMES:
        document = yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())
        if not name.startswith("existing") and ("eks" in document) == (orchestrator == "eks"):
            found.append(name)
    return sorted(found, key=lambda name: (ROOT / "environments" / f"{name}.yaml").stat().st_size)


def cases() -> Iterator[Any]:
    for orchestrator in ("slurm", "eks"):
        seen: dict[str, str] = {}
        for name in environments(orchestrator):
            path = SNAPSHOTS / f"test_the_template_is_what_was_reviewed[{name}].json"
            for definition in json.loads(path.read_text())["Resources"].values():
                seen.setdefault(definition["Type"], name)
        for kind, name in sorted(seen.items()):
            if kind not in NOTHING_TO_FAIL:
                yield pytest.param(name, kind, id=f"{orchestrator}-{kind}")


class Rehearsal:
    """One embedded AWS, with each environment's template as it is shipped."""

    def __init__(self, reach: dict[str, str], mishaps: Mishaps, folder: Path) -> None:
        self.mishaps, self._base, self._folder = mishaps, Cloud(reach), folder
        self._made: dict[str, tuple[Cloud, str, dict[str, Any]]] = {}

    def close(self) -> None:
        self._base.close()

    def environment(self, name: str) -> tuple[Cloud, str, dict[str, Any]]:
        if name not in self._made:
            shipped = yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())
            cloud, policy = self._base.at(shipped["region"]), shipped["storage"].get("on_delete", "Retain")
            (self._folder / name).mkdir()
            found = document(name, cloud, stack=f"first-{name}", on_delete=policy)
            self._made[name] = (cloud, *synthesise(found, cloud, self._folder / name))
        return self._made[name]


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    mishaps, folder = Mishaps(), tmp_path_factory.mktemp("first")
    with serve(home=folder / "cloud", hyperpod="simulated", skip_waits=True, mishaps=mishaps) as aws:
        made = Rehearsal(aws.client_arguments, mishaps, folder)
        yield made
        made.close()


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_a_creation_that_failed_is_begun_again_without_anything_in_its_way(
    name: str, kind: str, rehearsal: Rehearsal
) -> None:
    cloud, stack, template = rehearsal.environment(name)
    needs = dependencies(template)
    of_kind = [key for key, definition in template["Resources"].items() if definition["Type"] == kind]
    last = max(of_kind, key=lambda key: len(reached(needs, [key])))
    before = inventory(cloud)

    rehearsal.mishaps.failing = {last: "did not stabilize"}
    first = cloud.create(stack, template)["StackStatus"]
    why = cloud.why(stack)
    gone = cloud.delete(stack)["StackStatus"]
    left = inventory(cloud) - before
    second = cloud.create(stack, ephemeral(template))["StackStatus"]
    after = cloud.why(stack)
    clear(cloud, stack, before)

    assert (first, gone) == ("ROLLBACK_COMPLETE", "DELETE_COMPLETE"), why
    assert any(f"{last}: did not stabilize" in line for line in why)
    assert sorted(left) == []
    assert second == "CREATE_COMPLETE", after
    assert inventory(cloud) == before


def ephemeral(template: dict[str, Any]) -> dict[str, Any]:
    """The template without what outlives its stack: the next case needs the names."""
    policies = ("DeletionPolicy", "UpdateReplacePolicy")
    resources = {
        name: {key: value for key, value in definition.items() if key not in policies}
        for name, definition in template["Resources"].items()
    }
    return {**template, "Resources": resources}


def clear(cloud: Cloud, stack: str, before: set[str]) -> None:
    """Delete the second stack, with what is in its buckets and what services made on their own."""
    s3 = cloud.of("s3")
    for bucket in (one["Name"] for one in s3.list_buckets()["Buckets"]):
        if f"s3 buckets {bucket}" not in before:
            for version in s3.list_object_versions(Bucket=bucket).get("Versions", ()):
                s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
    gone = cloud.delete(stack)
    assert gone["StackStatus"] == "DELETE_COMPLETE", cloud.why(gone["StackId"])
    forget_logs(cloud)
