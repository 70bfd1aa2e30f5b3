"""A large job's links in one process: each connected to a few others."""

from link_ends import CALM, End

from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.links import Links


def large_ends(size: int, *, deadlines: Deadlines = CALM) -> list[End]:
    """Launchers that are not open yet and know how many they are."""
    ends = [End(node, deadlines=deadlines) for node in range(size)]
    for end in ends:
        links = end.links
        end.links = Links(links._me, host="127.0.0.1", deadlines=deadlines, handlers=links._handlers, size=size)
    return ends
