"""
Role credentials for a pod's service account, as EKS Auth issues them (AssumeRoleForPodIdentity).

Sources, read 2026-11-23: EKS user guide, pod-id-abac for the session tags, pod-id-assign-target-role for the second
role and lifetimes; EKS Auth API reference, AssumeRoleForPodIdentity, for the errors, all of status 400, and the
session's name. The refusal's message is in aws-samples/eks-workshop ("Error when retrieving credentials from
container-role"). The embedded STS judges the role's trust policy.
"""

import datetime
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from holdfast_common import KubernetesError

SERVICE = "pods.eks.amazonaws.com"
SERVICE_HEADER = "X-Holdfast-Service"
LASTS_S, TARGET_LASTS_S = 6 * 3600, 3600
RENEWED_BEFORE = datetime.timedelta(minutes=59)
MOST_KEPT = 4096
LONGEST_NAME = 64
"""Of a session (STS API reference, AssumeRole); how EKS shortens the names within is assumed."""
SUBJECT = "system:serviceaccount:"
POD_NAME, POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"


class PodIdentityError(Exception):
    """EKS Auth's refusal: a code of its API, and a message."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


@dataclass(frozen=True, kw_only=True)
class Pod:
    namespace: str
    service_account: str
    name: str
    uid: str


Reviewer = Callable[[str], Mapping[str, Any]]
"""From a token to the status of its TokenReview for the audience pods.eks.amazonaws.com. Raises KubernetesError."""


class PodIdentity:
    """Credentials for the pods of one cluster, cached per pod. Thread-safe. ``client`` makes boto3 clients."""

    def __init__(self, *, cluster_name: str, region: str, client: Callable[..., Any], review: Reviewer) -> None:
        self._cluster, self._region, self._client, self._review = cluster_name, region, client, review
        self._eks, self._sts = client("eks"), client("sts")
        self._sts.meta.events.register("before-call.sts.AssumeRole", _as_service)
        self._arn = ""
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str, str], Mapping[str, Any]] = {}

    def credentials(self, token: str) -> dict[str, str]:
        """Return the answer of a container credentials provider. Raises: PodIdentityError."""
        pod = self._pod(token)
        try:
            association = self._association(pod)
            made = self._session(pod, association)
        except (ClientError, BotoCoreError) as error:
            raise _refusal(error) from None
        return {
            "AccessKeyId": made["AccessKeyId"],
            "SecretAccessKey": made["SecretAccessKey"],
            "Token": made["SessionToken"],
            "AccountId": association["roleArn"].split(":")[4],
            "Expiration": made["Expiration"].astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def _pod(self, token: str) -> Pod:
        try:
            status = self._review(token)
        except KubernetesError:
            raise PodIdentityError("ServiceUnavailableException", "the cluster does not answer", status=503) from None
        pod = pod_of(status)
        if pod is None:
            raise PodIdentityError("InvalidTokenException", "The service account token is not valid.")
        return pod

    def _association(self, pod: Pod) -> Mapping[str, Any]:
        where = {"clusterName": self._cluster, "namespace": pod.namespace, "serviceAccount": pod.service_account}
        listed = self._eks.list_pod_identity_associations(**where)["associations"]
        if not listed:
            message = f"No association found for {pod.namespace}/{pod.service_account} in cluster {self._cluster}"
            raise PodIdentityError("ResourceNotFoundException", message)
        found: Mapping[str, Any] = self._eks.describe_pod_identity_association(
            clusterName=self._cluster, associationId=listed[0]["associationId"]
        )["association"]
        return found

    def _session(self, pod: Pod, association: Mapping[str, Any]) -> Mapping[str, Any]:
        key = (pod.uid, association["associationId"], str(association["modifiedAt"]))
        with self._lock:
            known = self._kept.get(key)
        if known is not None and known["Expiration"] - datetime.datetime.now(datetime.UTC) > RENEWED_BEFORE:
            return known
        made = self._assumed(pod, association)
        with self._lock:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = made
        return made

    def _assumed(self, pod: Pod, association: Mapping[str, Any]) -> Mapping[str, Any]:
        target, policy = association.get("targetRoleArn"), association.get("policy")
        tags = {} if association.get("disableSessionTags") else self._tags(pod)
        common: dict[str, Any] = {"RoleSessionName": session_name(self._cluster, pod.name)}
        if tags:
            common["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
            common["TransitiveTagKeys"] = list(tags)
        limited = {"Policy": policy} if policy else {}
        first = self._sts.assume_role(
            RoleArn=association["roleArn"], DurationSeconds=LASTS_S, **common, **({} if target else limited)
        )["Credentials"]
        if not target:
            return dict(first)
        chained = self._client(
            "sts",
            aws_access_key_id=first["AccessKeyId"],
            aws_secret_access_key=first["SecretAccessKey"],
            aws_session_token=first["SessionToken"],
        )
        external = {} if tags or not association.get("externalId") else {"ExternalId": association["externalId"]}
        second = chained.assume_role(RoleArn=target, DurationSeconds=TARGET_LASTS_S, **common, **limited, **external)
        return dict(second["Credentials"])

    def _tags(self, pod: Pod) -> dict[str, str]:
        if not self._arn:
            self._arn = self._eks.describe_cluster(name=self._cluster)["cluster"]["arn"]
        return {
            "eks-cluster-arn": self._arn,
            "eks-cluster-name": self._cluster,
            "kubernetes-namespace": pod.namespace,
            "kubernetes-service-account": pod.service_account,
            "kubernetes-pod-name": pod.name,
            "kubernetes-pod-uid": pod.uid,
        }


def pod_of(status: Mapping[str, Any]) -> Pod | None:
    """Return the pod in a TokenReview's status; None for other tokens and audiences."""
    user = status.get("user") or {}
    namespace, _, account = str(user.get("username", "")).removeprefix(SUBJECT).partition(":")
    extra = user.get("extra") or {}
    name, uid = (next(iter(extra.get(key) or ()), "") for key in (POD_NAME, POD_UID))
    good = status.get("authenticated") is True and SERVICE in (status.get("audiences") or ())
    if not (good and str(user.get("username", "")).startswith(SUBJECT) and namespace and account and name and uid):
        return None
    return Pod(namespace=namespace, service_account=account, name=str(name), uid=str(uid))


def session_name(cluster: str, pod: str) -> str:
    """Return ``eks-CLUSTER-POD-UUID``, with both names shortened to the limit."""
    unique = str(uuid.uuid4())
    room = (LONGEST_NAME - len(f"eks---{unique}")) // 2
    return f"eks-{cluster[:room]}-{pod[:room]}-{unique}"


def _as_service(*, params: dict[str, Any], **_: Any) -> None:
    params["headers"][SERVICE_HEADER] = SERVICE


def _refusal(error: ClientError | BotoCoreError) -> PodIdentityError:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    if code.startswith("AccessDenied"):
        message = "Unauthorized Exception! EKS does not have permissions to assume the associated role."
        return PodIdentityError("AccessDeniedException", message)
    return PodIdentityError("InternalServerException", "the embedded AWS does not answer", status=500)
