"""Control loop: observe, decide (`reconcile`, pure), execute; and lookup of a cluster's controller."""

from holdfast.localcloud.hyperpod.control.plane import ControlPlane
from holdfast.localcloud.hyperpod.control.reconcile import (
    GATHER_S,
    Check,
    Detach,
    Health,
    HoldBack,
    MarkFailed,
    Observation,
    Prepare,
    Reboot,
    Remove,
    Replace,
    SetStatus,
    Update,
    decide,
)
from holdfast.localcloud.hyperpod.control.service import Service

__all__ = [
    "GATHER_S",
    "Check",
    "ControlPlane",
    "Detach",
    "Health",
    "HoldBack",
    "MarkFailed",
    "Observation",
    "Prepare",
    "Reboot",
    "Remove",
    "Replace",
    "Service",
    "SetStatus",
    "Update",
    "decide",
]
