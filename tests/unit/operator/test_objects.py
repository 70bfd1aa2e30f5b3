"""Pods, Service and Secret of a job, and the facts that are read from pods and nodes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_schemas import MINORS, complaints
from operated_jobs import POD_SPEC, job, manifest

from holdfast_operator.decisions import NodeFacts
from holdfast_operator.jobs import mistakes, read_job
from holdfast_operator.objects import node_facts, owner_uid, pod_facts, pod_of, secret_of, service_of
from holdfast_runtime.launcher.settings import parse_options

HEALTH = "sagemaker.amazonaws.com/node-health-status"


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"] if "value" in one}


@pytest.mark.parametrize("minor", MINORS)
def test_every_kubernetes_takes_what_belongs_to_a_job(minor: str, repository: Path) -> None:
    of = read_job(
        {**(example := shipped(repository)), "metadata": {**example["metadata"], "namespace": "d", "uid": "u"}}
    )
    made = [pod_of(of, 4, excluded=["n7"]), service_of(of), secret_of(of, key=b"k")]
    assert [complaints(one, minor) for one in made] == [[], [], []]


def shipped(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((repository / "examples/bytelm/bytelm-operator.yaml").read_text())
    return found


def test_the_example_is_valid(repository: Path) -> None:
    assert mistakes(shipped(repository)) == []


def test_the_launcher_reads_size_place_and_name_from_the_pods_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the host name that Kubernetes gives a pod with a host name and a subdomain."""
    pod = pod_of(job(nodes={"min": 3, "max": 5, "step": 2, "spares": 1}, processesPerNode=8), 4)
    host = f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}.team.svc.cluster.local"
    monkeypatch.setattr("socket.getfqdn", lambda name="": host)
    options = parse_options(["train.py"], {**variables(pod), "HOLDFAST_TOKEN": "t", "HOSTNAME": "night-4"})
    assert (options.nodes, options.spare_nodes, options.processes, options.sizes) == (6, 1, 8, (3, 5))
    assert (options.node_rank, options.run_id, options.on_sigterm) == (4, "night", "leave")
    assert options.peers.known[0][0] == "night-0.night.team.svc.cluster.local"


