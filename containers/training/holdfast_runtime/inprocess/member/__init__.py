"""
This process as a member of the job: out of a broken generation at once, into the next one with the right state.

``member`` leads it there, with one part for each of what it takes: ``peers`` connects the ranks and frees this process
from them, ``telling`` is what it says to its launcher and hears, ``taking`` has the state of the step to go on from,
and ``agreement`` compares it with the others. ``standing`` is what all of them know of this process.
"""

from holdfast_runtime.inprocess.member.agreement import Agreement
from holdfast_runtime.inprocess.member.member import Member
from holdfast_runtime.inprocess.member.peers import PEERS, Peers
from holdfast_runtime.inprocess.member.standing import Standing, Training
from holdfast_runtime.inprocess.member.variables import Variables, missed

__all__ = [
    "PEERS",
    "Agreement",
    "Member",
    "Peers",
    "Standing",
    "Training",
    "Variables",
    "missed",
]
