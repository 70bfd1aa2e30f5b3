"""List of stand-ins, for the layer, the documents and the tests."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml


@dataclass(frozen=True, kw_only=True)
class StandIn:
    path: str
    """On the node; below /usr/local/lib/holdfast/bin where something else has to put it on the PATH first."""
    call: str
    """``module:function`` below ``standins``."""
    answers: str
    why: str


@cache
def stand_ins() -> tuple[StandIn, ...]:
    listed = yaml.safe_load((Path(__file__).parent / "stand_ins.yaml").read_text())
    return tuple(sorted((StandIn(**one) for one in listed), key=lambda one: one.path))
