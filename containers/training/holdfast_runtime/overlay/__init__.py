"""Overlay of launchers: each is connected to a few others, and reaches all through them. Pure."""

from holdfast_runtime.overlay.messages import Letter, Member, Packet, Suspicion
from holdfast_runtime.overlay.overlay import Deliver, Down, Effect, Overlay, Rival, Up, Write
from holdfast_runtime.overlay.ring import NEIGHBOURS, Ring
from holdfast_runtime.overlay.roster import REPORTERS

__all__ = [
    "NEIGHBOURS",
    "REPORTERS",
    "Deliver",
    "Down",
    "Effect",
    "Letter",
    "Member",
    "Overlay",
    "Packet",
    "Ring",
    "Rival",
    "Suspicion",
    "Up",
    "Write",
]
