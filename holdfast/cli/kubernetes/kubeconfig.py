"""
kubeconfig for an EKS cluster, and the output of its exec plugin. Pure.

As ``aws eks update-kubeconfig`` writes it, with ``holdfast kubernetes token`` in place of ``aws eks get-token``.
Source: Kubernetes' "Authenticating", "client-go credential plugins"; kubectl 1.20 and newer support v1beta1.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

EXEC_VERSION = "client.authentication.k8s.io/v1beta1"


def kubeconfig(
    *, name: str, endpoint: str, authority_data: str, command: Sequence[str], environment: Mapping[str, str]
) -> str:
    """
    Return the file's text, JSON.

    Args:
        name: Of cluster, user and context.
        authority_data: Base64 of the authority's certificate.
        command: Prints a token.
        environment: Variables for it, in addition to kubectl's.
    """
    program = {
        "apiVersion": EXEC_VERSION,
        "command": command[0],
        "args": list(command[1:]),
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "interactiveMode": "Never",
    }
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": endpoint, "certificate-authority-data": authority_data}},
        ],
        "users": [{"name": name, "user": {"exec": program}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(config, indent=1) + "\n"


def exec_credential(token: str, *, expires_at: datetime.datetime) -> dict[str, Any]:
    """Return the output of kubectl's plugin; kubectl runs it again after ``expires_at``."""
    stamp = expires_at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": EXEC_VERSION,
        "kind": "ExecCredential",
        "spec": {},
        "status": {"expirationTimestamp": stamp, "token": token},
    }
