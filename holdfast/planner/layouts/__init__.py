"""Plan of a layout of a model: memory, copies of the state, and recovery from the loss of one node. Pure."""

from holdfast.planner.layouts.figures import Figure, figures
from holdfast.planner.layouts.plan import Copies, LayoutPlan, plan_layout
from holdfast.planner.layouts.recovery import Recovery, Term
from holdfast.planner.layouts.sizes import Hardware, Layout, hardware_of, layout_of, parameters_of

__all__ = [
    "Copies",
    "Figure",
    "Hardware",
    "Layout",
    "LayoutPlan",
    "Recovery",
    "Term",
    "figures",
    "hardware_of",
    "layout_of",
    "parameters_of",
    "plan_layout",
]
