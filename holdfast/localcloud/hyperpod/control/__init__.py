"""Control loop: observe, decide (`reconcile`, pure), execute; and lookup of a cluster's controller."""

from holdfast.localcloud.hyperpod.control.plane import ControlPlane
from holdfast.localcloud.hyperpod.control.reconcile import (
    GATHER_S,
    Check,
    Health,
    HoldBack,
    MarkFailed,
    Observation,
    Prepare,
    Reboot,
    Remove,
    Replace,
    SetStatus,
    decide,
)
from holdfast.localcloud.hyperpod.control.service import Service

__all__ = [
    "GATHER_S",
    "Check",
    "ControlPlane",
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
    "decide",
]
