"""What is there already and an environment uses: as items, and the rules about them."""

from holdfast.validation.existing._item import Choice, Existing, Reference, Scripts, ZoneId

__all__ = ["Choice", "Existing", "Reference", "Scripts", "ZoneId"]
