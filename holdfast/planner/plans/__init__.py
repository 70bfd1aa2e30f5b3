"""Plan of a cluster, and published tables beside their formulas."""

from holdfast.planner.plans.outlooks import CURVE_SIZES, Curve, Outlook, Plan, make_plan
from holdfast.planner.plans.published import PublishedFigure, PublishedTable, published_tables

__all__ = [
    "CURVE_SIZES",
    "Curve",
    "Outlook",
    "Plan",
    "PublishedFigure",
    "PublishedTable",
    "make_plan",
    "published_tables",
]
