"""``python -m holdfast.catalog.refresh``: write the facts that packages know."""

from holdfast.catalog.refresh import write_facts

write_facts()
