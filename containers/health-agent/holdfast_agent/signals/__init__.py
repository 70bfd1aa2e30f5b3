"""Types between detectors, engine and remedies: signals, happenings, numbers."""

from holdfast_agent.signals import conditions
from holdfast_agent.signals.happening import Happening
from holdfast_agent.signals.numbers import Metric, Numbers
from holdfast_agent.signals.signal import Signal

__all__ = ["Happening", "Metric", "Numbers", "Signal", "conditions"]
