"""What makes an instance a node of Kubernetes: names, labels, size, files, and what its Node says."""

import dataclasses
import ipaddress
import json

import pytest
import tomllib

from holdfast.catalog import instance_types
from holdfast.localcloud.kubernetes.nodes import (
    ASKED_BY_LABEL,
    HEALTH_LABEL,
    Member,
    Taint,
    extended_resources,
    health,
    instance_of,
    is_ready,
    kernel_files,
    kube_reserved,
    labels,
    last_complaint,
    make_numa_nodes,
    member_files,
    most_pods,
    node_name,
    pod_network,
)

MEMBER = Member(
    instance_id="i-0123456789abcdef0",
    address="10.1.0.17",
    cluster="train",
    cluster_id="abcdefghijkl",
    group="workers",
    instance_type="ml.p5.48xlarge",
    region="us-west-2",
    zone="us-west-2a",
    labels={"role": "training"},
    taints=(Taint(key="gpu", value="yes"),),
)


def made(member=MEMBER, **more):
    settings = {"host_ports": True, "may_lower_oom_score": True, **more}
    return member_files(
        member,
        dns_address="172.20.0.10",
        authority=b"ca",
        serving=(b"crt", b"key"),
        kubeconfig=b"{}",
        flags=["--container-runtime=remote"],
        **settings,
    )


def test_a_node_is_named_after_its_instance_and_back():
    assert node_name("i-0123456789abcdef0") == "hyperpod-i-0123456789abcdef0"
    assert instance_of("hyperpod-i-0123456789abcdef0") == "i-0123456789abcdef0"


@pytest.mark.parametrize("name", ["ip-10-1-0-5", "hyperpod-", "i-0123", ""])
def test_other_nodes_have_no_instance(name):
    assert instance_of(name) == ""


def test_labels_say_cluster_group_type_zone_and_health():
    said = labels(MEMBER)
    assert said["sagemaker.amazonaws.com/cluster-name"] == "train"
    assert said["sagemaker.amazonaws.com/instance-group-name"] == "workers"
    assert said["node.kubernetes.io/instance-type"] == "ml.p5.48xlarge"
    assert said["topology.kubernetes.io/zone"] == "us-west-2a"
    assert said[HEALTH_LABEL] == "Schedulable"
    assert said["role"] == "training"


def test_labels_of_a_group_do_not_change_what_hyperpod_says():
    own = dataclasses.replace(MEMBER, labels={HEALTH_LABEL: "Unschedulable"})
    assert labels(own)[HEALTH_LABEL] == "Schedulable"


def test_two_values_of_the_health_label_ask_for_something():
    assert ASKED_BY_LABEL == {"UnschedulablePendingReboot": "reboot", "UnschedulablePendingReplacement": "replace"}


def test_pod_networks_of_one_subnet_are_apart():
    networks = {pod_network(str(address)) for address in ipaddress.ip_network("10.1.0.0/19").hosts()}
    assert len(networks) == 2**13 - 2
    assert all(ipaddress.ip_network(one).subnet_of(ipaddress.ip_network("100.64.0.0/10")) for one in networks)


def test_a_p5_has_eight_gpus_and_thirty_two_interfaces():
    assert extended_resources("ml.p5.48xlarge") == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}


def test_a_type_without_accelerators_offers_none():
    assert extended_resources("ml.m5.4xlarge") == {}


def test_a_trainium_type_offers_neuron_devices():
    assert extended_resources("ml.trn1.32xlarge")["aws.amazon.com/neurondevice"] == 16


def test_every_type_of_the_catalog_has_a_size():
    for name in instance_types():
        assert 0 < most_pods(name) <= 110
        assert extended_resources(name).keys() <= {
            "nvidia.com/gpu",
            "vpc.amazonaws.com/efa",
            "aws.amazon.com/neurondevice",
        }


def test_a_g5_xlarge_takes_the_fourteen_pods_that_it_was_seen_to_take():
    assert most_pods("ml.g5.xlarge") == 14


def test_processors_are_kept_from_pods_as_amazons_image_keeps_them():
    # 60 + 10 + 5 + 5 + 188 x 2.5 millicores; 255 + 11 x 49 MiB.
    assert kube_reserved("ml.p5.48xlarge") == {"cpu": "550m", "memory": "794Mi"}


def test_the_node_reads_its_types_memory_and_the_rest_of_the_machines():
    told = kernel_files(MEMBER, meminfo="MemTotal:  100 kB\nMemFree:   7 kB\n")
    assert told["/proc/meminfo"].decode().split("\n")[0].split() == ["MemTotal:", str(2048 << 20), "kB"]
    assert b"MemFree:   7 kB" in told["/proc/meminfo"]


