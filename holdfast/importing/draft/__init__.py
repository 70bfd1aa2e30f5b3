"""Imported environment file, with notes and questions."""

from holdfast.importing.draft.imported import Draft, render, short
from holdfast.importing.draft.kept_parts import PARTS, KeptParts, Part, most_common, roles
from holdfast.importing.draft.questions import ask_about_values

__all__ = [
    "PARTS",
    "Draft",
    "KeptParts",
    "Part",
    "ask_about_values",
    "most_common",
    "render",
    "roles",
    "short",
]
