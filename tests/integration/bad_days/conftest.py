"""One local HyperPod for all files of this folder, since making one takes as long as most of what is done to it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bad_days import Lab, bad_days

HERE = Path(__file__).parent
_open = ExitStack()


@pytest.fixture(scope="session")
def only_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return _open.enter_context(bad_days(tmp_path_factory.mktemp("days")))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close it after the last test of this folder, not after the last of all."""
    if nextitem is None or HERE not in nextitem.path.parents:
        _open.close()


@pytest.fixture(scope="module")
def lab(only_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """With a control plane as the file's ``SETTINGS`` want it; the file's clusters go with it."""
    only_lab.start(**getattr(request.module, "SETTINGS", {}))
    yield only_lab
    only_lab.gate.away = {}
    only_lab.delete_all()
    only_lab.halt()
