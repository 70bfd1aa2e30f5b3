"""What the local HyperPod does when scripts fail, and on EKS, row by row of docs/concepts/local-cloud.md."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hyperpod_lab import BUCKET, HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast.localcloud.nodes import NodeError

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

RUNS = "echo run >> /root/runs\n"
CONTROLLER = """#!/bin/bash
until [ -s /opt/slurm/etc/slurm.conf ]; do sleep 0.1; done
systemctl enable --now slurmctld
"""
"""As AWS's own scripts do (HP-74): without slurm.conf nothing is started, and systemctl says that all is well."""
BROKEN = "#!/bin/bash\necho 'no such disk' >> /var/log/provision/provisioning.log\nexit 7\n"
FAILED = re.compile(
    'Instance (?P<instance>i-[0-9a-f]{17}) failed to provision with the following error: "Lifecycle scripts did not '
    "run successfully. To view lifecycle script logs, visit log group ‘/aws/sagemaker/Clusters/(?P<cluster>[^/]+)/"  # noqa: RUF001
    "(?P<id>[a-z0-9]+)' and log stream ‘LifecycleConfig/(?P<group>[^/]+)/(?P=instance)’. If you cannot find "  # noqa: RUF001
    "corresponding lifecycle script logs in CloudWatch, please make sure you follow one of the options here: "
    "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-faq-slurm.html#hyperpod-faqs-q1.” "
    "Note that multiple instances may be impacted."
)
"""As AWS's guide prints it, typographic quotes included."""
MISSING = (
    "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and run "
    "without errors. Please see CloudWatch logs for lifecycle script execution details."
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    with hyperpod_lab(tmp_path_factory.mktemp("hyperpod")) as made:
        yield made


@pytest.fixture(scope="module")
def serving(lab: HyperPodLab) -> HyperPodLab:
    """Cluster ``lab`` in service, with two workers whose script counts its runs."""
    lab.scripts("good", run_sh="#!/bin/bash\n" + RUNS)
    lab.scripts("broken", run_sh=BROKEN)
    described = lab.create("lab", slurm_groups(lab, workers=2))
    assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
    return lab


def slurm_groups(lab: HyperPodLab, *, workers: int = 1, script: str = "good", head: str = "") -> list[Any]:
    extension = {"SourceS3Uri": f"s3://{BUCKET}/{script}", "OnInitComplete": "run.sh"}
    first = {"SourceS3Uri": f"s3://{BUCKET}/{head}", "OnInitComplete": "run.sh"} if head else None
    return [
        lab.group("head", lifecycle=first, NodeType="Controller"),
        lab.group("workers", count=workers, lifecycle=extension, NodeType="Compute", PartitionNames=["dev"]),
    ]


def message_of(lab: HyperPodLab, cluster: str, instance_id: str) -> dict[str, str]:
    return lab.sagemaker.describe_cluster_node(ClusterName=cluster, NodeId=instance_id)["NodeDetails"]["InstanceStatus"]


def replaced(lab: HyperPodLab, instance_id: str) -> str:
    """The instance that took the place of this one, once all are settled."""
    before = set(lab.instances("lab", "workers"))
    lab.sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[instance_id])

    def new() -> set[str]:
        now = lab.instances("lab", "workers")
        return {name for name, status in now.items() if status == "Running"} - before

    return str(eventually(new).pop())


# --- failures


@pytest.mark.documented("HP-44", "HP-46", "HP-31", "HP-48", "HP-35")
def test_a_script_that_ends_with_another_status_than_0_fails_the_creation_in_words_of_aws(serving: HyperPodLab):
    described = serving.create("broken", slurm_groups(serving, script="broken"))
    try:
        (failed,) = serving.instances("broken", "workers")
        found = FAILED.fullmatch(described["FailureMessage"])
        assert described["ClusterStatus"] == "Failed"
        assert found is not None, described["FailureMessage"]
        assert (found["instance"], found["cluster"], found["group"]) == (failed, "broken", "workers")
        assert described["ClusterArn"].endswith(f"/{found['id']}")
        told = message_of(serving, "broken", failed)
        assert (told["Status"], told["Message"] in described["FailureMessage"]) == ("Failure", True)
        assert "no such disk" in eventually(lambda: serving.lifecycle_log("broken", "workers", failed))
        assert serving.instances("broken", "head") != {failed: "Failure"}
    finally:
        serving.delete("broken")


