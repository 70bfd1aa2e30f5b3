"""Write ``docs/reference/updates.md`` from the policies: ``make schema``."""

from holdfast.updates.reference import UPDATES, updates_text

if __name__ == "__main__":
    UPDATES.write_text(updates_text())
