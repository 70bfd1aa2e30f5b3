import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""An object of the API."""
LOOPBACK = "https://127.0.0.1:"
"""Prefix of the endpoint of a cluster on this machine."""


@dataclass(frozen=True, kw_only=True)
class EksCluster:
    arn: str
    name: str
    status: str
    """CREATING, ACTIVE, UPDATING, DELETING or FAILED."""
    version: str
    """Recorded version, such as 1.34; the binaries' version runs."""
    endpoint: str
    services: str
    issuer: str
    subnets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of its control plane and folder, from ARN and issuer: an ARN can be reused."""
        return "eks-" + hashlib.sha256(f"{self.arn} {self.issuer}".encode()).hexdigest()[:12]

    @property
    def is_real(self) -> bool:
        """True if a control plane runs or will run."""
        return self.status == "CREATING" or self.endpoint.startswith(LOOPBACK)


def parse_eks_cluster(described: Mapping[str, Any]) -> EksCluster:
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