@pytest.mark.e2e
@pytest.mark.documented("HP-45")
def test_an_update_whose_new_instance_fails_is_rolled_back_and_says_why(serving: HyperPodLab):
    before = set(serving.instances("lab"))
    serving.sagemaker.update_cluster(
        ClusterName="lab", InstanceGroups=slurm_groups(serving, workers=3, script="broken")
    )
    described = serving.settled("lab")
    assert described["ClusterStatus"] == "InService"
    assert FAILED.fullmatch(described["FailureMessage"])
    assert set(serving.instances("lab")) == before


@pytest.mark.documented("HP-40", "HP-43", "HP-58")
def test_a_replacement_keeps_its_name_and_runs_the_script_that_is_in_the_bucket_by_then(serving: HyperPodLab):
    (old, kept) = serving.instances("lab", "workers")
    before, kept_pid = serving.fleet.node(old).spec, serving.fleet.node(kept).pid
    serving.scripts("good", run_sh="#!/bin/bash\n" + RUNS + "touch /root/edited\n")
    node = serving.fleet.node(replaced(serving, old))
    assert (node.spec.hostname, node.spec.address) == (before.hostname, before.address)
    assert ok(node, "ls", "/root/edited")
    assert (serving.fleet.node(kept).pid, serving.fleet.node(kept).read_file("/root/runs")) == (kept_pid, b"run\n")


@pytest.mark.documented("HP-50")
def test_a_rebooting_instance_is_pending_and_keeps_its_disk(serving: HyperPodLab):
    name = next(iter(serving.instances("lab", "workers")))
    node = serving.fleet.node(name)
    serving.sagemaker.batch_reboot_cluster_nodes(ClusterName="lab", NodeIds=[name])
    eventually(lambda: serving.instances("lab")[name] == "Pending")
    eventually(lambda: serving.instances("lab")[name] == "Running")
    again = serving.fleet.node(name)
    assert again.pid != node.pid
    assert again.read_file("/root/runs") == b"run\n"


