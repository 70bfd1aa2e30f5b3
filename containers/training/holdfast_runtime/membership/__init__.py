"""
Who is in the job: views numbered by generation, each committed by a majority of the launchers that the job expects.

The number of a generation is the field ``epoch`` of messages and views, which are on the wire and on disk.
Pure: no clock, no socket, no torch. Drivers deliver messages and timers and carry out the actions.
"""

from holdfast_runtime.membership.messages import Accept, Accepted, Commit, Message, Prepare, Promise, Refuse
from holdfast_runtime.membership.plan import UNKNOWN, Hopeless, Policy, next_view
from holdfast_runtime.membership.protocol import (
    GATHER,
    GIVE_UP,
    MEET,
    PROPOSE,
    Action,
    Decide,
    Install,
    Leave,
    Node,
    Send,
    SetTimer,
    Stop,
    found,
    lost,
    message,
    ready,
    start,
    timer,
    trouble,
    witness_found,
    witness_lost,
)
from holdfast_runtime.membership.view import Ballot, RankStatus, Slot, Snapshot, Source, State, Status, View
from holdfast_runtime.membership.witness import Witness, answer

__all__ = [
    "GATHER",
    "GIVE_UP",
    "MEET",
    "PROPOSE",
    "UNKNOWN",
    "Accept",
    "Accepted",
    "Action",
    "Ballot",
    "Commit",
    "Decide",
    "Hopeless",
    "Install",
    "Leave",
    "Message",
    "Node",
    "Policy",
    "Prepare",
    "Promise",
    "RankStatus",
    "Refuse",
    "Send",
    "SetTimer",
    "Slot",
    "Snapshot",
    "Source",
    "State",
    "Status",
    "Stop",
    "View",
    "Witness",
    "answer",
    "found",
    "lost",
    "message",
    "next_view",
    "ready",
    "start",
    "timer",
    "trouble",
    "witness_found",
    "witness_lost",
]
