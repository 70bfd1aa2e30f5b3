"""Which charts are installed with which images, where nodes have no way to the internet."""

import pytest

from holdfast_constructs.eks import chart_values

P5, TRN = "ml.p5.48xlarge", "ml.trn1.32xlarge"


def test_a_closed_network_takes_the_copy_of_nvidias_device_plugin_that_aws_has_in_the_region() -> None:
    there = chart_values([P5], region="us-west-2", closed=True)["nvidia-device-plugin"]

    assert there["image"] == {
        "repository": "586794468202.dkr.ecr.us-west-2.amazonaws.com/mirror-k8s-device-plugin",
        "tag": "v0.19.0",
    }
    assert "image" not in chart_values([P5], region="us-west-2")["nvidia-device-plugin"]


@pytest.mark.parametrize("region", ["eu-west-3", "${Token[AWS.Region.4]}"])
def test_a_closed_network_where_there_is_no_copy_is_refused(region: str) -> None:
    with pytest.raises(ValueError, match=r"closed network: got .*; allowed: a region that has one"):
        chart_values([P5], region=region, closed=True)


def test_a_closed_network_with_neuron_devices_is_refused() -> None:
    with pytest.raises(ValueError, match=r"comes from public\.ecr\.aws"):
        chart_values([TRN], region="us-west-2", closed=True)
    assert "neuron-device-plugin" in chart_values([TRN], region="us-west-2")
