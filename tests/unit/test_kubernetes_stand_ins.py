"""What a node tells the programs that stand in for device plugins."""

import json

import pytest

from holdfast.localcloud.kubernetes.stand_ins import DEVICES, accelerators, unhealthy_mark


def test_a_node_says_what_it_has_and_nothing_of_what_it_lacks() -> None:
    path, content = accelerators({"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 0})
    assert path == f"{DEVICES}/accelerators.json"
    assert json.loads(content) == {"nvidia.com/gpu": 8}


def test_devices_of_two_resources_are_marked_apart() -> None:
    assert unhealthy_mark("nvidia.com/gpu", 3) == f"{DEVICES}/nvidia.com_gpu/3.unhealthy"
    assert unhealthy_mark("vpc.amazonaws.com/efa", "efa_3") == f"{DEVICES}/vpc.amazonaws.com_efa/efa_3.unhealthy"


def test_a_mark_stays_in_its_folder() -> None:
    with pytest.raises(ValueError, match="is no device"):
        unhealthy_mark("nvidia.com/gpu", "../../../../etc/x")
