"""Access to a local EKS cluster: tokens of ``aws eks get-token``, access entries, credentials for pods."""

from holdfast.localcloud.kubernetes.access.agent import ADDRESS, PORT, PodIdentityAgent, refusal_of_request
from holdfast.localcloud.kubernetes.access.authorization import (
    Association,
    Attributes,
    Scope,
    allowing,
    attributes_of,
)
from holdfast.localcloud.kubernetes.access.configuration import ApiServerSide, pod_webhook
from holdfast.localcloud.kubernetes.access.identity import StsError, identity_in
from holdfast.localcloud.kubernetes.access.pod_identity import (
    Pod,
    PodIdentity,
    PodIdentityError,
    pod_of,
    session_name,
)
from holdfast.localcloud.kubernetes.access.pods import Additions, patch_of
from holdfast.localcloud.kubernetes.access.reviews import Access, Settings
from holdfast.localcloud.kubernetes.access.server import AccessServer, Certificates
from holdfast.localcloud.kubernetes.access.tokens import TokenError, presigned_request

__all__ = [
    "ADDRESS",
    "PORT",
    "Access",
    "AccessServer",
    "Additions",
    "ApiServerSide",
    "Association",
    "Attributes",
    "Certificates",
    "Pod",
    "PodIdentity",
    "PodIdentityAgent",
    "PodIdentityError",
    "Scope",
    "Settings",
    "StsError",
    "TokenError",
    "allowing",
    "attributes_of",
    "identity_in",
    "patch_of",
    "pod_of",
    "pod_webhook",
    "presigned_request",
    "refusal_of_request",
    "session_name",
]
