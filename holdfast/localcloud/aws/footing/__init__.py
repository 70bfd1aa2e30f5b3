"""Prerequisites of HyperPod nodes: rights of their role, routes of their network."""

from holdfast.localcloud.aws.footing.network import Ways
from holdfast.localcloud.aws.footing.role import check_role

__all__ = ["Ways", "check_role"]
