"""
Login to the API server of an EKS cluster.

HyperPod names the EKS cluster, EKS its endpoint and authority, and STS signs the token.
"""

import base64
import datetime
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.deployed.aws import AwsError
from holdfast.cli.deployed.cluster import describe_cluster
from holdfast.cli.deployed.sessions import Context, Session
from holdfast.cli.kubernetes import TOKEN_LASTS, kubeconfig, token
from holdfast.cli.terminal import CommandError
from holdfast.localcloud.home import Keys, write_private
from holdfast_common import KubernetesClient, KubernetesError

ADMINISTRATOR = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
SESSION_NAME = "holdfast"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")


@dataclass(frozen=True, kw_only=True)
class EksCluster:
    name: str
    arn: str
    version: str
    """Recorded by EKS, such as 1.34."""
    endpoint: str
    authority_data: str
    """Base64 of the certificate of its authority."""


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    client: KubernetesClient
    cluster: EksCluster
    runs: str
    """Version of the API server, such as 1.20.2."""


_signed_in: dict[Session, tuple[float, SignedIn]] = {}
"""Until when, in seconds of the monotonic clock."""


def sign_in(context: Context) -> SignedIn:
    """
    Log in as the caller or with an administrator role. Raises: CommandError: no cluster, or it refuses all of them.
    """
    until, known = _signed_in.get(context.session, (0.0, None))
    if known is not None and time.monotonic() < until:
        return known
    cluster = eks_cluster(context)
    who, runs = _admitted(context, cluster)
    found = SignedIn(client=_client(cluster, _token(context, cluster, who)), cluster=cluster, runs=runs)
    _signed_in[context.session] = (time.monotonic() + TOKEN_LASTS.total_seconds() / 2, found)
    return found


def eks_cluster(context: Context) -> EksCluster:
    """Describe the EKS cluster. Raises: CommandError: Slurm orchestrates, or the cluster is a record."""
    described, _ = describe_cluster(context)
    arn = described.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn", "")
    session = context.session
    if not arn:
        raise CommandError(f"cluster {session.cluster_name} is not under EKS; see: holdfast status")
    found = context.ask("eks", "DescribeCluster", name=arn.rpartition("/")[2])["cluster"]
    endpoint = found.get("endpoint") or ""
    if not endpoint:
        raise CommandError(f"cluster {found['name']} of EKS is {found['status']} and has no endpoint yet")
    if session.cloud == "embedded" and not endpoint.startswith("https://127.0.0.1:"):
        raise CommandError(
            f"nothing runs behind cluster {found['name']} of EKS, it is a record only; for a real one: "
            f"holdfast kubernetes build, holdfast down, holdfast up {session.environment}"
        )
    return EksCluster(
        name=found["name"],
        arn=arn,
        version=found["version"],
        endpoint=endpoint,
        authority_data=found["certificateAuthority"]["data"],
    )


def credential(context: Context) -> tuple[str, datetime.datetime]:
    """Return a token and its expiry. Raises: CommandError."""
    cluster = eks_cluster(context)
    who, _ = _admitted(context, cluster)
    return _token(context, cluster, who), datetime.datetime.now(datetime.UTC) + TOKEN_LASTS


def write_kubeconfig(context: Context) -> Path:
    """Write a kubeconfig for the local cloud's cluster. Raises: CommandError."""
    cluster = eks_cluster(context)
    home = context.local.home
    text = kubeconfig(
        name=cluster.arn,
        endpoint=cluster.endpoint,
        authority_data=cluster.authority_data,
        command=[
            str(Path(sys.prefix) / "bin" / "holdfast"),
            *("kubernetes", "token", "--environment", context.session.environment),
        ],
        environment={"HOLDFAST_HOME": str(home)},
    )
    path = kubeconfig_path(home, environment=context.session.environment)
    path.parent.mkdir(exist_ok=True)
    write_private(path, text.encode())
    return path


def kubeconfig_path(home: Path, *, environment: str) -> Path:
    return home / "kubeconfigs" / environment


def _admitted(context: Context, cluster: EksCluster) -> tuple[Keys, str]:
    """Return the first keys that the cluster accepts, and its version."""
    tried = []
    for name, who in _candidates(context, cluster):
        version = _version(_client(cluster, _token(context, cluster, who)))
        if version:
            return who, version
        tried.append(name)
    raise CommandError(
        f"cluster {cluster.name} of EKS does not let in {' nor '.join(tried)}; give the role or user an access entry, "
        "or the right to assume a role of eks.admin_role_arns"
    )


def _version(client: KubernetesClient) -> str:
    try:
        return str(client.get("/version")["gitVersion"]).removeprefix("v")
    except KubernetesError as error:
        if error.code == 401:
            return ""
        raise CommandError(str(error), exit_code=1) from None


def _candidates(context: Context, cluster: EksCluster) -> Iterator[tuple[str, Keys]]:
    yield "you", context.keys()
    try:
        listed = context.ask("eks", "ListAccessEntries", clusterName=cluster.name, associatedPolicyArn=ADMINISTRATOR)
    except AwsError:
        return
    for arn in filter(_ROLE.fullmatch, listed["accessEntries"]):
        keys = _assumed(context, arn)
        if keys is not None:
            yield f"role {arn.rpartition('/')[2]}", keys


def _assumed(context: Context, arn: str) -> Keys | None:
    try:
        answer = context.ask("sts", "AssumeRole", RoleArn=arn, RoleSessionName=SESSION_NAME)["Credentials"]
    except AwsError:
        return None
    return Keys(
        access_key_id=answer["AccessKeyId"],
        secret_access_key=answer["SecretAccessKey"],
        session_token=answer["SessionToken"],
    )


def _token(context: Context, cluster: EksCluster, who: Keys) -> str:
    return token(who, cluster=cluster.name, region=context.session.region, sts_endpoint=context.sts_endpoint)


def _client(cluster: EksCluster, bearer: str) -> KubernetesClient:
    authority = base64.b64decode(cluster.authority_data).decode()
    return KubernetesClient(endpoint=cluster.endpoint, authority=authority, token=bearer)
