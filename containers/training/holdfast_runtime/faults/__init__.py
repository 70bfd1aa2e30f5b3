"""
Faults on purpose, in real processes: addressed by rank, step, phase and kind, and counted when they fire.

``HOLDFAST_FAULTS`` holds a JSON list of faults, ``HOLDFAST_FAULTS_FIRED`` a folder that gets one file for each firing:
a test that sees none there has tested nothing. Without the variable nothing here costs more than one comparison.
"""

from holdfast_runtime.faults.injector import Injector
from holdfast_runtime.faults.specification import Fault, InjectedError, parse_faults

__all__ = ["Fault", "InjectedError", "Injector", "parse_faults"]
