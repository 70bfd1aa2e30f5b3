"""Parsed text: data, and the line of each part."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.validation.cloudformation import Fault, LinedMapping


@dataclass(frozen=True, kw_only=True)
class Text:
    body: LinedMapping
    faults: Sequence[Fault] = field(default_factory=tuple)
