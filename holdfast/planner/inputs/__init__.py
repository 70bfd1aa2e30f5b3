"""From options, what an environment says and data that is handed in to the numbers of a plan. Reads no file."""

from holdfast.planner.inputs.environment import PlannedEnvironment
from holdfast.planner.inputs.gathering import gather
from holdfast.planner.inputs.options import Data, Options
from holdfast.planner.inputs.scenarios import Inputs

__all__ = ["Data", "Inputs", "Options", "PlannedEnvironment", "gather"]