HARDENED = """\
[Unit]
After=network.target munge.service

[Service]
ExecStartPre=/bin/sh -c 'echo started >> /var/lib/mine/starts'
ExecStart=/bin/sleep infinity
StateDirectory=mine
Restart=always
RestartSec=100ms
NoNewPrivileges=yes
CapabilityBoundingSet=CAP_KILL
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""


@pytest.mark.documented("HP-109")
def test_an_enabled_unit_is_started_again_after_a_kill_and_after_a_reboot(serving: HyperPodLab):
    name = next(iter(serving.instances("lab", "workers")))
    node = serving.fleet.node(name)
    node.write_file("/etc/systemd/system/mine.service", HARDENED.encode())
    ok(node, "systemctl", "enable", "--now", "mine")

    def pid(of: Any) -> str:
        found = of.run(["systemctl", "show", "-p", "MainPID", "--value", "mine"], timeout_s=20).stdout.strip()
        active = of.run(["systemctl", "is-active", "mine"], timeout_s=20).stdout.strip()
        return found if active == "active" and found not in ("", "0") else ""

    first = pid(node)
    ok(node, "kill", "-KILL", first)
    eventually(lambda: pid(node) not in ("", first), "the killed service")
    ok(node, "mount", "-t", "tmpfs", "later", "/mnt")
    assert " /mnt " in ok(node, "cat", f"/proc/{pid(node)}/mountinfo"), "a later mount of the node is not seen"
    serving.sagemaker.batch_reboot_cluster_nodes(ClusterName="lab", NodeIds=[name])
    eventually(lambda: serving.fleet.node(name).pid != node.pid)
    again = serving.fleet.node(name)
    eventually(lambda: pid(again), "the service after the reboot")
    assert again.read_file("/var/lib/mine/starts") == b"started\n" * 3
    status = ok(again, "cat", f"/proc/{pid(again)}/status")
    assert "CapEff:\t0000000000000020" in status
    assert "NoNewPrivs:\t1" in status
    eventually(lambda: serving.instances("lab")[name] == "Running")
    assert len(ok(again, "pgrep", "-x", "slurmd").split()) == 1, "slurmd was started twice"
    ok(again, "systemctl", "disable", "--now", "mine")


@pytest.mark.documented("HP-61", "HP-62")
def test_the_controller_is_neither_replaced_nor_deleted_by_the_api(serving: HyperPodLab):
    (head,) = serving.instances("lab", "head")
    replace = serving.sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[head])
    delete = serving.sagemaker.batch_delete_cluster_nodes(ClusterName="lab", NodeIds=[head])
    assert [one["NodeId"] for one in replace["Failed"]] == [head]
    assert "Successful" not in replace
    assert [one["Code"] for one in delete["Failed"]] == ["NodeIdInUse"]
    assert serving.instances("lab", "head") == {head: "Running"}


@pytest.mark.e2e
@pytest.mark.documented("HP-47")
def test_a_script_that_has_gone_from_its_bucket_is_missed_in_other_words(serving: HyperPodLab):
    name = next(iter(serving.instances("lab", "workers")))
    serving.s3.delete_object(Bucket=BUCKET, Key="good/run.sh")
    serving.sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[name])
    (failed,) = eventually(
        lambda: [one for one, status in serving.instances("lab", "workers").items() if status == "Failure"]
    )
    said = message_of(serving, "lab", failed)["Message"]
    serving.delete("lab")
    assert said == MISSING


# --- continuous provisioning


@pytest.fixture
def custom(lab: HyperPodLab) -> Iterator[Any]:
    """Groups of a continuous cluster, by the folder of each one's script; the cluster is deleted afterwards."""
    lab.scripts("broken", run_sh=BROKEN)
    lab.scripts("controller", run_sh=CONTROLLER)
    lab.scripts("slow", run_sh="#!/bin/bash\nuntil [ -e /root/end ]; do sleep 0.1; done\nexit 1\n")

    def groups(*, head: str, workers: str) -> list[Any]:
        def lifecycle(prefix: str) -> dict[str, str]:
            return {"SourceS3Uri": f"s3://{BUCKET}/{prefix}", "OnCreate": "run.sh"}

        return [
            lab.group("head", lifecycle=lifecycle(head), NodeType="Controller"),
            lab.group("workers", lifecycle=lifecycle(workers), NodeType="Compute", PartitionNames=["dev"]),
        ]

    yield groups
    lab.sagemaker.delete_cluster(ClusterName="keen")
    for node in lab.fleet.nodes():
        with contextlib.suppress(NodeError, OSError):  # it may be gone by now
            node.write_file("/root/end", b"")
    eventually(lambda: not lab.sagemaker.list_clusters(NameContains="keen")["ClusterSummaries"])


@pytest.mark.documented("HP-54")
def test_a_continuous_cluster_is_in_service_once_its_controller_is(lab: HyperPodLab, custom: Any):
    described = lab.create("keen", custom(head="controller", workers="slow"), NodeProvisioningMode="Continuous")
    assert described["ClusterStatus"] == "InService"
    assert set(lab.instances("keen", "head").values()) == {"Running"}
    assert set(lab.instances("keen", "workers").values()) == {"Pending"}


@pytest.mark.documented("HP-55")
def test_a_failed_script_of_the_controller_fails_a_continuous_cluster(lab: HyperPodLab, custom: Any):
    described = lab.create("keen", custom(head="broken", workers="broken"), NodeProvisioningMode="Continuous")
    assert described["ClusterStatus"] == "Failed"
    found = FAILED.fullmatch(described["FailureMessage"])
    assert found is not None, described["FailureMessage"]
    assert found["group"] == "head"


