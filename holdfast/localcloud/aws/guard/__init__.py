"""
Who may speak with the embedded AWS, and how much: what stands before its services.

A web page is kept out by what browsers say of themselves, anybody else by the signature, a job by the rights of its
node's role, and everybody by bounds on bodies, connections and time. docs/concepts/local-cloud.md has
the limits of this.
"""

from holdfast.localcloud.aws.guard.bodies import (
    ALL_TOGETHER,
    LARGEST,
    LARGEST_OF_S3,
    STEP,
    Budget,
    ceiling_of,
    read_body,
)
from holdfast.localcloud.aws.guard.callers import Callers, Who, remember_tags
from holdfast.localcloud.aws.guard.connections import MOST_CONNECTIONS, BoundedServer, Handler
from holdfast.localcloud.aws.guard.judge import Judge, tags_of
from holdfast.localcloud.aws.guard.origin import foreign
from holdfast.localcloud.aws.guard.signatures import Signed, signed, verify

__all__ = [
    "ALL_TOGETHER",
    "LARGEST",
    "LARGEST_OF_S3",
    "MOST_CONNECTIONS",
    "STEP",
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
    "remember_tags",
    "signed",
    "tags_of",
    "verify",
]
