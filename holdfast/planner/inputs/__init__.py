"""From options, what an environment says and data that is handed in to the numbers of a plan. Reads no file."""

from holdfast.planner.inputs.gathering import Inputs, Options, environment_name, gather, read_rates, read_stages

__all__ = ["Inputs", "Options", "environment_name", "gather", "read_rates", "read_stages"]
