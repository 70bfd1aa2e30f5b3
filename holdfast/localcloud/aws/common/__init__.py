"""
What every service of ours is written with: the error that refuses, the clock, pages, records that take a moment,
for whom a request is made, and what is shared between host and services (mishaps, the
HyperPod plane). Knows no client, no moto and no HTTP.
"""

from holdfast.localcloud.aws.common.clock import now, reset_clock, skip_time
from holdfast.localcloud.aws.common.errors import NotOurs, ServiceError, refuse
from holdfast.localcloud.aws.common.hyperpod_plane import Plane
from holdfast.localcloud.aws.common.mishaps import Mishaps
from holdfast.localcloud.aws.common.paging import aware, between, page, paged, tag_dict, tag_list
from holdfast.localcloud.aws.common.principals import (
    PRINCIPAL_HEADER,
    acting_for,
    named_principal,
    principal_of,
    root_of,
)
from holdfast.localcloud.aws.common.records import TRANSITION, Record, Shelf

__all__ = [
    "PRINCIPAL_HEADER",
    "TRANSITION",
    "Mishaps",
    "NotOurs",
    "Plane",
    "Record",
    "ServiceError",
    "Shelf",
    "acting_for",
    "aware",
    "between",
    "named_principal",
    "now",
    "page",
    "paged",
    "principal_of",
    "refuse",
    "reset_clock",
    "root_of",
    "skip_time",
    "tag_dict",
    "tag_list",
]
