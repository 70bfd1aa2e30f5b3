"""
``elastic_event_detected()``, which scripts for HyperPod's elastic training call in each step, answered by its vote.

There a signal sets a flag, and each call adds up the flags of all ranks. Here launchers have agreed on the step after
which ranks leave, and the vote of that step tells all of them: the answer is the same everywhere, costs nothing, and is
true in that one step. Nobody has to write a checkpoint or to end, as the job goes on in place.
"""

from holdfast_runtime.inprocess.member import Member

_members: list[Member] = []


def answers(member: Member | None) -> None:
    """Of the run that the script has made last; none where it trains alone."""
    _members[:] = [] if member is None else [member]


def elastic_event_detected() -> bool:
    """
    Whether all ranks leave after this step, to go on at another size or with a process of another node.

    To be called in a step, after its update. It is false without a launcher, and where a rank is lost: nobody knows of
    that before.
    """
    return any(member.at_boundary for member in _members)
