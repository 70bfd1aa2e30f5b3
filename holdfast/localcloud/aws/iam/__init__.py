"""
What roles may do: policies are evaluated for the calls that services and functions make with a role.

Calls of users are not judged: whoever runs the embedded AWS owns its account.
"""

from holdfast.localcloud.aws.iam.conditions import hold, matches
from holdfast.localcloud.aws.iam.evaluation import Decision, Policy, Request, decide
from holdfast.localcloud.aws.iam.rights import Rights
from holdfast.localcloud.aws.iam.simulation import Simulation

__all__ = ["Decision", "Policy", "Request", "Rights", "Simulation", "decide", "hold", "matches"]
