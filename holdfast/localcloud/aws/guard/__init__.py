"""
Access control and limits of the embedded AWS.

Web pages are rejected by browser headers, other callers by signature, jobs by the rights of their node's role; bodies,
connections and times are bounded. ``docs/concepts/local-cloud.md`` has the threat model.
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
from holdfast.localcloud.aws.guard.callers import CallerIdentity, Callers, remember_tags
from holdfast.localcloud.aws.guard.connections import MOST_CONNECTIONS, BoundedServer
from holdfast.localcloud.aws.guard.judge import Authorizer, tags_of
from holdfast.localcloud.aws.guard.origin import foreign
from holdfast.localcloud.aws.guard.signatures import signed, verify

__all__ = [
    "ALL_TOGETHER",
    "LARGEST",
    "LARGEST_OF_S3",
    "MOST_CONNECTIONS",
    "STEP",
    "Authorizer",
    "BoundedServer",
    "Budget",
    "CallerIdentity",
    "Callers",
    "ceiling_of",
    "foreign",
    "read_body",
    "remember_tags",
    "signed",
    "tags_of",
    "verify",
]
