"""The control plane on an embedded AWS: real nodes, a real Slurm cluster, real faults. One cluster serves all tests."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from footing import ready_network, service_role
from listening import places_of, rows, sockets, unknown
from slurm_lab import controller_node
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.nodes import Fleet, Node

pytestmark = [pytest.mark.root, pytest.mark.slurm]

ON_CREATE = """#!/bin/bash
echo "hello from $(hostname)" >> /var/log/provision/provisioning.log
mkdir -p -m 1777 /var/log/holdfast
event='"source":"lifecycle","kind":"lifecycle_started"'
echo '{"version":1,"time_ns":'$(date +%s%N)",$event}" >> /var/log/holdfast/events.jsonl
touch /etc/created
"""
BROKEN = "#!/bin/bash\necho preparing\necho 'no such user: trainer' >&2\nexit 3\n"
BUCKET = "sagemaker-lab"


def told(lab: "Lab") -> list[str]:
    return [event["kind"] for event in lab.events(stream="control-plane")]


class Lab:
    """An embedded AWS, a control plane, and one cluster called lab."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.aws = serve(home=home, port=0)
        self.sagemaker, self.s3, self.logs, self.fsx, self.ec2, self.iam = (
            self.client(name) for name in ("sagemaker", "s3", "logs", "fsx", "ec2", "iam")
        )
        self.fleet = Fleet(home=home)
        self.start()
        self.deploy()

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name="us-west-2",
            **self.aws.client_arguments,
        )

    def start(self) -> None:
        self.plane = ControlPlane(home=self.home, endpoint=self.aws.endpoint, region="us-west-2")
        self.thread = threading.Thread(target=self.plane.run)
        self.thread.start()

    def stop(self) -> None:
        self.plane.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()

    def deploy(self) -> None:
        vpc = self.ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/20")["Subnet"]["SubnetId"]
        self.security_group = self.ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        self.role = service_role(self.iam, "lab")
        ready_network(self.ec2, vpc=vpc, group=self.security_group)
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        self.s3.put_object(Bucket=BUCKET, Key="lifecycle/good/on_create.sh", Body=ON_CREATE.encode())
        self.s3.put_object(Bucket=BUCKET, Key="lifecycle/broken/on_create.sh", Body=BROKEN.encode())
        self.logs.create_log_group(logGroupName="/holdfast/lab/events")
        self.file_system = self.fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[self.subnet],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )["FileSystem"]
        everything = {"Events": ["NEW", "CHANGED", "DELETED"]}
        for path, policies in (("/data", {"AutoImportPolicy": everything}), ("/out", {"AutoExportPolicy": everything})):
            self.fsx.create_data_repository_association(
                FileSystemId=self.file_system["FileSystemId"],
                FileSystemPath=path,
                DataRepositoryPath=f"s3://{BUCKET}{path}/",
                S3=policies,
            )
        self.create("lab", groups=self.groups(workers=2))
        assert self.settled("lab")["ClusterStatus"] == "InService"

    def create(self, name: str, *, groups: list[dict[str, Any]]) -> None:
        self.sagemaker.create_cluster(
            ClusterName=name,
            InstanceGroups=groups,
            VpcConfig={"SecurityGroupIds": [self.security_group], "Subnets": [self.subnet]},
            Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}},
            NodeRecovery="Automatic",
        )

    def group(self, name: str, *, count: int, lifecycle: str = "good", **slurm: Any) -> dict[str, Any]:
        lustre = {
            "DnsName": self.file_system["DNSName"],
            "MountName": self.file_system["LustreConfiguration"]["MountName"],
            "MountPath": "/fsx",
        }
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": count,
            "ExecutionRole": self.role,
            "LifeCycleConfig": {
                "SourceS3Uri": f"s3://{BUCKET}/lifecycle/{lifecycle}",
                "OnInitComplete": "on_create.sh",
            },
            "InstanceStorageConfigs": [{"FsxLustreConfig": lustre}],
            "SlurmConfig": slurm,
        }

    def groups(self, *, workers: int, lifecycle: str = "good") -> list[dict[str, Any]]:
        return [
            self.group("controller", count=1, NodeType="Controller"),
            self.group("workers", count=workers, lifecycle=lifecycle, NodeType="Compute", PartitionNames=["dev"]),
        ]

    def settled(self, name: str) -> dict[str, Any]:
        def ended() -> Any:
            described = self.sagemaker.describe_cluster(ClusterName=name)
            return described if described["ClusterStatus"] in ("InService", "Failed") else None

        return eventually(ended)

    def instances(self, name: str = "lab") -> dict[str, str]:
        """Instance id -> status."""
        nodes = self.sagemaker.list_cluster_nodes(ClusterName=name)["ClusterNodeSummaries"]
        return {node["InstanceId"]: node["InstanceStatus"]["Status"] for node in nodes}

    def workers(self) -> list[str]:
        nodes = self.sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]
        return [node["InstanceId"] for node in nodes if node["InstanceGroupName"] == "workers"]

    def all_run(self) -> bool:
        return set(self.instances().values()) == {"Running"}

    def events(self, *, stream: str, cluster: str = "lab") -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines(stream=stream, cluster=cluster)]

    def lines(self, *, stream: str, cluster: str = "lab") -> list[str]:
        try:
            found = self.logs.get_log_events(
                logGroupName=f"/holdfast/{cluster}/events", logStreamName=stream, startFromHead=True
            )
        except self.logs.exceptions.ResourceNotFoundException:
            return []
        return [event["message"] for event in found["events"]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("hyperpod")
    made: Lab | None = None
    try:
        made = Lab(home)
        yield made
    finally:
        if made is not None:
            made.stop()
            made.aws.stop()
        Fleet(home=home).close()


def controller(lab: Lab) -> Node:
    return controller_node(lab.fleet)


def slurm(lab: Lab, *argv: str) -> str:
    return controller(lab).run(argv, timeout_s=20).stdout.strip()


def states(lab: Lab) -> set[str]:
    return set(slurm(lab, "sinfo", "-h", "-N", "-o", "%T").split())


def test_a_cluster_is_in_service_with_storage_environment_and_logs(lab: Lab) -> None:
    assert lab.all_run()
    eventually(lambda: states(lab) == {"idle"})
    worker = lab.workers()[0]
    printed = slurm(lab, "srun", "-N1", "-w", lab.fleet.node(worker).spec.hostname, "env")
    assert f"HOLDFAST_INSTANCE_ID={worker}\n" in printed
    assert "OMP_NUM_THREADS=1\n" in printed
    assert ":/bin:/opt/holdfast/env/bin\n" in printed
    config = json.loads(lab.fleet.node(worker).read_file("/opt/ml/config/resource_config.json"))
    assert [one["InstanceId"] for one in config["InstanceGroups"][1]["Instances"]] == lab.workers()
    arn = lab.sagemaker.describe_cluster(ClusterName="lab")["ClusterArn"]
    group = f"/aws/sagemaker/Clusters/lab/{arn.rpartition('/')[2]}"

    def said() -> Any:
        stream = f"LifecycleConfig/workers/{worker}"
        try:
            return lab.logs.get_log_events(logGroupName=group, logStreamName=stream)["events"]
        except lab.logs.exceptions.ResourceNotFoundException:
            return []

    assert eventually(lambda: len(said()) == 3)
    assert [event["message"] for event in said()] == [
        "[SageMaker] Downloading lifecycle scripts",
        f"hello from {lab.fleet.node(worker).spec.hostname}",
        "[SageMaker] The lifecycle scripts succeeded.",
    ]
    # Events are shipped in batches: the last may still be on its way.
    assert eventually(lambda: "cluster_in_service" in told(lab))
    assert told(lab)[0] == "cluster_creating"
    assert told(lab).count("node_in_service") == 3


def test_nodes_reach_the_embedded_aws_through_the_gateway(lab: Lab) -> None:
    program = "import urllib.request as r; print(r.urlopen('http://10.1.0.1:5710/_holdfast/health', timeout=5).status)"
    done = controller(lab).run(["/opt/holdfast/env/bin/python", "-c", program], timeout_s=20)
    assert done.stdout.strip() == "200", done.stderr


@pytest.mark.documented("HP-60")
def test_a_killed_node_is_replaced_at_the_same_address(lab: Lab) -> None:
    victim, survivor = lab.workers()
    node = lab.fleet.node(victim)
    os.kill(node.pid, signal.SIGKILL)
    eventually(lambda: victim not in lab.instances() and lab.all_run())
    assert survivor in lab.workers()
    (fresh,) = set(lab.workers()) - {survivor}
    assert lab.fleet.node(fresh).spec.address == node.spec.address
    eventually(lambda: states(lab) == {"idle"})
    replaced = eventually(
        lambda: [event for event in lab.events(stream="control-plane") if event["kind"] == "node_replaced"]
    )
    assert replaced[-1]["detail"]["replaces"] == victim
    lost = [event for event in lab.events(stream="control-plane") if event["kind"] == "node_lost"]
    assert lost[-1]["node"] == victim


@pytest.mark.e2e
def test_a_frozen_node_is_replaced(lab: Lab) -> None:
    victim = lab.workers()[0]
    lab.fleet.node(victim).freeze()
    eventually(lambda: victim not in lab.instances() and lab.all_run())
    eventually(lambda: states(lab) == {"idle"})


@pytest.mark.e2e
def test_a_node_whose_network_is_cut_is_replaced(lab: Lab) -> None:
    cut = lab.workers()[0]
    lab.fleet.node(cut).cut()
    assert lab.fleet.node(cut).alive()
    assert eventually(lambda: cut not in lab.workers() and len(lab.workers()) == 2 and lab.all_run())
    lost = [
        event for event in lab.events(stream="control-plane") if event["node"] == cut and event["kind"] == "node_lost"
    ]
    assert [event["evidence"] for event in lost] == ["its network is unreachable"]


@pytest.mark.documented("HP-59")
def test_the_documented_slurm_reason_replaces_a_node(lab: Lab) -> None:
    victim = lab.workers()[1]
    slurm(
        lab,
        "scontrol",
        "update",
        f"nodename={lab.fleet.node(victim).spec.hostname}",
        "state=fail",
        "reason=Action:Replace",
    )
    eventually(lambda: victim not in lab.instances() and lab.all_run())
    eventually(lambda: states(lab) == {"idle"})


@pytest.mark.documented("HP-41")
def test_a_rebooted_node_keeps_its_id_and_its_files(lab: Lab) -> None:
    name = lab.workers()[0]
    before = lab.fleet.node(name)
    before.write_file("/etc/kept", b"yes")
    answer = lab.sagemaker.batch_reboot_cluster_nodes(ClusterName="lab", NodeIds=[name])
    assert answer["Successful"] == [name]
    eventually(lambda: [n for n in lab.fleet.nodes() if n.spec.instance_id == name and n.pid != before.pid])
    eventually(lab.all_run)
    assert lab.fleet.node(name).read_file("/etc/kept") == b"yes"
    eventually(lambda: states(lab) == {"idle"})


@pytest.mark.e2e
def test_a_replacement_that_fails_is_retried_three_times_and_then_left(lab: Lab) -> None:
    lab.s3.put_object(Bucket=BUCKET, Key="lifecycle/good/on_create.sh", Body=BROKEN.encode())
    os.kill(lab.fleet.node(lab.workers()[0]).pid, signal.SIGKILL)

    def failures() -> int:
        kinds = [event["kind"] for event in lab.events(stream="control-plane")]
        return kinds.count("node_failed")

    eventually(lambda: failures() == 3 and "Failure" in lab.instances().values())
    time.sleep(1.5)
    assert failures() == 3
    assert lab.settled("lab")["ClusterStatus"] == "InService"
    assert "drained" in states(lab)
    lab.s3.put_object(Bucket=BUCKET, Key="lifecycle/good/on_create.sh", Body=ON_CREATE.encode())
    (failed,) = [name for name, status in lab.instances().items() if status == "Failure"]
    lab.sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[failed])
    eventually(lambda: failed not in lab.instances() and lab.all_run())
    eventually(lambda: states(lab) == {"idle"})


