"""Manifests of a job: what is read of them, what is refused, and what is made beside them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from distributions import ROOT
from holdfast.cli.kubernetes import (
    JobName,
    ManifestError,
    beside,
    files_of,
    job_of,
    parse_job_name,
    parse_manifests,
    pod_specs,
    resources_of,
    secret_of,
)
from holdfast.cli.submission import check_fits, check_job_file
from holdfast.cli.terminal import CommandError

EXAMPLE = ROOT / "examples" / "bytelm" / "bytelm-resilient.yaml"


def job(**changes: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "x"}], **changes}
    template = {"spec": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"template": template}}


def read(*objects: Any) -> list[dict[str, Any]]:
    return parse_manifests(yaml.safe_dump_all(objects))


def test_the_example_has_a_pod_for_each_of_five_launchers_under_names_of_their_own() -> None:
    objects = parse_manifests(EXAMPLE.read_text())

    jobs = [one for one in objects if one["kind"] == "Job"]
    names = [f"bytelm-resilient-{index}" for index in range(5)]
    assert [one["metadata"]["name"] for one in jobs] == names
    specs = [spec for one in jobs for spec in pod_specs(one)]
    assert [spec["hostname"] for spec in specs] == names
    assert {spec["subdomain"] for spec in specs} == {"bytelm-resilient"}
    assert job_of(objects) == JobName(name="bytelm-resilient")
    assert beside(objects, JobName(name="bytelm-resilient")) == {"ConfigMap", "Secret"}


def test_an_object_with_a_generated_name_has_one_as_kubectl_create_gives_it() -> None:
    thing = job()
    thing["metadata"] = {"generateName": "sample-job-"}
    names = {read(thing)[0]["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"sample-job-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_the_example_trains_as_its_twin_under_slurm_does() -> None:
    slurm = EXAMPLE.with_suffix(".sbatch").read_text()
    (spec,) = list(pod_specs(parse_manifests(EXAMPLE.read_text())[1]))
    words = " ".join(spec["containers"][0]["args"]).split()

    for flag in ("--nnodes", "--spare-nodes", "--nproc-per-node", "--deadlines"):
        given = words[words.index(flag) + 1]
        assert f"{flag} {given}" in slurm


def test_lists_are_objects_one_by_one() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [job(), job()]}

    assert [one["kind"] for one in read(listed, job())] == ["Job", "Job", "Job"]


def test_quantities_become_text_which_old_api_servers_take_alone() -> None:
    limits = {"nvidia.com/gpu": 8, "cpu": 1.5, "memory": "2Gi"}
    (one,) = read(job(containers=[{"name": "main", "resources": {"limits": limits}}]))

    (spec,) = list(pod_specs(one))
    assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8", "cpu": "1.5", "memory": "2Gi"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "got no objects"),
        ("a: [", "invalid YAML"),
        ("- 1", "allowed: objects with apiVersion"),
        ("kind: Job\nmetadata: {name: x}", "lacks apiVersion"),
        ("apiVersion: v1\nkind: Job", "lacks metadata.name"),
        ("apiVersion: v1\nkind: Job\nmetadata: [1]", "lacks metadata.name"),
        ("!!python/object/apply:os.system [id]", "invalid YAML"),
        ("[" * 3000, "nested too deeply"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        parse_manifests(text)


def test_a_file_without_pods_is_no_job() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}

    with pytest.raises(ManifestError, match=r"none of its objects has a pod template \(ConfigMap\)"):
        job_of(read(settings))


def test_the_job_of_an_operator_is_one_too() -> None:
    replicas = {"replicaSpecs": [{"template": {"spec": {"containers": [{"name": "main"}]}}}]}
    one = {**job(), "kind": "HyperPodPyTorchJob", "metadata": {"name": "big", "namespace": "team"}, "spec": replicas}

    assert str(job_of(read(one))) == "team/big"


def test_what_the_file_holds_itself_is_not_made_beside_it() -> None:
    named = job(containers=[{"name": "main", "envFrom": [{"secretRef": {"name": "train"}}]}])
    own = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "train"}}

    assert beside(read(named), JobName(name="train")) == {"Secret"}
    assert beside(read(named, own), JobName(name="train")) == frozenset()


def test_a_secret_of_another_name_is_the_users() -> None:
    named = job(containers=[{"name": "main", "envFrom": [{"secretRef": {"name": "other"}}]}])

    assert beside(read(named), JobName(name="train")) == frozenset()


def test_what_is_made_beside_a_job_is_in_its_namespace_under_its_name() -> None:
    where = JobName(name="train", namespace="team")

    made = [secret_of(where, token="t", submission="s"), files_of(where, {"train.py": "pass\n"})]

    assert [(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in made] == [
        ("Secret", "team", "train"),
        ("ConfigMap", "team", "train"),
    ]
    assert made[0]["stringData"] == {"HOLDFAST_TOKEN": "t", "HOLDFAST_SUBMISSION": "s"}


@pytest.mark.parametrize(("files", "said"), [({"a b": ""}, "called 'a b'"), ({"a": "x" * 1_100_000}, "1074 KiB")])
def test_what_a_config_map_cannot_hold_is_refused(files: dict[str, str], said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        files_of(JobName(name="train"), files)


@pytest.mark.parametrize("text", ["", "/", "a/", "Upper", "a b", "a/b/c", "-a", "a;rm"])
def test_a_name_that_no_object_can_have_is_refused(text: str) -> None:
    with pytest.raises(ManifestError, match="allowed: NAME or NAMESPACE/NAME"):
        parse_job_name(text)


def test_names_with_and_without_a_namespace_come_back_as_they_are_shown() -> None:
    assert [str(parse_job_name(text)) for text in ("a", "default/a", "team/a")] == ["a", "a", "team/a"]


def test_paths_follow_from_what_the_api_server_serves() -> None:
    served = [
        {"name": "jobs", "kind": "Job", "namespaced": True},
        {"name": "jobs/status", "kind": "Job", "namespaced": True},
        {"name": "nodes", "kind": "Node", "namespaced": False},
    ]
    found = resources_of("batch/v1", served)

    assert found["Job"].path(namespace="team", name="x") == "/apis/batch/v1/namespaces/team/jobs/x"
    assert resources_of("v1", served)["Node"].path(namespace="team", name="n") == "/api/v1/nodes/n"


def test_a_manifest_is_judged_before_anything_is_asked(tmp_path: Path) -> None:
    broken = tmp_path / "job.yaml"
    broken.write_text("kind: Job\n")

    with pytest.raises(CommandError, match=r"job\.yaml cannot be submitted: .* lacks apiVersion, metadata\.name"):
        check_job_file(broken)
    check_job_file(EXAMPLE)


def test_a_file_for_the_other_orchestrator_is_refused() -> None:
    with pytest.raises(CommandError, match="under Slurm, which takes job files of sbatch"):
        check_fits(EXAMPLE, orchestrator="slurm")
    with pytest.raises(CommandError, match="under Kubernetes, which takes manifests"):
        check_fits(EXAMPLE.with_suffix(".sbatch"), orchestrator="eks")
    check_fits(EXAMPLE, orchestrator="eks")
