"""
Amazon FSx for Lustre and OpenZFS: file systems and data repository associations, as records. The control plane has
the directories and the copies to S3.
"""

from holdfast.localcloud.aws.fsx.network import check_lnet
from holdfast.localcloud.aws.fsx.rules import check_association
from holdfast.localcloud.aws.fsx.service import Fsx

__all__ = ["Fsx", "check_association", "check_lnet"]