def test_scaling_keeps_surviving_instances_and_running_jobs(lab: Lab) -> None:
    before = lab.workers()
    job = slurm(lab, "sbatch", "--parsable", "-N2", "-o", "/dev/null", "--wrap", "sleep 100")
    eventually(lambda: slurm(lab, "squeue", "-h", "-o", "%T") == "RUNNING")
    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=lab.groups(workers=3))
    assert lab.settled("lab")["ClusterStatus"] == "InService"
    assert set(before) < set(lab.workers())
    assert len(slurm(lab, "sinfo", "-h", "-N", "-o", "%N").split()) == 3
    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=lab.groups(workers=2))
    assert lab.settled("lab")["ClusterStatus"] == "InService"
    assert set(lab.workers()) == set(before)
    assert len(lab.fleet.nodes()) == 3
    assert len(slurm(lab, "sinfo", "-h", "-N", "-o", "%N").split()) == 2
    assert slurm(lab, "squeue", "-h", "-o", "%T") == "RUNNING"
    slurm(lab, "scancel", job)
    eventually(lambda: states(lab) == {"idle"})


def test_a_failing_update_is_rolled_back(lab: Lab) -> None:
    before = set(lab.instances())
    lab.sagemaker.update_cluster(ClusterName="lab", InstanceGroups=lab.groups(workers=3, lifecycle="broken"))
    described = lab.settled("lab")
    assert described["ClusterStatus"] == "InService"
    assert "Lifecycle scripts did not run successfully." in described["FailureMessage"]
    assert set(lab.instances()) == before
    assert {node.spec.instance_id for node in lab.fleet.nodes()} == before
    eventually(lambda: states(lab) == {"idle"})
    assert described["InstanceGroups"][1]["TargetCount"] == 2


