"""The chart of the health agent, rendered by helm: valid for every Kubernetes, and no more than the agent needs."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from installed_charts import helm_program, helm_template
from kubernetes_schemas import MINORS, complaints

from holdfast_agent.configuration import load

AGENT, DECIDER = "holdfast-health-agent", "holdfast-health-agent-decider"
IMAGE = "registry/health-agent@sha256:" + "0" * 64


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return helm_program(tmp_path_factory.mktemp("helm"))


def rendered(helm: Path, repository: Path, *settings: str, minor: str = "1.34") -> list[dict[str, Any]]:
    chart = repository / "containers/health-agent/chart"
    given = [f"image={IMAGE}", "clusterName=demo", *settings]
    options = [word for setting in given for word in ("--set-json" if "={" in setting else "--set", setting)]
    return helm_template(helm, chart, *options, release="holdfast-health-agent", minor=minor)


def the(kind: str, manifests: Sequence[dict[str, Any]], name: str = AGENT) -> dict[str, Any]:
    (found,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


@pytest.fixture(scope="module")
def manifests(helm: Path, repository: Path) -> list[dict[str, Any]]:
    return rendered(helm, repository)


@pytest.mark.parametrize("minor", MINORS)
def test_every_kubernetes_takes_it(minor: str, helm: Path, repository: Path) -> None:
    found = rendered(helm, repository, "mode=act", "kernelLog.privileged=false", minor=minor)
    assert {one["kind"]: complaints(one, minor) for one in found if complaints(one, minor)} == {}


def test_an_image_has_to_be_named(helm: Path, repository: Path) -> None:
    chart = repository / "containers/health-agent/chart"
    done = subprocess.run([helm, "template", "x", chart], capture_output=True, text=True, check=False, timeout=60)
    assert "image is needed" in done.stderr


def rights(role: dict[str, Any]) -> set[tuple[str, str]]:
    return {(" ".join(rule["resources"]), " ".join(rule["verbs"])) for rule in role["rules"]}


def test_an_agent_writes_its_node_and_the_decider_alone_acts(
    manifests: list[dict[str, Any]], helm: Path, repository: Path
) -> None:
    acting = rendered(helm, repository, "mode=act")
    assert rights(the("ClusterRole", acting)) == {("nodes", "get patch")}
    assert rights(the("ClusterRole", acting, DECIDER)) == {
        ("nodes", "get list patch"),
        ("nodes/status", "patch"),
        ("pods", "list"),
        ("events", "create list"),
    }
    assert rights(the("Role", acting, DECIDER)) == {("leases", "create"), ("leases", "get patch")}
    for name in (AGENT, DECIDER):
        (subject,) = the("ClusterRoleBinding", acting, name)["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": name, "namespace": "holdfast-system"}
    assert not [one for one in manifests if one["metadata"]["name"] == DECIDER], "observing alone decides nothing"


def test_the_decider_has_no_privilege_and_a_second_pod(helm: Path, repository: Path) -> None:
    deployment = the("Deployment", rendered(helm, repository, "mode=act"), DECIDER)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert "hostPID" not in pod
    assert [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume] == ["/var/log/holdfast"]


@pytest.mark.parametrize(("status", "alive"), [(0, True), (1, True), (2, False)])
def test_an_agent_is_alive_during_an_incident_and_dead_when_it_does_not_answer(
    status: int, alive: bool, manifests: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "python3").write_text(f"#!/bin/sh\necho told $*; exit {status}\n")
    (tmp_path / "python3").chmod(0o755)
    (container,) = the("DaemonSet", manifests)["spec"]["template"]["spec"]["containers"]
    command = container["livenessProbe"]["exec"]["command"]
    done = subprocess.run(command, env={"PATH": f"{tmp_path}:/bin"}, check=False, timeout=60)
    assert (done.returncode == 0) is alive


def test_a_token_changes_the_node_of_its_own_pod_alone(
    manifests: list[dict[str, Any]], helm: Path, repository: Path
) -> None:
    policy = the("ValidatingAdmissionPolicy", manifests)["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConstraints"]["resourceRules"][0]["resources"] == ["nodes", "nodes/status"]
    assert "system:serviceaccount:holdfast-system:holdfast-health-agent" in policy["matchConditions"][0]["expression"]
    assert "name == object.metadata.name" in policy["validations"][0]["expression"]
    assert 'key == "health.holdfast/verdict"' in policy["validations"][1]["expression"]
    assert the("ValidatingAdmissionPolicyBinding", manifests)["spec"]["validationActions"] == ["Deny"]
    without = rendered(helm, repository, "ownNodeOnly=false")
    assert not [one for one in without if "Policy" in one["kind"]]


def test_a_kubernetes_without_the_policy_is_refused_unless_it_is_said_to_do_without(
    helm: Path, repository: Path
) -> None:
    chart = repository / "containers/health-agent/chart"
    command = [helm, "template", "x", chart, "--kube-version", "1.30.0", "--set", f"image={IMAGE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "has no policy for it; allowed: 1.31 or later, or ownNodeOnly=false" in done.stderr
    without = rendered(helm, repository, "ownNodeOnly=false", minor="1.20")
    assert the("DaemonSet", without)


def test_the_agent_takes_the_settings_that_the_chart_writes(helm: Path, repository: Path, tmp_path: Path) -> None:
    found = rendered(helm, repository, "mode=act", "breakerShare=0.25", 'settings={"burn_in.seconds": 60}')
    path = tmp_path / "agent.json"
    path.write_text(the("ConfigMap", found)["data"]["agent.json"])
    agent = load(file=path, assignments=["node.host=hyperpod-i-1"])
    assert (agent.remedies_mode, agent.remedies_way, agent.remedies_breaker_share) == ("act", "label", 0.25)
    assert (agent.cluster_name, agent.cluster_orchestrator, agent.burn_in_seconds) == ("demo", "eks", 60)
    assert json.loads(path.read_text())["mounts.paths"] == ""


def test_other_settings_are_another_pod(helm: Path, repository: Path) -> None:
    def mark(*settings: str) -> str:
        found = the("DaemonSet", rendered(helm, repository, *settings))
        return str(found["spec"]["template"]["metadata"]["annotations"]["holdfast/settings"])

    assert mark("mode=act") != mark("mode=observe")


def test_one_pod_runs_on_each_node_of_hyperpod_however_ill_it_is(manifests: list[dict[str, Any]]) -> None:
    spec = the("DaemonSet", manifests)["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (expression,) = term["matchExpressions"]
    assert expression == {"key": "sagemaker.amazonaws.com/compute-type", "operator": "In", "values": ["hyperpod"]}
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_an_agent_without_privilege_keeps_one_capability(helm: Path, repository: Path) -> None:
    spec = the("DaemonSet", rendered(helm, repository, "kernelLog.privileged=false"))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "readOnlyRootFilesystem": True,
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["SYSLOG"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    read_only = {mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")}
    assert read_only == {"/etc/holdfast", "/dev/kmsg", "/sys"}
    assert "hostNetwork" not in spec


def test_launchers_in_pods_reach_the_agent_and_are_seen_by_it(
    manifests: list[dict[str, Any]], repository: Path
) -> None:
    """By the folder of the socket, which a pod cannot change, and by processes, which the kernel names to the agent."""
    agent = the("DaemonSet", manifests)["spec"]["template"]["spec"]
    assert agent["hostPID"] is True
    files = ("examples/bytelm/bytelm-resilient.yaml", "examples/recipes/recipe.yaml")
    examples = [one for file in files for one in yaml.safe_load_all((repository / file).read_text())]
    jobs = [one for listed in examples for one in listed.get("items", [listed]) if one["kind"] == "Job"]
    assert len(jobs) == 6
    folder = "/run/holdfast"
    for spec in (agent, *(job["spec"]["template"]["spec"] for job in jobs)):
        (volume,) = (one for one in spec["volumes"] if one.get("hostPath", {}).get("path") == folder)
        assert volume["hostPath"]["type"] == "DirectoryOrCreate"
        (mount,) = (one for one in spec["containers"][0]["volumeMounts"] if one["name"] == volume["name"])
        assert (mount["mountPath"], mount.get("readOnly", False)) == (folder, spec is not agent)


def test_the_image_is_built_from_what_is_named_and_pinned(repository: Path) -> None:
    folder = repository / "containers/health-agent"
    text = (folder / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE_IMAGE=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    sources = re.findall(r"^COPY (\S+) ", text, re.MULTILINE)
    sent = re.findall(r"^!(\S+)$", (folder / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert sorted(sources) == sorted(sent)
    assert all((repository / "containers" / source).exists() for source in sources)
    packages = re.findall(r"^(\S+)==\S+ \\$", (folder / "requirements.txt").read_text(), re.MULTILINE)
    assert packages == ["nvidia-ml-py", "py-spy"]
    assert "--require-hashes" in text
