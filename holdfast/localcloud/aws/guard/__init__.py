"""
Who may speak with the embedded AWS, and how much: what stands before its services.

A web page is kept out by what browsers say of themselves, anybody else by the signature, a job by the rights of its
node's role, and everybody by bounds on bodies, connections and time. ``docs/local-cloud.md`` says what this is worth.
"""

from holdfast.localcloud.aws.guard._body import Budget, ceiling_of, read_body
from holdfast.localcloud.aws.guard._callers import Callers, Who
from holdfast.localcloud.aws.guard._doors import BoundedServer, Handler
from holdfast.localcloud.aws.guard._judge import Judge
from holdfast.localcloud.aws.guard._origin import foreign
from holdfast.localcloud.aws.guard._signature import Signed, signed, verify

__all__ = [
    "BoundedServer",
    "Budget",
    "Callers",
    "Handler",
    "Judge",
    "Signed",
    "Who",
    "ceiling_of",
    "foreign",
    "read_body",
    "signed",
    "verify",
]
