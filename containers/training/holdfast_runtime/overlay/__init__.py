"""
Launchers of a large job that are connected to a few others each: who is there, and how all of them are reached.

Pure: no clock, no socket. The driver says what happened and when, and carries out what follows.
"""

from holdfast_runtime.overlay.letters import Accusation, Letter, Member, Parcel
from holdfast_runtime.overlay.overlay import Deliver, Down, Effect, Overlay, Rival, Up, Write
from holdfast_runtime.overlay.ring import NEIGHBOURS, Ring
from holdfast_runtime.overlay.roster import ACCUSERS

__all__ = [
    "ACCUSERS",
    "NEIGHBOURS",
    "Accusation",
    "Deliver",
    "Down",
    "Effect",
    "Letter",
    "Member",
    "Overlay",
    "Parcel",
    "Ring",
    "Rival",
    "Up",
    "Write",
]