@pytest.mark.parametrize(("kind", "pages"), [("ml.p5.48xlarge", b"5128\n"), ("ml.m5.4xlarge", b"0\n")])
def test_types_with_efa_have_the_huge_pages_that_aws_s_manifests_request(kind, pages):
    told = kernel_files(dataclasses.replace(MEMBER, instance_type=kind), meminfo="")
    assert told["/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"] == pages


def test_the_kubelet_finds_set_what_it_would_set_for_the_whole_machine():
    told = kernel_files(MEMBER, meminfo="")
    assert told["/proc/sys/vm/overcommit_memory"] == b"1\n"
    assert told["/proc/sys/kernel/panic"] == b"10\n"


def test_numa_nodes_show_as_many_processors_as_the_type_has(tmp_path):
    place = make_numa_nodes(tmp_path, instance_type="ml.p5.48xlarge")
    assert len(list((place / "node0").glob("cpu*"))) == 192
    assert make_numa_nodes(tmp_path, instance_type="ml.p5.48xlarge") == place
    assert [path.name for path in tmp_path.iterdir()] == ["ml.p5.48xlarge"]


def test_the_kubelet_is_told_its_name_labels_and_taints():
    said = made()["/etc/eks/kubelet/environment"].content.decode()
    assert "--hostname-override=hyperpod-i-0123456789abcdef0" in said
    assert "--register-with-taints=gpu=yes:NoSchedule" in said
    assert "role=training" in said
    assert "--container-runtime=remote" in said


def test_nobody_asks_a_kubelet_anything_without_being_known():
    config = json.loads(made()["/etc/kubernetes/kubelet/config.json"].content)
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}


def test_keys_of_a_node_are_for_root_alone():
    private = {path for path, file in made().items() if file.mode == 0o600}
    assert private == {"/etc/kubernetes/pki/kubelet.key", "/etc/kubernetes/kubelet.kubeconfig"}


@pytest.mark.parametrize(("kind", "runtime"), [("ml.p5.48xlarge", "nvidia"), ("ml.m5.4xlarge", "runc")])
def test_containerd_has_nvidias_runtime_first_where_there_are_gpus(kind, runtime):
    member = dataclasses.replace(MEMBER, instance_type=kind)
    config = tomllib.loads(made(member)["/etc/containerd/config.toml"].content.decode())
    plugin = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert plugin["containerd"]["default_runtime_name"] == runtime
    assert plugin["containerd"]["runtimes"].keys() == {"runc", "nvidia"}
    assert plugin["restrict_oom_score_adj"] is False


def test_pods_of_a_node_get_addresses_of_its_own_network():
    network = json.loads(made()["/etc/cni/net.d/10-holdfast.conflist"].content)
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": pod_network(MEMBER.address)}]]
    assert [one["type"] for one in network["plugins"]] == ["bridge", "portmap"]


def test_without_the_plugin_there_are_no_host_ports():
    network = json.loads(made(host_ports=False)["/etc/cni/net.d/10-holdfast.conflist"].content)
    assert [one["type"] for one in network["plugins"]] == ["bridge"]


def node(*, ready="True", beat="2026-11-23T00:00:00Z", label="Schedulable"):
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": beat}
    return {"metadata": {"labels": {HEALTH_LABEL: label}}, "status": {"conditions": [condition]}}


def test_a_node_is_ready_when_it_says_so():
    assert is_ready(node())
    assert not is_ready(node(ready="False"))
    assert not is_ready({"metadata": {}, "status": {}})


def test_what_a_node_said_before_its_reboot_does_not_count():
    assert not is_ready(node(), after="2026-11-23T00:00:00Z")
    assert is_ready(node(beat="2026-11-23T00:00:04Z"), after="2026-11-23T00:00:00Z")


def test_a_node_without_the_label_has_no_health():
    assert health({"metadata": {}, "status": {}}) == ""
    assert health(node(label="UnschedulablePendingReboot")) == "UnschedulablePendingReboot"


def test_a_kubelet_that_ends_is_shown_by_its_fatal_line_and_not_by_the_stacks_behind_it():
    fatal = "F1130 20:34:00.467951      94 server.go:269] failed to run Kubelet: could not detect clock speed"
    log = f"I1130 20:33:59.1 94 server.go:1] begin\nF1130 old\n{fatal}\ngoroutine 1 [running]:\nwait.go:571 +0xb5\n"
    assert last_complaint(log.encode()) == fatal


def test_a_kubelet_without_a_fatal_line_is_shown_by_its_last_lines():
    assert last_complaint(b"one\ntwo\nthree\nfour\n") == "two | three | four"
    assert last_complaint(b"") == ""
