"""A local HyperPod for bad days: a control plane with settings of its own, and a way to AWS that S3 can vanish from."""

import http.client
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
from aws_nodes import PYTHONS
from footing import ready_network, service_role
from waiting import eventually

from holdfast.localcloud.aws import serve
from holdfast.localcloud.hyperpod import ControlPlane
from holdfast.localcloud.nodes import Fleet, Node

BUCKET, REGION = "sagemaker-bad-days", "us-west-2"
FAQ = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-faq-slurm.html#hyperpod-faqs-q1"
MISSING = (
    "Lifecycle scripts did not run successfully. Ensure the scripts exist in provided S3 path, are accessible, and run "
    "without errors. Please see CloudWatch logs for lifecycle script execution details."
)


class Gate:
    """
    The way from the control plane to the embedded AWS.

    ``away`` says how S3 fails for whom: a prefix, and "unavailable" or "unreachable". ``refused`` counts how often, and
    ``back_after`` says after how many times it is there again. Default: never.
    """

    def __init__(self, endpoint: str) -> None:
        self.away: dict[str, str] = {}
        self.refused: Counter[str] = Counter()
        self.back_after: dict[str, int] = {}
        self._target = urlsplit(endpoint).netloc
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                for prefix in [one for one in gate.away if _is_below(self.path, prefix=one)]:
                    if gate.refused[prefix] >= gate.back_after.get(prefix, sys.maxsize):
                        continue
                    gate.refused[prefix] += 1
                    self.close_connection = True
                    if gate.away[prefix] == "unavailable":
                        self._answer(503, {}, b"<Error><Code>ServiceUnavailable</Code><Message>away</Message></Error>")
                    return
                link = http.client.HTTPConnection(gate._target, timeout=60)
                try:
                    link.request(self.command, self.path, body, dict(self.headers))
                    answer = link.getresponse()
                    self._answer(answer.status, dict(answer.getheaders()), answer.read())
                finally:
                    link.close()

            def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = _pass  # noqa: N815  http.server's names

            def log_message(self, *_: object) -> None:
                """Nothing: the tests look at what is counted."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Callers that go away in the middle are no news."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _is_below(path: str, *, prefix: str) -> bool:
    """Whether a request of S3 asks for something below a prefix, or for what is there."""
    asked = unquote(path)
    return asked.startswith(f"/{BUCKET}/{prefix}/") or (asked.startswith(f"/{BUCKET}") and f"prefix={prefix}/" in asked)


class Lab:
    """A network, a role, a bucket and a file system; tests start the control plane and make clusters."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.aws = serve(home=home, port=0)
        self.gate = Gate(self.aws.endpoint)
        self.fleet = Fleet(home=home)
        self.sagemaker, self.s3, self.logs = (self.client(name) for name in ("sagemaker", "s3", "logs"))
        self._network()
        self.thread: threading.Thread | None = None

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, **self.aws.client_arguments)

    def start(self, **settings: Any) -> None:
        """A control plane with these settings; nodes of an earlier one are adopted."""
        os.environ.update(PYTHONS)
        self.plane = ControlPlane(home=self.home, endpoint=self.gate.endpoint, region=REGION, **settings)
        self.thread = threading.Thread(target=self.plane.run)
        self.thread.start()

    def halt(self) -> None:
        """Stop the control plane, if it runs; nodes go on."""
        thread, self.thread = self.thread, None
        if thread is not None:
            self.plane.stop()
            thread.join(20)
            assert not thread.is_alive()

    def close(self) -> None:
        self.halt()
        self.gate.close()
        self.aws.stop()
        Fleet(home=self.home).close()

    def _network(self) -> None:
        ec2, eks, fsx = (self.client(name) for name in ("ec2", "eks", "fsx"))
        vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        subnets = []
        for number, zone in enumerate("ab"):
            made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")
            subnets.append(made["Subnet"]["SubnetId"])
        security_group = ec2.create_security_group(GroupName="lab", Description="lab", VpcId=vpc)["GroupId"]
        self.network = {"SecurityGroupIds": [security_group], "Subnets": subnets[:1]}
        self.role = service_role(self.client("iam"), "lab")
        ready_network(ec2, vpc=vpc, group=security_group)
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        eks.create_cluster(
            name="lab",
            roleArn=self.role,
            accessConfig={"authenticationMode": "API"},
            resourcesVpcConfig={"subnetIds": subnets},
        )
        eks.get_waiter("cluster_active").wait(name="lab", WaiterConfig={"Delay": 0.05})
        self.kubernetes = {"Eks": {"ClusterArn": eks.describe_cluster(name="lab")["cluster"]["arn"]}}
        file_system = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=subnets[:1],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
        )["FileSystem"]
        self.file_system = file_system["FileSystemId"]
        lustre = {"DnsName": file_system["DNSName"], "MountName": file_system["LustreConfiguration"]["MountName"]}
        self.lustre = {"FsxLustreConfig": {**lustre, "MountPath": "/fsx"}}

    # --- what tests ask for

    def upload(self, prefix: str, files: dict[str, str | bytes]) -> str:
        """Objects below a prefix; returns its URI."""
        for name, content in files.items():
            body = content.encode() if isinstance(content, str) else content
            self.s3.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=body)
        return f"s3://{BUCKET}/{prefix}"

    def group(self, name: str, *, count: int = 1, lifecycle: dict[str, str] | None = None, **slurm: Any) -> Any:
        """An instance group; one of Slurm's has the file system."""
        return {
            "InstanceGroupName": name,
            "InstanceType": "ml.c5.xlarge",
            "InstanceCount": count,
            "ExecutionRole": self.role,
            **({"LifeCycleConfig": lifecycle} if lifecycle else {}),
            **({"SlurmConfig": slurm, "InstanceStorageConfigs": [self.lustre]} if slurm else {}),
        }

    def slurm_groups(self, *, workers: int, lifecycle: dict[str, str] | None) -> list[Any]:
        """A controller that the AMI alone configures, and workers."""
        compute = {"NodeType": "Compute", "PartitionNames": ["batch"]}
        return [
            self.group("controller", NodeType="Controller"),
            self.group("workers", count=workers, lifecycle=lifecycle, **compute),
        ]

    def create(self, name: str, groups: list[Any], *, kubernetes: bool = False, **more: Any) -> None:
        orchestrator = self.kubernetes if kubernetes else {"Slurm": {}}
        self.logs.create_log_group(logGroupName=f"/holdfast/{name}/events")
        self.sagemaker.create_cluster(
            ClusterName=name, InstanceGroups=groups, VpcConfig=self.network, Orchestrator=orchestrator, **more
        )

    def described(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.sagemaker.describe_cluster(ClusterName=name)
        return found

    def settled(self, name: str, *, within_s: float = 40.0) -> dict[str, Any]:
        """The cluster, once it is in service or has failed."""

        def ended() -> Any:
            described = self.described(name)
            return described if described["ClusterStatus"] in ("InService", "Failed") else None

        found: dict[str, Any] = eventually(ended, within_s=within_s)
        return found

    def delete(self, name: str) -> None:
        self.sagemaker.delete_cluster(ClusterName=name)
        eventually(lambda: not self.sagemaker.list_clusters(NameContains=name)["ClusterSummaries"])

    def delete_all(self) -> None:
        names = [one["ClusterName"] for one in self.sagemaker.list_clusters()["ClusterSummaries"]]
        for name in names:
            self.sagemaker.delete_cluster(ClusterName=name)
        eventually(lambda: not self.sagemaker.list_clusters()["ClusterSummaries"])

    def instances(self, name: str, group: str = "") -> dict[str, str]:
        """Instance id to status."""
        pages = self.sagemaker.get_paginator("list_cluster_nodes").paginate(ClusterName=name)
        nodes = [node for page in pages for node in page["ClusterNodeSummaries"]]
        return {
            node["InstanceId"]: node["InstanceStatus"]["Status"]
            for node in nodes
            if group in ("", node["InstanceGroupName"])
        }

    def all_run(self, name: str) -> bool:
        return set(self.instances(name).values()) == {"Running"}

    def message(self, name: str, instance_id: str) -> str:
        """What the API says of an instance."""
        told = self.sagemaker.describe_cluster_node(ClusterName=name, NodeId=instance_id)["NodeDetails"]
        return str(told["InstanceStatus"].get("Message", ""))

    def node(self, name: str, group: str, index: int = 0) -> Node:
        return self.fleet.node(list(self.instances(name, group))[index])

    def events(self, name: str, kind: str = "") -> list[dict[str, Any]]:
        """What the control plane told of a cluster."""
        arguments = {"logGroupName": f"/holdfast/{name}/events", "logStreamName": "control-plane"}
        try:
            found = self.logs.get_log_events(**arguments, startFromHead=True, limit=10_000)["events"]
        except self.logs.exceptions.ResourceNotFoundException:
            return []
        told = [json.loads(event["message"]) for event in found]
        return [event for event in told if kind in ("", event["kind"])]

    def failures(self, name: str) -> dict[str, str]:
        """Instance id to the evidence of its failure."""
        return {event["node"]: event["evidence"] for event in self.events(name, "node_failed")}

    def script_failed(self, name: str, group: str, instance_id: str) -> str:
        """AWS's message, word for word: "Lifecycle script failure messages" in the developer guide."""
        place = f"/aws/sagemaker/Clusters/{name}/{self.described(name)['ClusterArn'].rpartition('/')[2]}"
        return (
            "Lifecycle scripts did not run successfully. To view lifecycle script logs, visit log group "
            f"\u2018{place}' and log stream \u2018LifecycleConfig/{group}/{instance_id}\u2019. "
            "If you cannot find corresponding lifecycle script logs in CloudWatch, please make sure you follow one of "
            f"the options here: {FAQ}.\u201d"
        )

    def lifecycle_log(self, name: str, group: str, instance_id: str) -> Iterator[str]:
        """What CloudWatch has of one instance's scripts."""
        place = f"/aws/sagemaker/Clusters/{name}/{self.described(name)['ClusterArn'].rpartition('/')[2]}"
        arguments = {"logGroupName": place, "logStreamName": f"LifecycleConfig/{group}/{instance_id}"}
        token: dict[str, str] = {}
        while True:
            try:
                answer = self.logs.get_log_events(**arguments, startFromHead=True, **token)
            except self.logs.exceptions.ResourceNotFoundException:
                return
            yield from (event["message"] for event in answer["events"])
            if not answer["events"]:
                return
            token = {"nextToken": answer["nextForwardToken"]}


@contextmanager
def bad_days(home: Path) -> Iterator[Lab]:
    """A lab that leaves nothing behind."""
    made: Lab | None = None
    try:
        made = Lab(home)
        yield made
    finally:
        if made is not None:
            made.close()
        else:
            Fleet(home=home).close()
