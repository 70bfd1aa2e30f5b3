"""Session documents of Systems Manager."""

from dataclasses import dataclass

from holdfast.validation.model.item import Item


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SessionDocument(Item):
    """A document of type Session with Run As."""

    default_user: str | None
    """Account of the nodes. None: none is named."""
