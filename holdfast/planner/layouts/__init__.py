"""Plan of a layout of a model: memory, copies of the state, and recovery from the loss of one node. Pure."""

from holdfast.planner.layouts.figures import figures
from holdfast.planner.layouts.plan import Copies, LayoutPlan, plan_layout
from holdfast.planner.layouts.sizes import hardware_of, layout_of, parameters_of

__all__ = [
    "Copies",
    "LayoutPlan",
    "figures",
    "hardware_of",
    "layout_of",
    "parameters_of",
    "plan_layout",
]
