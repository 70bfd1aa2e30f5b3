"""Shared parts of the embedded services. No client, no moto, no HTTP."""

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
from holdfast.localcloud.aws.common.records import TRANSITION, Record, RecordStore

__all__ = [
    "PRINCIPAL_HEADER",
    "TRANSITION",
    "Mishaps",
    "NotOurs",
    "Plane",
    "Record",
    "RecordStore",
    "ServiceError",
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
