"""Waiting for a HyperPod cluster's nodes in Kubernetes: what is installed before the first is there stays degraded."""

import base64
import json
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from ._cluster import Cluster
from ._release import Outcome

RESOURCE_TYPE = "Custom::HoldfastNodes"
LABEL = "sagemaker.amazonaws.com/cluster-name"
"""What HyperPod says on its nodes (awslabs/awsome-distributed-ai 95b939c, wait-for-hyperpod-nodes.sh)."""
PAUSE_S = 15
MARGIN_S = 60
"""Of the function's time, for the answer."""
REQUEST_TIMEOUT_S = 30
NONE_YET = "none yet"

CountNodes = Callable[[str], int]
"""How many nodes of a HyperPod cluster are ready."""


def wait(event: Mapping[str, Any], *, count: CountNodes, left_s: Callable[[], float]) -> Outcome:
    """
    Wait for a first node that is ready, for as long as this call has time.

    A resource that is not the last of its row leaves the waiting to the next one: a function ends after 15 minutes, and
    nodes with accelerators take longer. It fails where Kubernetes has not answered once, and at once where its
    certificate is not trusted: neither is a matter of nodes.
    """
    properties = event.get("ResourceProperties", {})
    name = str(properties.get("ClusterName", ""))
    physical_id = str(event.get("PhysicalResourceId", f"nodes/{name}"))
    if event["RequestType"] == "Delete":
        return Outcome(physical_id=physical_id)
    if not name:
        return Outcome(physical_id=physical_id, reason="no property 'ClusterName'")
    seen, is_answered = NONE_YET, False
    while left_s() > MARGIN_S:
        before = seen
        try:
            if count(name) > 0:
                return Outcome(physical_id=physical_id)
            seen, is_answered = NONE_YET, True
        except Exception as error:  # noqa: BLE001 - one that is not told leaves the stack waiting for this function
            seen = f"the last question failed: {error or type(error).__name__}"
            if _is_distrust(error):
                break
        if seen != before:
            print(json.dumps({"waiting": physical_id, "seen": seen}))
        time.sleep(min(PAUSE_S, max(left_s() - MARGIN_S, 0)))
    if properties.get("Last") != "true" and (is_answered or seen == NONE_YET):
        return Outcome(physical_id=physical_id)
    return Outcome(
        physical_id=physical_id,
        reason=f"no node of HyperPod cluster {name} is ready in Kubernetes ({seen}); look at its events and at the "
        f"logs of its nodes in /aws/sagemaker/Clusters/{name}; for scarce capacity set install_on_nodes to false",
    )


def count_ready(cluster: Cluster, *, token: str, name: str) -> int:
    """Ask the Kubernetes API, which needs neither kubectl nor a way to any service of AWS."""
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster.certificate_authority).decode())
    # As holdfast_common.kubernetes_trust, which this function has not: EKS's authorities may have no key identifiers.
    trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
    request = urllib.request.Request(  # noqa: S310 - the endpoint of an EKS cluster begins with https
        f"{cluster.endpoint}/api/v1/nodes?labelSelector={LABEL}%3D{name}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S, context=trusted) as response:  # noqa: S310
        return sum(is_ready(node) for node in json.load(response)["items"])


def _is_distrust(error: Exception) -> bool:
    """Return True for a certificate that is not trusted; urllib puts its own exception around that."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in (error, getattr(error, "reason", None)))


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether a node says so itself."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
