"""Reading the data again after they were written."""

from holdfast.catalog.facts import pages, placement, policies, schemas, versions


def forget() -> None:
    """Let every function of this room read its data again, which each keeps after the first time."""
    for module in (pages, placement, policies, schemas, versions):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
