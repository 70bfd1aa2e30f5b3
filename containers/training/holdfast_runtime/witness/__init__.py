"""
The witness: one more voter for jobs of an even number of launchers, in a service beside Slurm's controller.

``python -m holdfast_runtime.witness`` serves many runs; ``WitnessLink`` is a launcher's end of the line.
"""

from holdfast_runtime.witness.finding import PORT, WitnessError, find_witness, is_of_use
from holdfast_runtime.witness.link import OPEN, WitnessHandlers, WitnessLink
from holdfast_runtime.witness.records import Limits, Record, Records
from holdfast_runtime.witness.service import Service

__all__ = [
    "OPEN",
    "PORT",
    "Limits",
    "Record",
    "Records",
    "Service",
    "WitnessError",
    "WitnessHandlers",
    "WitnessLink",
    "find_witness",
    "is_of_use",
]
