"""A test that is interrupted while its fixture's node runs; the fixture clears away, as long as it is let."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.nodes import Fleet, NodeSpec


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    fleet = Fleet(home=tmp_path / "home")
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    fleet.boot(NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.1"))
    yield fleet.home
    time.sleep(3)  # as fixtures take that stop a control plane; xdist interrupts again meanwhile
    fleet.close()
    Path(os.environ["TELL"], "closed").touch()


def test_is_interrupted(home: Path) -> None:
    Path(os.environ["TELL"], "with_teardown.home").write_text(str(home))
    time.sleep(1000)
