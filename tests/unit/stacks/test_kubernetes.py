"""Settings of nodes on EKS, and the refusal of a file that was not checked before."""

from pathlib import Path

import aws_cdk as cdk
import pytest

from holdfast.config import load
from holdfast_stacks import HyperPodStack, node_settings

ENVIRONMENTS = Path(__file__).parents[3] / "environments"


def test_nodes_know_which_groups_have_a_volume_and_whether_lustre_has_efa() -> None:
    assert node_settings(load(ENVIRONMENTS / "full.yaml")) == {
        "volume_instance_groups": ["workers"],
        "lustre_efa": True,
    }
    assert node_settings(load(ENVIRONMENTS / "eks-p5.yaml"))["lustre_efa"] is False


def test_what_stands_in_for_a_node_is_told_of_no_volume(tmp_path: Path) -> None:
    text = (ENVIRONMENTS / "eks-p5.yaml").read_text().replace('account: "111122223333"', 'account: "123456789012"')
    (tmp_path / "rehearsed.yaml").write_text(f"cloud: embedded\n{text}")

    assert node_settings(load(tmp_path / "rehearsed.yaml"))["volume_instance_groups"] == []


def test_a_stack_of_a_file_that_lacks_a_setting_names_it() -> None:
    environment = load(ENVIRONMENTS / "minimal.yaml")
    unchecked = environment.model_copy(update={"network": environment.network.model_copy(update={"cidr": None})})

    with pytest.raises(ValueError, match=r"got no network\.cidr; allowed: a value; set it, and run holdfast check"):
        HyperPodStack(cdk.App(), "Demo", environment=unchecked, folder=ENVIRONMENTS)
