"""``python -m holdfast.catalog.refresh``: write facts of packages, and their page."""

from holdfast.catalog.refresh import write_facts

write_facts()