@pytest.mark.e2e
def test_a_failing_creation_names_the_instance_and_keeps_its_output(lab: Lab) -> None:
    lab.logs.create_log_group(logGroupName="/holdfast/broken/events")
    lab.create("broken", groups=lab.groups(workers=1, lifecycle="broken"))
    described = lab.settled("broken")
    failed = [name for name, status in lab.instances("broken").items() if status == "Failure"]
    assert described["ClusterStatus"] == "Failed"
    assert len(failed) == 1
    assert described["FailureMessage"].startswith(
        f"Instance {failed[0]} failed to provision with the following error: "
        '"Lifecycle scripts did not run successfully. To view lifecycle script logs, visit log group '
    )
    told = eventually(
        lambda: [
            event["evidence"]
            for event in lab.events(stream="control-plane", cluster="broken")
            if event["kind"] == "node_failed"
        ]
    )
    assert told[-1].startswith("lifecycle script on_create.sh failed with exit code 3: ")
    assert "no such user: trainer" in told[-1]
    lab.sagemaker.delete_cluster(ClusterName="broken")
    eventually(lambda: len(lab.sagemaker.list_clusters()["ClusterSummaries"]) == 1)
    assert len(lab.fleet.nodes()) == 3


def test_objects_appear_on_the_file_system_and_files_in_the_bucket(lab: Lab) -> None:
    worker = lab.fleet.node(lab.workers()[0])
    lab.s3.put_object(Bucket=BUCKET, Key="data/a/b.txt", Body=b"one")
    lab.s3.put_object(Bucket=BUCKET, Key="data/../../escape", Body=b"no")
    lab.s3.put_object(Bucket=BUCKET, Key="data//absolute", Body=b"no")
    imported = worker.root / "fsx/data/a/b.txt"
    eventually(imported.exists)
    lab.s3.put_object(Bucket=BUCKET, Key="data/a/b.txt", Body=b"two")
    eventually(lambda: imported.read_bytes() == b"two")
    lab.s3.delete_object(Bucket=BUCKET, Key="data/a/b.txt")
    eventually(lambda: not imported.exists())
    assert not list(lab.home.rglob("escape"))

    worker.run(["sh", "-c", "mkdir -p /fsx/out/x; echo checkpoint > /fsx/out/x/step-1"], user="ubuntu", timeout_s=5)

    def exported() -> list[str]:
        listed = lab.s3.list_objects_v2(Bucket=BUCKET, Prefix="out/").get("Contents", [])
        return [entry["Key"] for entry in listed]

    assert eventually(exported) == ["out/x/step-1"]
    assert lab.s3.get_object(Bucket=BUCKET, Key="out/x/step-1")["Body"].read() == b"checkpoint\n"
    (worker.root / "fsx/out/x/step-1").unlink()
    eventually(lambda: not exported())


