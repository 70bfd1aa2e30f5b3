"""Receivers of what ranks and other launchers send."""

from dataclasses import dataclass

from holdfast_runtime.launcher.generation import Building, Departure, Record, Resizing, Witnessing
from holdfast_runtime.launcher.keys import KeyRelay
from holdfast_runtime.launcher.node.generations import Generations
from holdfast_runtime.launcher.node.places import Places
from holdfast_runtime.launcher.node.settling import Settling
from holdfast_runtime.launcher.node.tasks import Tasks
from holdfast_runtime.launcher.watch import Judgement, Watch


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Those of one launcher."""

    building: Building
    departure: Departure
    generations: Generations
    judgement: Judgement
    keys: KeyRelay
    places: Places
    record: Record
    resizing: Resizing
    settling: Settling
    tasks: Tasks
    watch: Watch
    witness: Witnessing
