"""Numbers of a plan from options, an environment and published data. Reads no file."""

from holdfast.cli.planning.inputs.data import Data
from holdfast.cli.planning.inputs.gathering import gather
from holdfast.cli.planning.inputs.layouts import layout_plan
from holdfast.cli.planning.inputs.scenarios import Inputs
from holdfast.cli.planning.inputs.standing import standing_costs

__all__ = ["Data", "Inputs", "gather", "layout_plan", "standing_costs"]
