import gc

YOUNG_OBJECTS = 50_000
"""A request makes thousands of objects that die with it; with Python's 700 the collector took a tenth of the time."""


def spare_collector() -> None:
    """Collect less often, and never what has been imported so far."""
    gc.set_threshold(YOUNG_OBJECTS)
    gc.freeze()
