"""The way out of a broken step: ``leaving`` finds whose fault that is, ``missed`` what of the program has not run."""

from holdfast_runtime.inprocess.leaving.leaving import Leaving
from holdfast_runtime.inprocess.leaving.missed import behind

__all__ = ["Leaving", "behind"]
