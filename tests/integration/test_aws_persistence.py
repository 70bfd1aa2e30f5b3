"""The embedded AWS as a process: it survives kill -9, restarts, full disks and foreign state."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from footing import service_role
from ports import free_port
from waiting import eventually

from holdfast.localcloud.home import keys_of

pytestmark = pytest.mark.e2e

ENFORCE_SSL = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny",
                "Principal": {"AWS": "*"},
                "Action": "s3:*",
                "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }
)


class Cloud:
    """An embedded AWS in a process of its own, on one home directory."""

    def __init__(self, home):
        self.home = home
        self.process = None
        self.clients = {}

    def start(self, *, port=None):
        self.port = port or free_port()
        self.endpoint = f"http://localhost:{self.port}"
        command = [sys.executable, "-m", "holdfast.localcloud.aws", "--home", str(self.home), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--hyperpod", "simulated"],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert "ready at" in self.process.stdout.readline(), self.process.stderr.read()

    def end(self, number=signal.SIGTERM):
        for client in self.clients.values():
            client.close()
        self.clients = {}
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        self.errors = errors
        return self.process.returncode

    def __getitem__(self, service):
        if service not in self.clients:
            self.clients[service] = boto3.client(
                service,
                endpoint_url=self.endpoint,
                region_name="us-west-2",
                **keys_of(self.home).boto,
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self.clients[service]

    def health(self):
        with urllib.request.urlopen(f"{self.endpoint}/_holdfast/health") as answer:
            return json.load(answer)

    def settle(self):
        """Wait until the last change is in a snapshot."""
        eventually(lambda: not self.health()["unsaved"], "a snapshot of the last change")


@pytest.fixture
def cloud(tmp_path):
    made = Cloud(tmp_path)
    made.start()
    yield made
    if made.process.poll() is None:
        made.end()


def fill(cloud):
    """Something in every service; gives what to expect of it later."""
    s3, ec2, kms = cloud["s3"], cloud["ec2"], cloud["kms"]
    s3.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_bucket_versioning(Bucket="data", VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket="data", Key="dir/a", Body=b"one" * 4000)["VersionId"]
    s3.put_object(Bucket="data", Key="dir/a", Body=b"two" * 4000, Metadata={"my_key": "v"})
    s3.put_object(Bucket="data", Key="small", Body=b"small")
    s3.put_bucket_policy(Bucket="data", Policy=ENFORCE_SSL)
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24")["Subnet"]["SubnetId"]
    role = service_role(cloud["iam"], "nodes")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    secret = kms.encrypt(KeyId=key, Plaintext=b"secret")["CiphertextBlob"]
    rsa = kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    cloud["ssm"].put_parameter(Name="/holdfast/x", Value="1", Type="String")
    cloud["ssm"].put_parameter(Name="/holdfast/x", Value="2", Type="String", Overwrite=True)
    cloud["ecr"].create_repository(repositoryName="training")
    cloud["events"].put_rule(Name="rule", ScheduleExpression="rate(5 minutes)")
    cloud["cloudwatch"].put_dashboard(DashboardName="board", DashboardBody='{"widgets": []}')
    cloud["logs"].create_log_group(logGroupName="/aws/x")
    cloud["logs"].create_log_stream(logGroupName="/aws/x", logStreamName="s")
    now = int(time.time() * 1000)
    cloud["logs"].put_log_events(
        logGroupName="/aws/x", logStreamName="s", logEvents=[{"timestamp": now, "message": "hello"}]
    )
    session = cloud["sts"].assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]["AccessKeyId"]
    fs = cloud["fsx"].create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
    )["FileSystem"]
    dra = cloud["fsx"].create_data_repository_association(
        FileSystemId=fs["FileSystemId"], FileSystemPath="/data", DataRepositoryPath="s3://data/dir"
    )["Association"]["AssociationId"]
    cloud["sagemaker"].create_cluster(
        ClusterName="lab",
        InstanceGroups=[
            {"InstanceGroupName": "g", "InstanceType": "ml.m5.xlarge", "InstanceCount": 2, "ExecutionRole": role}
        ],
    )
    return {
        "first": first, "vpc": vpc, "key": key, "secret": secret, "rsa": rsa, "session": session, "fs": fs, "dra": dra
    }  # fmt: skip


def answers(cloud, made):
    """What the cloud says about everything `fill` made."""
    s3 = cloud["s3"]
    key = s3.get_object(Bucket="data", Key="dir/a")
    cluster = cloud["sagemaker"].describe_cluster(ClusterName="lab")
    nodes = cloud["sagemaker"].list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]
    return {
        "now": (key["Body"].read(), key["Metadata"]),
        "first": s3.get_object(Bucket="data", Key="dir/a", VersionId=made["first"])["Body"].read(),
        "small": s3.get_object(Bucket="data", Key="small")["Body"].read(),
        "policy": s3.get_bucket_policy(Bucket="data")["Policy"],
        "vpcs": [vpc["CidrBlock"] for vpc in cloud["ec2"].describe_vpcs(VpcIds=[made["vpc"]])["Vpcs"]],
        "interfaces": len(cloud["ec2"].describe_network_interfaces()["NetworkInterfaces"]),
        "role": cloud["iam"].get_role(RoleName="nodes")["Role"]["Arn"],
        "secret": cloud["kms"].decrypt(CiphertextBlob=made["secret"])["Plaintext"],
        "public": cloud["kms"].get_public_key(KeyId=made["rsa"])["PublicKey"],
        "parameter": [
            (one["Version"], one["Value"])
            for one in cloud["ssm"].get_parameter_history(Name="/holdfast/x")["Parameters"]
        ],
        "repositories": [one["repositoryName"] for one in cloud["ecr"].describe_repositories()["repositories"]],
        "rules": [one["Name"] for one in cloud["events"].list_rules()["Rules"]],
        "boards": [one["DashboardName"] for one in cloud["cloudwatch"].list_dashboards()["DashboardEntries"]],
        "events": [
            one["message"]
            for one in cloud["logs"].get_log_events(logGroupName="/aws/x", logStreamName="s")["events"]
        ],
        "fs": cloud["fsx"].describe_file_systems()["FileSystems"][0]["LustreConfiguration"],
        "dra": cloud["fsx"].describe_data_repository_associations()["Associations"][0]["AssociationId"],
        "cluster": (cluster["ClusterArn"], cluster["ClusterStatus"], cluster["CreationTime"]),
        "nodes": [(node["InstanceId"], node["PrivateDnsHostname"]) for node in nodes],
    }  # fmt: skip


def test_everything_answers_the_same_after_kill_minus_nine(cloud):
    made = fill(cloud)
    before = answers(cloud, made)
    cloud.settle()
    assert cloud.health()["problem"] == ""

    cloud.end(signal.SIGKILL)
    cloud.start()

    assert answers(cloud, made) == before
    assert before["policy"] == ENFORCE_SSL
    assert before["now"] == (b"two" * 4000, {"my_key": "v"})
    assert cloud["kms"].sign(KeyId=made["rsa"], Message=b"m", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256")["Signature"]
    assert cloud["ssm"].put_parameter(Name="/holdfast/y", Value="1", Type="String")["Version"] == 1
    cloud["ecr"].create_repository(repositoryName="second")
    cloud["s3"].put_object(Bucket="data", Key="later", Body=b"x" * 5000)
    cloud.settle()
    cloud.end(signal.SIGKILL)
    cloud.start()

    assert cloud["s3"].get_object(Bucket="data", Key="later")["Body"].read() == b"x" * 5000
    assert len(list((cloud.home / "aws/state/bodies").iterdir())) == 3


def test_a_clean_stop_keeps_the_very_last_change(cloud):
    cloud["ssm"].put_parameter(Name="/a", Value="1", Type="String")
    assert cloud.end() == 0
    cloud.start()

    assert cloud["ssm"].get_parameter(Name="/a")["Parameter"]["Value"] == "1"


@pytest.mark.parametrize("version", [(b'"moto": "', b'"moto": "0'), (b'"format": 2', b'"format": 1')])
def test_state_of_other_versions_is_rejected_with_the_way_back(cloud, version):
    cloud["ssm"].put_parameter(Name="/a", Value="1", Type="String")
    cloud.end()
    path = cloud.home / "aws/state/moto-ssm.snapshot"
    path.write_bytes(path.read_bytes().replace(*version, 1))
    cloud.start()

    assert cloud["ssm"].describe_parameters()["Parameters"] == []
    cloud.end()
    aside = next(one for one in (cloud.home / "aws").iterdir() if one.name.startswith("set-aside-"))
    name = version[0].decode().split('"')[1]
    assert f"state of the embedded AWS rejected: moto-ssm.snapshot: got {name} " in cloud.errors
    assert f"move the folder back to {cloud.home}/aws/state and start the local cloud with holdfast" in cloud.errors
    assert (aside / "moto-ssm.snapshot").exists()


def test_state_that_was_put_back_is_used_again(cloud):
    cloud["ssm"].put_parameter(Name="/a", Value="1", Type="String")
    cloud.end()
    path = cloud.home / "aws/state/moto-ssm.snapshot"
    mine, other = b'"moto": "', b'"moto": "0'
    path.write_bytes(path.read_bytes().replace(mine, other, 1))
    cloud.start()
    cloud.end()
    aside = next((cloud.home / "aws").glob("set-aside-*"))
    shutil.rmtree(cloud.home / "aws/state")
    aside.rename(cloud.home / "aws/state")
    path.write_bytes(path.read_bytes().replace(other, mine, 1))
    cloud.start()

    assert cloud["ssm"].get_parameter(Name="/a")["Parameter"]["Value"] == "1"


def test_damaged_state_is_set_aside(cloud):
    cloud["ssm"].put_parameter(Name="/a", Value="1", Type="String")
    cloud.end()
    path = cloud.home / "aws/state/moto-ssm.snapshot"
    path.write_bytes(path.read_bytes()[:-10])
    cloud.start()

    assert cloud["ssm"].describe_parameters()["Parameters"] == []


def test_large_objects_are_not_written_again_with_every_change(cloud):
    cloud["s3"].create_bucket(Bucket="big", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    body = bytes(5_000_000)
    for number in (1, 2):
        cloud["s3"].put_object(Bucket="big", Key=f"checkpoint-{number}", Body=body)
    cloud.settle()
    bodies = {path: path.stat().st_mtime_ns for path in (cloud.home / "aws/state/bodies").iterdir()}

    cloud["s3"].put_object(Bucket="big", Key="note", Body=b"n")
    cloud.settle()

    assert {path: path.stat().st_mtime_ns for path in (cloud.home / "aws/state/bodies").iterdir()} == bodies
    assert (cloud.home / "aws/state/moto-s3.snapshot").stat().st_size < 20_000
    cloud["s3"].delete_object(Bucket="big", Key="checkpoint-1")
    cloud.settle()
    assert len(list((cloud.home / "aws/state/bodies").iterdir())) == 1


def test_a_disk_that_takes_nothing_is_told_once_and_harms_nobody(cloud):
    state = cloud.home / "aws/state"
    (state / "moto-ssm.snapshot.part").mkdir()
    cloud["ssm"].put_parameter(Name="/a", Value="1", Type="String")
    eventually(lambda: cloud.health()["status"] != "ok")

    assert "cannot be saved" in cloud.health()["problem"]
    (state / "moto-ssm.snapshot.part").rmdir()
    eventually(lambda: cloud.health()["status"] == "ok")
    cloud.end()
    assert cloud.errors.count("cannot be saved") == 1


def test_a_busy_port_is_one_clear_line_and_exit_2(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "holdfast.localcloud.aws", "--home", str(tmp_path), "--port", str(port)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=30,
        )

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in done.stderr


def test_localhost_means_both_loopback_addresses(cloud):
    for host in ("127.0.0.1", "[::1]" if _has_ipv6() else "localhost", "localhost"):
        with contextlib.closing(urllib.request.urlopen(f"http://{host}:{cloud.port}/_holdfast/health")) as answer:
            assert answer.status == 200


def _has_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


def test_nobody_is_told_that_things_are_gone_before_they_are_restored(cloud):
    """A control plane that asks too early must not take a restoring cloud for an empty one and end its nodes."""
    made = {cloud["ec2"].create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in range(5)}
    cloud.end()
    answers, ready = [], threading.Event()

    def ask() -> None:
        while not ready.is_set():
            with contextlib.suppress(BotoCoreError, ClientError):
                answers.append({vpc["VpcId"] for vpc in cloud["ec2"].describe_vpcs()["Vpcs"]})

    cloud.port = free_port()
    cloud.endpoint = f"http://localhost:{cloud.port}"
    asker = threading.Thread(target=ask)
    asker.start()
    cloud.start(port=cloud.port)
    time.sleep(0.3)
    ready.set()
    asker.join()

    assert answers
    assert all(made <= answer for answer in answers)
