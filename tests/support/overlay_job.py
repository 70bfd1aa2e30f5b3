"""A large job's links in one process: each connected to a few others."""

from link_ends import CALM, End

from holdfast_runtime.control import Deadlines


def large_ends(size: int, *, deadlines: Deadlines = CALM) -> list[End]:
    """Launchers that are not open yet and know how many they are."""
    return [End(node, deadlines=deadlines, size=size) for node in range(size)]