def test_a_file_that_is_open_for_writing_is_not_exported(lab: Lab) -> None:
    path = lab.home / "fsx" / lab.file_system["FileSystemId"] / "out" / "growing"
    with path.open("wb") as file:
        file.write(b"half")
        file.flush()
        time.sleep(1.5)
        assert "Contents" not in lab.s3.list_objects_v2(Bucket=BUCKET, Prefix="out/growing")
        file.write(b" whole")
    eventually(lambda: "Contents" in lab.s3.list_objects_v2(Bucket=BUCKET, Prefix="out/growing"))
    assert lab.s3.get_object(Bucket=BUCKET, Key="out/growing")["Body"].read() == b"half whole"


def test_nodes_and_their_network_listen_at_no_port_that_the_page_about_security_lacks(lab: Lab) -> None:
    page = rows()
    nodes = [node for node in lab.fleet.nodes() if node.alive()]
    namespaces: dict[tuple[str, ...], Path] = {("nodes' network",): lab.fleet.fabric.path}
    namespaces |= {places_of(node.pid): Path(f"/proc/{node.pid}/ns/net") for node in nodes}
    found = {places: sockets(namespace=namespace) for places, namespace in namespaces.items()}

    assert {"Slurm controller", "Slurm compute node"} <= {place for places in found for place in places}
    assert all(found.values())
    wrong = [
        f"{', '.join(places)}: {one}"
        for places, listens in found.items()
        for one in unknown(listens, [row for row in page if row.place in places])
    ]
    assert wrong == []


