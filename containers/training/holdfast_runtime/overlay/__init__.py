"""Overlay of launchers: each is connected to a few others, and reaches all through them. Pure."""

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
