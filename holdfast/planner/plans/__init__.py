"""Plan of a cluster."""

from holdfast.planner.plans.outlooks import CURVE_SIZES, Outlook, Plan, make_plan

__all__ = [
    "CURVE_SIZES",
    "Outlook",
    "Plan",
    "make_plan",
]
