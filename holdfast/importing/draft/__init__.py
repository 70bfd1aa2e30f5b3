"""Imported environment file, with notes and questions."""

from holdfast.importing.draft.imported import Imported, Note, render, short
from holdfast.importing.draft.keeping import PARTS, Keeping, Part, most_common, roles
from holdfast.importing.draft.questions import ask_about_values

__all__ = [
    "PARTS",
    "Imported",
    "Keeping",
    "Note",
    "Part",
    "ask_about_values",
    "most_common",
    "render",
    "roles",
    "short",
]
