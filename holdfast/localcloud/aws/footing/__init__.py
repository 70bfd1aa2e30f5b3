"""What HyperPod nodes stand on: the rights of their role, and the ways of their network."""

from holdfast.localcloud.aws.footing.network import Ways
from holdfast.localcloud.aws.footing.role import check_role

__all__ = ["Ways", "check_role"]
