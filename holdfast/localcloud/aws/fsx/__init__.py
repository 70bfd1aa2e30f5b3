"""Records of FSx for Lustre and OpenZFS file systems and associations. The control plane has directories and copies."""

from holdfast.localcloud.aws.fsx.network import check_lnet
from holdfast.localcloud.aws.fsx.rules import check_association
from holdfast.localcloud.aws.fsx.service import Fsx

__all__ = ["Fsx", "check_association", "check_lnet"]