def test_what_a_user_of_a_node_forged_is_put_as_a_jobs_of_that_node(lab: Lab) -> None:
    worker, other = lab.workers()[:2]
    node, log = lab.fleet.node(worker), "/var/log/holdfast/jobs/events.jsonl"
    lies = [
        {"version": 1, "time_ns": time.time_ns(), "source": source, "kind": "node_lost", "node": about}
        for source in ("agent", "control-plane")
        for about in (worker, other, "i-of-no-cluster")
    ]
    as_lifecycle_does = f"mkdir -p {Path(log).parent} && touch {log} && chmod 666 {log}"
    assert node.run(["sh", "-c", as_lifecycle_does], timeout_s=5).returncode == 0
    lines = "".join(json.dumps(lie) + "\n" for lie in lies) + "none\n"
    assert node.run(["sh", "-c", f"printf %s '{lines}' >> {log}"], user="ubuntu", timeout_s=5).returncode == 0

    eventually(lambda: len(lab.lines(stream=f"{worker}/jobs")) == len(lies) + 1)

    *events, none = lab.lines(stream=f"{worker}/jobs")
    told = {(event["source"], event["node"], event["cluster"]) for event in map(json.loads, events)}
    assert told == {("job", worker, "lab")}
    assert none == "[holdfast] no event in the log of jobs: none"


def test_a_restarted_control_plane_adopts_nodes_and_ships_each_line_once(lab: Lab) -> None:
    before = {node.spec.instance_id: node.pid for node in lab.fleet.nodes()}
    worker = lab.workers()[0]
    eventually(lambda: lab.events(stream=worker))
    shipped = len(lab.events(stream=worker))
    lab.stop()
    line = json.dumps({"version": 1, "time_ns": time.time_ns(), "source": "job", "kind": "job_started"}) + "\n"
    with (lab.fleet.node(worker).root / "var/log/holdfast/events.jsonl").open("a") as log:
        log.write(line)
    dead = lab.workers()[1]
    lab.fleet.node(dead).destroy()
    lab.start()
    eventually(lambda: dead not in lab.instances() and lab.all_run())
    after = {node.spec.instance_id: node.pid for node in lab.fleet.nodes()}
    assert {name: pid for name, pid in before.items() if name != dead}.items() <= after.items()
    eventually(lambda: len(lab.events(stream=worker)) > shipped)
    time.sleep(0.5)
    assert [event["kind"] for event in lab.events(stream=worker)][-2:] == ["lifecycle_started", "job_started"]
    assert len(lab.events(stream=worker)) == shipped + 1


def test_the_file_system_goes_with_its_record_and_the_cluster_with_all_nodes(lab: Lab) -> None:
    place = lab.home / "fsx" / lab.file_system["FileSystemId"]
    lab.sagemaker.delete_cluster(ClusterName="lab")
    eventually(lambda: not lab.sagemaker.list_clusters()["ClusterSummaries"])
    assert lab.fleet.nodes() == []
    assert place.is_dir()
    lab.fsx.delete_file_system(FileSystemId=lab.file_system["FileSystemId"])
    eventually(lambda: not place.exists())
