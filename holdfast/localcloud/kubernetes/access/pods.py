"""
JSON patch of a new pod: Pod Identity and the embedded AWS. Pure.

Source: EKS user guide, pod-id-how-it-works (read 2026-11-23), and aws/amazon-eks-pod-identity-webhook,
pkg/handler/handler.go at 3bf80a3 (2026-08-11), with its annotations; STS's regional settings as EKS's webhook adds them
(aws-samples/eks-workshop-v2, fundamentals/storage or security, pod identity). Not AWS's: ``AWS_ENDPOINT_URL``, without
which an SDK in a pod would call real AWS.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AUDIENCE = "pods.eks.amazonaws.com"
CREDENTIALS_URI = "http://169.254.170.23/v1/credentials"
MOUNT = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"
VOLUME = "eks-pod-identity-token"
TOKEN_FILE = f"{MOUNT}/{VOLUME}"
LONGEST_S, SHORTEST_S = 86400, 600
DOMAIN = "eks.amazonaws.com"
MIRROR = "kubernetes.io/config.mirror"
"""Of pods that a kubelet runs from a file and only shows: nothing of them is changed."""

Patch = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Additions:
    region: str
    endpoint: str
    """Of the embedded AWS. Default: none."""
    pod_identity: bool
    """True if its service account has a role."""


def patch_of(pod: Mapping[str, Any], additions: Additions) -> Patch:
    meta, spec = _map(pod.get("metadata")), _map(pod.get("spec"))
    annotations = _map(meta.get("annotations"))
    if MIRROR in annotations:
        return []
    skipped = _skipped(annotations)
    patch: Patch = []
    for kind in ("initContainers", "containers"):
        before = [each for each in _list(spec.get(kind)) if isinstance(each, Mapping)]
        after = [each if each.get("name") in skipped else _container(each, additions) for each in before]
        if after != before:
            patch.append({"op": "add", "path": f"/spec/{kind}", "value": after})
    if additions.pod_identity:
        patch += _volume(spec, annotations) + _label(meta)
    return patch


def _container(container: Mapping[str, Any], additions: Additions) -> dict[str, Any]:
    env = [each for each in _list(container.get("env")) if isinstance(each, Mapping)]
    known = {each.get("name") for each in env}
    added: list[tuple[str, str]] = []
    if additions.pod_identity:
        if "AWS_STS_REGIONAL_ENDPOINTS" not in known:
            added.append(("AWS_STS_REGIONAL_ENDPOINTS", "regional"))
        if not known & {"AWS_REGION", "AWS_DEFAULT_REGION"}:
            added += [("AWS_DEFAULT_REGION", additions.region), ("AWS_REGION", additions.region)]
        if not known & {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}:
            added.append(("AWS_CONTAINER_CREDENTIALS_FULL_URI", CREDENTIALS_URI))
            added.append(("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", TOKEN_FILE))
    if additions.endpoint and "AWS_ENDPOINT_URL" not in known:
        added.append(("AWS_ENDPOINT_URL", additions.endpoint))
    result = dict(container)
    if added:
        result["env"] = [*env, *({"name": name, "value": value} for name, value in added)]
    mounts = _list(container.get("volumeMounts"))
    if additions.pod_identity and not any(_map(each).get("name") == VOLUME for each in mounts):
        result["volumeMounts"] = [*mounts, {"name": VOLUME, "readOnly": True, "mountPath": MOUNT}]
    return result


def _volume(spec: Mapping[str, Any], annotations: Mapping[str, Any]) -> Patch:
    volumes = _list(spec.get("volumes"))
    if any(_map(each).get("name") == VOLUME for each in volumes):
        return []
    token = {"audience": AUDIENCE, "expirationSeconds": _expiration(annotations), "path": VOLUME}
    volume = {"name": VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}
    if volumes:
        return [{"op": "add", "path": "/spec/volumes/0", "value": volume}]
    return [{"op": "add", "path": "/spec/volumes", "value": [volume]}]


def _label(meta: Mapping[str, Any]) -> Patch:
    if isinstance(meta.get("labels"), Mapping):
        return [{"op": "add", "path": f"/metadata/labels/{DOMAIN}~1pod-identity", "value": "enabled"}]
    return [{"op": "add", "path": "/metadata/labels", "value": {f"{DOMAIN}/pod-identity": "enabled"}}]


def _expiration(annotations: Mapping[str, Any]) -> int:
    """Return seconds, without the webhook's jitter."""
    text = str(annotations.get(f"{DOMAIN}/token-expiration", ""))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return LONGEST_S
    return max(SHORTEST_S, int(text))


def _skipped(annotations: Mapping[str, Any]) -> set[str]:
    text = str(annotations.get(f"{DOMAIN}/skip-containers", ""))
    try:
        return set(next(csv.reader([text], strict=True), []))
    except csv.Error:
        return set()


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