@pytest.mark.documented("HP-56", "HP-51")
def test_a_failed_worker_of_a_continuous_cluster_is_tried_again_on_a_new_instance(lab: HyperPodLab, custom: Any):
    described = lab.create("keen", custom(head="controller", workers="broken"), NodeProvisioningMode="Continuous")
    assert described["ClusterStatus"] == "InService"

    def told() -> dict[str, list[str]]:
        events = lab.sagemaker.list_cluster_events(ClusterName="keen", ResourceType="Instance")["Events"]
        return {
            level: [one["Description"] for one in events if one["EventLevel"] == level] for level in ("Info", "Error")
        }

    def failed() -> list[str]:
        found = [
            re.fullmatch(r"Instance creation (\S+) in Cluster keen and IG workers failed", e) for e in told()["Error"]
        ]
        return [one[1] for one in found if one is not None]

    # Not the instances that are there at a moment: a machine that is slow looks when attempts are a minute apart.
    eventually(lambda: len(set(failed())) >= 2)
    assert lab.described("keen")["ClusterStatus"] == "InService"
    script = (
        f"Instance lifecycle script execution for EC2 Instance {failed()[0]} has Failed. To view lifecycle script logs"
    )
    eventually(lambda: [one for one in told()["Error"] if one.startswith(script)])
    (head,) = lab.instances("keen", "head")
    assert f"Instance creation {head} in Cluster keen and IG head completed successfully" in told()["Info"]


# --- EKS


ON_CREATE = f"""#!/bin/bash
{RUNS}pwd > /root/folder
ls /opt/ml/config > /root/config
! command -v kubelet
"""


@pytest.fixture(scope="module")
def on_eks(lab: HyperPodLab) -> Iterator[HyperPodLab]:
    """Cluster ``pods`` on EKS with two workers."""
    eks = lab.client("eks")
    network = {"subnetIds": lab.subnets}
    eks.create_cluster(
        name="eks", roleArn=lab.role, accessConfig={"authenticationMode": "API"}, resourcesVpcConfig=network
    )
    eks.get_waiter("cluster_active").wait(name="eks", WaiterConfig={"Delay": 0.05})
    arn = eks.describe_cluster(name="eks")["cluster"]["arn"]
    lab.scripts("eks", on_create_sh=ON_CREATE)
    lifecycle = {"SourceS3Uri": f"s3://{BUCKET}/eks", "OnCreate": "on_create.sh"}
    group = lab.group("workers", count=2, lifecycle=lifecycle)
    described = lab.create("pods", [group], Orchestrator={"Eks": {"ClusterArn": arn}})
    assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
    yield lab
    lab.delete("pods")


@pytest.mark.documented("HP-98", "HP-100")
def test_nodes_of_eks_run_their_script_and_have_no_slurm(on_eks: HyperPodLab):
    node = on_eks.node("pods", "workers")
    assert node.read_file("/root/folder").decode().strip() == f"/tmp/{BUCKET}/eks"
    assert node.read_file("/root/config").decode().split() == ["life_cycle_config.json", "resource_config.json"]
    assert node.run(["ls", "/opt/slurm"], timeout_s=10).returncode == 2
    assert set(on_eks.instances("pods").values()) == {"Running"}


@pytest.mark.documented("HP-99")
def test_nodes_of_eks_say_that_they_are_amazon_linux_with_the_folders_of_its_scripts(on_eks: HyperPodLab):
    node = on_eks.node("pods", "workers")
    assert ok(node, "sh", "-c", '. /etc/os-release; echo "$ID $VERSION_ID"') == "amzn 2023"
    ok(node, "rmdir", "/var/lib/kubelet")
    ok(node, "test", "-d", "/var/lib/containerd")
    assert "containerd.service" in ok(node, "systemctl", "cat", "containerd")


@pytest.mark.documented("HP-42")
def test_new_software_runs_the_scripts_again_on_every_node(on_eks: HyperPodLab):
    groups = [{"InstanceGroupName": "workers", "ImageReleaseVersion": "2.0.0"}]
    on_eks.sagemaker.update_cluster_software(ClusterName="pods", InstanceGroups=groups)
    assert eventually(lambda: on_eks.described("pods")["ClusterStatus"] == "InService")
    assert on_eks.described("pods")["InstanceGroups"][0]["SoftwareUpdateStatus"] == "Succeeded"
    nodes = [on_eks.fleet.node(one) for one in on_eks.instances("pods")]
    assert [node.read_file("/root/runs") for node in nodes] == [b"run\n"] * 2
