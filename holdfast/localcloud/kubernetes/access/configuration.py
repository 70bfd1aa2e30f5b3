"""
API server's configuration for the access server: flags and the files that they name. Pure.

Source: kubernetes.io, "Webhook Token Authentication", "Webhook Mode", "Dynamic Admission Control" ("Authenticate
apiservers"), read 2026-11-23; flags of kube-apiserver 1.20. EKS's webhook for pods has failurePolicy Ignore
(aws/amazon-eks-pod-identity-webhook, deploy/mutatingwebhook.yaml at 3bf80a3, 2026-08-11).
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.localcloud.kubernetes.access.server import ADMIT, AUTHENTICATE, AUTHORIZE, INDEX
from holdfast.localcloud.kubernetes.older_server import COMPLETIONS_LABEL

WEBHOOK = "pod-identity-webhook"
KEPT = "5s"
"""Cache time of reviews in the API server. Its defaults, 2 and 5 minutes, would outlast every change of an entry."""


@dataclass(frozen=True, kw_only=True)
class ApiServerSide:
    address: str
    """HOST:PORT, of which the host is in the access server's certificate."""
    authority: Path
    certificate: Path
    key: Path
    """The API server's own, as a client."""
    directory: Path
    """Folder of `documents`."""

    def flags(self) -> list[str]:
        return [
            f"--authentication-token-webhook-config-file={self.directory}/authenticate.json",
            "--authentication-token-webhook-version=v1",
            f"--authentication-token-webhook-cache-ttl={KEPT}",
            "--authorization-mode=Node,RBAC,Webhook",
            f"--authorization-webhook-config-file={self.directory}/authorize.json",
            "--authorization-webhook-version=v1",
            f"--authorization-webhook-cache-authorized-ttl={KEPT}",
            f"--authorization-webhook-cache-unauthorized-ttl={KEPT}",
            f"--admission-control-config-file={self.directory}/admission.json",
        ]

    def documents(self) -> Mapping[str, str]:
        """Return file name in the directory -> content."""
        webhooks = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": f"{self.directory}/pods.json",
        }
        admission = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "MutatingAdmissionWebhook", "configuration": webhooks}],
        }
        # The user is found by the webhook's host and port.
        pods = {"apiVersion": "v1", "kind": "Config", "users": [{"name": self.address, "user": self._user()}]}
        return {
            "authenticate.json": json.dumps(self._kubeconfig(AUTHENTICATE)),
            "authorize.json": json.dumps(self._kubeconfig(AUTHORIZE)),
            "admission.json": json.dumps(admission),
            "pods.json": json.dumps(pods),
        }

    def _kubeconfig(self, path: str) -> dict[str, Any]:
        cluster = {"server": f"https://{self.address}{path}", "certificate-authority": str(self.authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "access", "cluster": cluster}],
            "users": [{"name": "api-server", "user": self._user()}],
            "contexts": [{"name": "access", "context": {"cluster": "access", "user": "api-server"}}],
            "current-context": "access",
        }

    def _user(self) -> dict[str, str]:
        return {"client-certificate": str(self.certificate), "client-key": str(self.key)}


def pod_webhook(*, address: str, authority_pem: bytes) -> dict[str, Any]:
    """Return the MutatingWebhookConfiguration to apply to a ready API server."""

    def hook(name: str, path: str, label: str, operator: str, **more: str) -> dict[str, Any]:
        return {
            "name": name,
            "clientConfig": {
                "url": f"https://{address}{path}",
                "caBundle": base64.b64encode(authority_pem).decode(),
            },
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "objectSelector": {"matchExpressions": [{"key": label, "operator": operator}]},
            "timeoutSeconds": 10,
            "admissionReviewVersions": ["v1", "v1beta1"],
            **more,
        }

    eks = {"failurePolicy": "Ignore", "sideEffects": "None", "reinvocationPolicy": "IfNeeded"}
    # A pod without its index would do the work of another one.
    own = {"failurePolicy": "Fail", "sideEffects": "NoneOnDryRun"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK},
        "webhooks": [
            hook(
                "iam-for-pods.amazonaws.com",
                ADMIT,
                "eks.amazonaws.com/skip-pod-identity-webhook",
                "DoesNotExist",
                **eks,
            ),
            hook("indexes.holdfast.dev", INDEX, COMPLETIONS_LABEL, "Exists", **own),
        ],
    }
