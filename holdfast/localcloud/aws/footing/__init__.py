"""Prerequisites of HyperPod nodes: rights of their role, routes of their network."""

from holdfast.localcloud.aws.footing.network import SubnetRoutes
from holdfast.localcloud.aws.footing.role import check_role

__all__ = ["SubnetRoutes", "check_role"]
