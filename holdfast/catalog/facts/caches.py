"""Cache invalidation after the data was written."""

from holdfast.catalog.facts import pages, placement, policies, schemas, versions


def forget() -> None:
    for module in (pages, placement, policies, schemas, versions):
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
