"""EKS clusters as EKS describes them, as values. Asking for them is for whoever has a client."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""An object of the API."""
LOOPBACK = "https://127.0.0.1:"
"""How the endpoint of a cluster begins that runs on this machine."""


@dataclass(frozen=True, kw_only=True)
class EksCluster:
    """One cluster of EKS."""

    arn: str
    name: str
    status: str
    """CREATING, ACTIVE, UPDATING, DELETING or FAILED."""
    version: str
    """What is recorded, such as 1.34; what runs is the binaries'."""
    endpoint: str
    services: str
    issuer: str
    subnets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names its control plane and its folder: of the ARN, which may come again with another content."""
        return "eks-" + hashlib.sha256(f"{self.arn} {self.issuer}".encode()).hexdigest()[:12]

    @property
    def is_real(self) -> bool:
        """A control plane runs for it, or is to."""
        return self.status == "CREATING" or self.endpoint.startswith(LOOPBACK)


def parse_eks_cluster(described: Mapping[str, Any]) -> EksCluster:
    """DescribeCluster's ``cluster``."""
    return EksCluster(
        arn=described["arn"],
        name=described["name"],
        status=described["status"],
        version=described["version"],
        endpoint=described.get("endpoint", ""),
        services=described["kubernetesNetworkConfig"]["serviceIpv4Cidr"],
        issuer=described["identity"]["oidc"]["issuer"],
        subnets=tuple(described["resourcesVpcConfig"]["subnetIds"]),
    )
