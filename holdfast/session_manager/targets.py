import re
from dataclasses import dataclass

_FORM = re.compile(r"sagemaker-cluster:([a-z0-9]{12})_([a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})-(i-[a-f0-9]{8,17})")


@dataclass(frozen=True, kw_only=True)
class ClusterTarget:
    """Target of a HyperPod node (SageMaker guide, "Accessing your cluster nodes")."""

    cluster_id: str
    """Last part of the cluster's ARN."""
    group: str
    instance_id: str

    def __str__(self) -> str:
        return f"sagemaker-cluster:{self.cluster_id}_{self.group}-{self.instance_id}"

    @staticmethod
    def parse(text: str) -> "ClusterTarget | None":
        found = _FORM.fullmatch(text)
        return ClusterTarget(cluster_id=found[1], group=found[2], instance_id=found[3]) if found else None
