"""
What kubectl is told so that it reaches a cluster of EKS: a kubeconfig, and the answer of its exec plugin. Pure.

As ``aws eks update-kubeconfig`` writes it, with ``holdfast kubernetes token`` in place of ``aws eks get-token``.
Source: Kubernetes' "Authenticating", "client-go credential plugins"; v1beta1 is what kubectl 1.20 and newer take.
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
    The text of the file; JSON is YAML.

    Args:
        name: Of cluster, user and context.
        authority_data: Base64 of the authority's certificate, as EKS tells it.
        command: Prints a token.
        environment: What it needs beside kubectl's own.
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
    """What kubectl reads from its plugin; it asks again when the time is over."""
    stamp = expires_at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": EXEC_VERSION,
        "kind": "ExecCredential",
        "spec": {},
        "status": {"expirationTimestamp": stamp, "token": token},
    }
