"""AWS APIs of the control plane, and its private plane. Answers become values of ``model``; nothing is decided here."""

import json
import logging
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from holdfast.localcloud.home import Keys, signed_headers
from holdfast.localcloud.hyperpod.model import (
    LUSTRE,
    OPENZFS,
    Association,
    Cluster,
    FileSystem,
    address_of,
    parse_association,
    parse_cluster,
    parse_file_system,
)
from holdfast.localcloud.kubernetes import ClusterState, EksCluster, parse_eks_cluster
from holdfast.localcloud.supervision import Batcher

DEFAULT_REGION = "us-west-2"
WATCH_TIMEOUT_S = 10
S3_ATTEMPTS = 3

_log = logging.getLogger(__name__)


class Aws:
    """Clients of one endpoint, shared by all threads."""

    def __init__(self, *, endpoint: str, region: str, keys: Keys) -> None:
        session = boto3.session.Session(region_name=region, **keys.boto)
        config = Config(
            connect_timeout=2,
            read_timeout=20,
            retries={"total_max_attempts": 2},
            max_pool_connections=32,
            proxies={},
            s3={"addressing_style": "path"},
        )
        # Boots wait for S3: the mode and the number of attempts are those of the SDK's "standard" retries.
        patient = config.merge(Config(retries={"mode": "standard", "total_max_attempts": S3_ATTEMPTS}))

        def make(name: str) -> Any:
            return session.client(name, endpoint_url=endpoint, config=patient if name == "s3" else config)

        self.client: Callable[..., Any] = partial(_client, endpoint=endpoint, region=region, keys=keys, config=config)
        """Makes one more client of a service, with credentials in boto3's words or the owner's."""
        self.sagemaker = make("sagemaker")
        self.fsx = make("fsx")
        self.s3 = make("s3")
        self.logs = make("logs")
        self.ec2 = make("ec2")
        self.sts = make("sts")
        self.eks = make("eks")

    def clusters(self) -> list[Cluster]:
        pages = self.sagemaker.get_paginator("list_clusters").paginate()
        names = [summary["ClusterArn"] for page in pages for summary in page["ClusterSummaries"]]
        found = (self._cluster(name) for name in names)
        return [cluster for cluster in found if cluster is not None]

    def _cluster(self, name: str) -> Cluster | None:
        try:
            described = self.sagemaker.describe_cluster(ClusterName=name)
            pages = self.sagemaker.get_paginator("list_cluster_nodes").paginate(
                ClusterName=name, PaginationConfig={"PageSize": 100}
            )
            nodes = [summary for page in pages for summary in page["ClusterNodeSummaries"]]
        except ClientError as error:
            if error.response["Error"]["Code"] in ("ResourceNotFound", "ResourceNotFoundException"):
                return None
            raise
        return parse_cluster(described, nodes=[(summary, self._address(name, summary)) for summary in nodes])

    def _address(self, cluster: str, summary: Mapping[str, Any]) -> str:
        address = address_of(summary.get("PrivateDnsHostname", ""))
        if address is None:
            node = self.sagemaker.describe_cluster_node(ClusterName=cluster, NodeId=summary["InstanceId"])
            address = str(node["NodeDetails"]["PrivatePrimaryIp"])
        return address

    def eks_clusters(self) -> list[EksCluster]:
        pages = self.eks.get_paginator("list_clusters").paginate()
        found = (self._eks_cluster(name) for page in pages for name in page["clusters"])
        return [cluster for cluster in found if cluster is not None]

    def _eks_cluster(self, name: str) -> EksCluster | None:
        try:
            return parse_eks_cluster(self.eks.describe_cluster(name=name)["cluster"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return None
            raise

    def place_of(self, subnets: Sequence[str]) -> tuple[str, str]:
        """Return the VPC's address range of these subnets, and the zone of the first."""
        described = self.ec2.describe_subnets(SubnetIds=[subnets[0]])["Subnets"][0]
        vpc = self.ec2.describe_vpcs(VpcIds=[described["VpcId"]])["Vpcs"][0]
        return str(vpc["CidrBlock"]), str(described["AvailabilityZone"])

    def file_systems(self) -> list[FileSystem]:
        pages = self.fsx.get_paginator("describe_file_systems").paginate()
        described = [one for page in pages for one in page["FileSystems"]]
        return [parse_file_system(one) for one in described if one.get("FileSystemType", LUSTRE) in (LUSTRE, OPENZFS)]

    def associations(self) -> list[Association]:
        found: list[Association | None] = []
        token: dict[str, str] = {}
        while True:
            answer = self.fsx.describe_data_repository_associations(**token)
            found += [parse_association(one) for one in answer["Associations"]]
            if not answer.get("NextToken"):
                return [one for one in found if one is not None]
            token = {"NextToken": answer["NextToken"]}


def _client(name: str, *, endpoint: str, region: str, keys: Keys, config: Config, **credentials: str) -> Any:
    session = boto3.session.Session(region_name=region, **(credentials or keys.boto))
    return session.client(name, endpoint_url=endpoint, config=config)


@dataclass(frozen=True, kw_only=True)
class Report:
    arn: str
    cluster_status: str = ""
    failure_message: str | None = None
    nodes: tuple[Mapping[str, object], ...] = ()
    events: tuple[Mapping[str, str], ...] = field(default=())

    def body(self) -> dict[str, object]:
        body: dict[str, object] = {"cluster_arn": self.arn}
        if self.nodes:
            body["nodes"] = list(self.nodes)
        if self.events:
            body["events"] = list(self.events)
        if self.cluster_status:
            body["cluster_status"] = self.cluster_status
        if self.failure_message is not None:
            body["failure_message"] = self.failure_message
        return body


class PlaneClient:
    def __init__(self, *, endpoint: str, region: str, keys: Keys) -> None:
        self._region, self._keys = region, keys
        self._url = endpoint.rstrip("/") + "/_holdfast/hyperpod"
        self._reports = Batcher(self._post_all)

    def watch(self, *, version: int, kubernetes: str = "", timeout_s: float = WATCH_TIMEOUT_S) -> int:
        """Wait for another version of the records, or a timeout. ``kubernetes``: version for real EKS clusters."""
        query = f"version={version}&timeout_s={timeout_s:g}&kubernetes={kubernetes}"
        answer = self._call(f"watch?{query}", timeout_s=timeout_s + 5)
        return int(answer["version"])

    def report_control_plane(self, became: ClusterState) -> None:
        try:
            self._call("kubernetes", body=json.dumps(asdict(became)).encode())
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            _log.info("EKS no longer has %s", became.arn)

    def requests(self) -> dict[str, str]:
        return {one["instance_id"]: one["action"] for one in self._call("requests")["requests"]}

    def report(self, report: Report) -> None:
        """Send ``report``; concurrent reports are batched."""
        self._reports.submit(report)

    def _post_all(self, reports: list[Report]) -> None:
        for merged in _merged(reports):
            if not self._post(merged):
                for report in reports:
                    if report.arn == merged.arn and not self._post(report):
                        _log.info("report dropped: the service no longer has its object: %s", report.body())

    def _post(self, report: Report) -> bool:
        try:
            self._call("report", body=json.dumps(report.body()).encode())
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _call(self, path: str, *, body: bytes | None = None, timeout_s: float = 20.0) -> dict[str, Any]:
        url, method = f"{self._url}/{path}", "GET" if body is None else "POST"
        signature = signed_headers(
            self._keys, method=method, url=url, region=self._region, service="holdfast", body=body or b""
        )
        headers = {"Content-Type": "application/json", **signature}
        request = urllib.request.Request(url, data=body, headers=headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
                parsed: dict[str, Any] = json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            error.close()
            raise
        return parsed


def _merged(reports: list[Report]) -> list[Report]:
    merged: list[Report] = []
    for report in reports:
        last = merged[-1] if merged else None
        if last and last.arn == report.arn and not last.cluster_status and not report.cluster_status:
            merged[-1] = Report(arn=last.arn, nodes=last.nodes + report.nodes, events=last.events + report.events)
        else:
            merged.append(report)
    return merged


class Waker:
    """Wakes the control loop; remembers calls between waits."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        self._event.set()

    def wait(self, *, timeout_s: float) -> None:
        self._event.wait(timeout_s)
        self._event.clear()
