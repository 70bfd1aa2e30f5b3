"""One local HyperPod for all files of this folder, since making one takes as long as most of what is done to it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bad_days import Lab, bad_days

HERE = Path(__file__).parent
_open = ExitStack()
_labs: list[Lab] = []
"""The one that is open, if any."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close it when a test of another folder follows: between two files of this one there may be some."""
    if nextitem is None or HERE not in nextitem.path.parents:
        _labs.clear()
        _open.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """With a control plane as the file's ``SETTINGS`` want it; the file's clusters go with it."""
    if not _labs:
        _labs.append(_open.enter_context(bad_days(tmp_path_factory.mktemp("days"))))
    (one,) = _labs
    one.start(**getattr(request.module, "SETTINGS", {}))
    yield one
    one.gate.away = {}
    one.delete_all()
    one.halt()
