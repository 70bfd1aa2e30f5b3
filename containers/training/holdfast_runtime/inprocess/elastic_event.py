"""
``elastic_event_detected()``, which scripts for HyperPod's elastic training call in each step.

Launchers agree on the step after which ranks leave, and the vote of that step has the answer: the same on all ranks.
"""

from holdfast_runtime.inprocess.member import Member

_members: list[Member] = []


def answers(member: Member | None) -> None:
    _members[:] = [] if member is None else [member]


def elastic_event_detected() -> bool:
    """
    Return True if all ranks leave after this step, to go on at another size or with a process of another node.

    To be called in a step, after its update. It is false without a launcher, and where a rank is lost: nobody knows of
    that before.
    """
    return any(member.at_boundary for member in _members)
