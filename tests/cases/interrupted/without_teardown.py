"""A fixture that is interrupted before it has what it would clear away: processes of a cloud, a node, a program."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from ports import free_port

from holdfast.localcloud import LocalCloud
from holdfast.localcloud.nodes import Fleet, NodeSpec


@pytest.fixture
def home(tmp_path: Path) -> Path:
    cloud = LocalCloud(home=tmp_path / "home", port=free_port())
    cloud.start_aws()
    cloud.start_hyperpod(region="us-west-2")
    cloud.start_keeper(region="us-west-2")
    fleet = Fleet(home=cloud.home)
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    fleet.boot(NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.1"))
    subprocess.Popen(["sh", "-c", "sleep 1000; :", str(cloud.home)], start_new_session=True)
    Path(os.environ["TELL"], "without_teardown.home").write_text(str(cloud.home))
    time.sleep(1000)
    return cloud.home


def test_is_never_reached(home: Path) -> None:
    raise AssertionError
