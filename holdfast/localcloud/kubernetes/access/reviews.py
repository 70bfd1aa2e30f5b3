"""
Reviews of a local EKS cluster's API server: token, authorization, admission of a pod. Errors deny.

Formats: kubernetes.io, "Webhook Token Authentication", "Webhook Mode", "Dynamic Admission Control".
"""

import base64
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.kubernetes.access.authorization import allowing, attributes_of
from holdfast.localcloud.kubernetes.access.entries import UID, Entries, user_of
from holdfast.localcloud.kubernetes.access.identity import Sts, StsError
from holdfast.localcloud.kubernetes.access.pods import Additions, patch_of
from holdfast.localcloud.kubernetes.access.tokens import TokenError

_log = logging.getLogger(__name__)
Review = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    cluster_name: str
    region: str
    endpoint: str
    """Of the embedded AWS, as this process reaches it."""
    hosts: tuple[str, ...]
    """HOST:PORT of each address of the embedded AWS for which a token may be signed."""
    pod_endpoint: str
    """Of the embedded AWS, as pods reach it. Default: none."""


class Access:
    """Reviews of one cluster. Thread-safe. ``eks``: boto3 client with the rights of the account's owner."""

    def __init__(self, *, settings: Settings, eks: Any) -> None:
        self._settings, self._eks = settings, eks
        self._sts = Sts(endpoint=settings.endpoint, cluster_name=settings.cluster_name, hosts=settings.hosts)
        self._entries = Entries(cluster_name=settings.cluster_name, eks=eks, clock=time.monotonic)

    def authenticate(self, review: Mapping[str, Any]) -> Review:
        try:
            identity = self._sts.identify(str(_spec(review).get("token", "")))
            entry = self._entries.find(identity.canonical_arn)
        except (TokenError, StsError, ClientError, BotoCoreError) as error:
            return _answer(review, {"authenticated": False, "error": _shown(error)})
        user = user_of(entry, identity) if entry is not None else None
        if user is None:
            why = f"no access entry of {self._settings.cluster_name} for {identity.canonical_arn}"
            return _answer(review, {"authenticated": False, "error": why})
        info = {"username": user.username, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
        return _answer(review, {"authenticated": True, "user": info})

    def authorize(self, review: Mapping[str, Any]) -> Review:
        """Allow, or give no opinion; an impersonated user's uid has no policies (EKS user guide, access-policies)."""
        spec = _spec(review)
        extra = spec.get("extra")
        arns = extra.get("canonicalArn") or extra.get("canonicalarn") if isinstance(extra, Mapping) else None
        if not (str(spec.get("uid", "")).startswith(UID) and isinstance(arns, list) and len(arns) == 1):
            return _answer(review, {"allowed": False})
        try:
            entry = self._entries.find(str(arns[0]))
        except (ClientError, BotoCoreError) as error:
            return _answer(review, {"allowed": False, "evaluationError": _shown(error)})
        found = allowing(entry.associations, attributes_of(spec)) if entry is not None else None
        if found is None:
            return _answer(review, {"allowed": False})
        return _answer(review, {"allowed": True, "reason": f"EKS: allowed by {found.policy.name}"})

    def admit(self, review: Mapping[str, Any]) -> Review:
        """Answer an AdmissionReview of a new pod: always admitted, patched if needed."""
        request = review.get("request")
        admission: Mapping[str, Any] = request if isinstance(request, Mapping) else {}
        pod = admission.get("object")
        response: Review = {"uid": admission.get("uid", ""), "allowed": True}
        patch = self._patch(pod, namespace=str(admission.get("namespace", ""))) if isinstance(pod, Mapping) else []
        if patch:
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        return {"apiVersion": review.get("apiVersion"), "kind": "AdmissionReview", "response": response}

    def _patch(self, pod: Mapping[str, Any], *, namespace: str) -> list[dict[str, Any]]:
        spec = pod.get("spec")
        account = str(spec.get("serviceAccountName") or "default") if isinstance(spec, Mapping) else "default"
        additions = Additions(
            region=self._settings.region,
            endpoint=self._settings.pod_endpoint,
            pod_identity=self._has_role(namespace, account),
        )
        return patch_of(pod, additions)

    def _has_role(self, namespace: str, account: str) -> bool:
        where = {"clusterName": self._settings.cluster_name, "namespace": namespace, "serviceAccount": account}
        try:
            return bool(self._eks.list_pod_identity_associations(**where)["associations"])
        except (ClientError, BotoCoreError) as error:
            _log.warning("pod identity of %s/%s: %s", namespace, account, _shown(error))
            return False


def _spec(review: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = review.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _answer(review: Mapping[str, Any], status: Review) -> Review:
    return {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "status": status}


def _shown(error: Exception) -> str:
    return str(error)[:300]