@pytest.mark.parametrize("given", [{}, {"dnsPolicy": "ClusterFirst"}])
def test_launchers_in_the_nodes_network_find_each_other_by_the_names_of_their_pods(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, host name and name servers are the node's (Kubernetes, "Pod's DNS Policy")."""
    monkeypatch.setattr("socket.getfqdn", lambda name="": "ip-10-1-0-7.ec2.internal")
    pod = pod_of(job(template={"spec": {**POD_SPEC, "hostNetwork": True, **given}}), 1)
    peers = parse_options(["train.py"], {**variables(pod), "HOLDFAST_TOKEN": "t"}).peers
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert (peers.node_rank, peers.known[0][0]) == (1, "night-0.night.team.svc")
    other = pod_of(job(template={"spec": {**POD_SPEC, "hostNetwork": True, "dnsPolicy": "None"}}), 1)
    assert other["spec"]["dnsPolicy"] == "None"


def test_scripts_get_the_size_by_the_variables_of_aws_s_operator() -> None:
    """NNODES and NPROC_PER_NODE: developer guide, "Using the training operator", sample docker configuration."""
    of = job(nodes={"size": 3, "spares": 1}, processesPerNode=8)
    assert {name: variables(pod_of(of, 0)).get(name) for name in ("NNODES", "NPROC_PER_NODE")} == {
        "NNODES": "3",
        "NPROC_PER_NODE": "8",
    }


def test_the_users_fields_stay_and_ours_are_added() -> None:
    spec = {
        "containers": [
            {"name": "main", "image": "i", "args": ["t"], "env": [{"name": "HOLDFAST_SUBMISSION", "value": "mine"}]},
            {"name": "sidecar", "image": "s"},
        ],
        "initContainers": [{"name": "first", "image": "f"}],
        "imagePullSecrets": [{"name": "pull"}],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "affinity": {
            "podAntiAffinity": {"x": 1},
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    ]
                }
            },
        },
    }
    template = {"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}, "spec": spec}
    of = job(template=template)
    pod = pod_of(of, 2, excluded=["n7"])
    assert pod["metadata"]["labels"] == {"team": "x", "holdfast.dev/job": "night", "holdfast.dev/index": "2"}
    assert pod["metadata"]["annotations"]["note"] == "y"
    for name in ("initContainers", "imagePullSecrets", "tolerations", "terminationGracePeriodSeconds"):
        assert pod["spec"][name] == spec[name]
    assert pod["spec"]["containers"][1] == spec["containers"][1]
    assert variables(pod)["HOLDFAST_SUBMISSION"] == "mine"
    affinity = pod["spec"]["affinity"]
    assert affinity["podAntiAffinity"] == {"x": 1}
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [[one["key"] for one in term["matchExpressions"]] for term in required] == [["a", HEALTH], [HEALTH]]
    assert [[(one["operator"], one["values"]) for one in term["matchFields"]] for term in required] == [
        [("NotIn", ["n7"])],
        [("In", ["n"]), ("NotIn", ["n7"])],
    ]
    assert of.template == template, "the job's own template is not changed"


def test_kubectl_drain_and_the_garbage_collector_find_the_job_behind_a_pod() -> None:
    pod = pod_of(job(), 0)
    assert owner_uid({**pod, "metadata": {**pod["metadata"], "uid": "p"}}) == job().uid


def test_a_secret_that_was_deleted_comes_back_with_the_token_that_launchers_have() -> None:
    first = secret_of(job(), key=b"k")["stringData"]["token"]
    assert first == secret_of(job(processesPerNode=2), key=b"k")["stringData"]["token"]
    other = read_job({**manifest(), "metadata": {**manifest()["metadata"], "uid": "another"}})
    assert first != secret_of(other, key=b"k")["stringData"]["token"]
    assert first != secret_of(job(), key=b"x")["stringData"]["token"]


@pytest.mark.parametrize(
    ("labels", "ready", "facts"),
    [
        ({}, "True", NodeFacts()),
        ({HEALTH: "Schedulable"}, "Unknown", NodeFacts(is_ready=False)),
        ({HEALTH: "UnschedulablePendingReboot"}, "True", NodeFacts(health="UnschedulablePendingReboot")),
    ],
)
def test_a_node_is_what_its_label_and_condition_are(labels: dict[str, str], ready: str, facts: NodeFacts) -> None:
    conditions = [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    assert node_facts({"metadata": {"labels": labels}, "status": {"conditions": conditions}}) == facts


def observed(**status: Any) -> Any:
    pod = pod_of(job(), 1)
    return pod_facts({**pod, "metadata": {**pod["metadata"], "uid": "p"}, "status": status})


def test_a_pod_that_waits_has_the_schedulers_or_the_kubelets_reason() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}
    assert observed(phase="Pending", conditions=[condition]).waiting == "Unschedulable: 0/4 nodes"
    pull = {"name": "train", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    assert observed(phase="Pending", containerStatuses=[pull]).waiting == "ImagePullBackOff: no such image"
    begins = {"name": "train", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert observed(phase="Pending", containerStatuses=[begins]).waiting == ""


def test_a_pod_that_failed_has_exit_code_reason_and_last_lines_of_its_launcher() -> None:
    end = {"exitCode": 137, "reason": "OOMKilled", "message": "last", "finishedAt": "1970-01-01T00:16:40Z"}
    states = [{"name": "sidecar", "state": {"running": {}}}, {"name": "train", "state": {"terminated": end}}]
    found = observed(phase="Failed", containerStatuses=states)
    assert (found.exit_code, found.reason, found.message, found.ended_s) == (137, "OOMKilled", "last", 1000.0)
    init = [{"name": "first", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]
    assert observed(phase="Failed", initContainerStatuses=init).exit_code == 3
    assert observed(phase="Failed", reason="Evicted").reason == "Evicted"


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (137, "Failed")])
def test_a_launcher_that_has_ended_beside_a_sidecar_that_runs_has_ended(code: int, phase: str) -> None:
    end = {"exitCode": code, "finishedAt": "1970-01-01T00:16:40Z"}
    states = [{"name": "train", "state": {"terminated": end}}, {"name": "sidecar", "state": {"running": {}}}]
    found = observed(phase="Running", containerStatuses=states)
    assert (found.phase, found.lingers, found.runs) == (phase, True, False)


def test_a_launcher_whose_shell_ends_with_the_code_of_tee_has_failed_by_its_own_last_words() -> None:
    end = {"exitCode": 0, "message": "the job ends: rank 0 of node 1 raised ValueError: nan in step 7\n"}
    found = observed(phase="Succeeded", containerStatuses=[{"name": "train", "state": {"terminated": end}}])
    assert (found.phase, found.exit_code) == ("Failed", 1)
    end = {"exitCode": 0, "message": 'holdfast_step{node="0"} 7\n'}
    found = observed(phase="Succeeded", containerStatuses=[{"name": "train", "state": {"terminated": end}}])
    assert (found.phase, found.exit_code) == ("Succeeded", 0)


QUEUE = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "high"}


def test_a_queue_admits_the_least_size_and_its_spares_together_and_further_pods_one_by_one() -> None:
    """Against Kueue's pages; Kueue itself is not run."""
    made = manifest(nodes={"min": 3, "max": 5, "spares": 1})
    of = read_job({**made, "metadata": {**made["metadata"], "labels": QUEUE}})
    first, last, more = (pod_of(of, index, excluded=["n7"])["metadata"] for index in (0, 3, 4))
    group = "kueue.x-k8s.io/pod-group-name"
    for metadata in (first, last):
        assert QUEUE.items() <= metadata["labels"].items()
        assert metadata["labels"][group] == "night"
        assert metadata["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "4"
        assert metadata["annotations"]["kueue.x-k8s.io/role-hash"] == "launcher"
    assert QUEUE.items() <= more["labels"].items()
    assert group not in more["labels"]
    assert not [name for name in more["annotations"] if name.startswith("kueue")]
    plain = pod_of(read_job(made), 0)["metadata"]
    assert not [name for name in (*plain["labels"], *plain["annotations"]) if name.startswith("kueue")]
