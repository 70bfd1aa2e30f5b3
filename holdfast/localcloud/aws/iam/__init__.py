"""Policies of roles, evaluated for the calls of services and functions. Users are not judged."""

from holdfast.localcloud.aws.iam.conditions import hold, matches
from holdfast.localcloud.aws.iam.evaluation import Decision, IamPolicy, PermissionRequest, decide
from holdfast.localcloud.aws.iam.rights import Rights
from holdfast.localcloud.aws.iam.simulation import Simulation

__all__ = ["Decision", "IamPolicy", "PermissionRequest", "Rights", "Simulation", "decide", "hold", "matches"]
