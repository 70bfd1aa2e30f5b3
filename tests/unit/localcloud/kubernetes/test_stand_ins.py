"""What a node tells the programs that stand in for device plugins."""

import json

from holdfast.localcloud.kubernetes.stand_ins import DEVICES, accelerators


def test_a_node_says_what_it_has_and_nothing_of_what_it_lacks() -> None:
    path, content = accelerators({"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 0})
    assert path == f"{DEVICES}/accelerators.json"
    assert json.loads(content) == {"nvidia.com/gpu": 8}
