"""The catalog agrees with its sources, and subnets are sized by the service's documented figures."""

import json

import pytest

from holdfast.catalog import (
    INSTANCE_TYPES_FILE,
    Orchestrator,
    addresses_needed,
    instance_types,
    prefix_length_for,
)
from holdfast.catalog.refresh import botocore_instance_types


def test_the_catalog_has_exactly_the_types_of_the_api() -> None:
    assert sorted(instance_types()) == sorted(botocore_instance_types()), "run: python -m holdfast.catalog"


def test_the_catalog_names_its_source() -> None:
    assert "botocore" in json.loads(INSTANCE_TYPES_FILE.read_text())["source"]


@pytest.mark.parametrize(
    ("name", "accelerators", "efa_interfaces", "vcpus", "memory_gib"),
    [
        # hyperpod-cli training/constants.py, a second source for the same facts
        ("ml.p4d.24xlarge", 8, 4, 96, 1152),
        ("ml.p5.48xlarge", 8, 32, 192, 2048),
        ("ml.p5en.48xlarge", 8, 16, 192, 2048),
        ("ml.p6-b200.48xlarge", 8, 8, 192, 2048),
        ("ml.p6-b300.48xlarge", 8, 16, 192, 4096),
        ("ml.trn2.48xlarge", 16, 16, 192, 2048),
        ("ml.m5.xlarge", 0, 0, 4, 16),
    ],
)
def test_facts_agree_with_a_second_source(
    name: str, accelerators: int, efa_interfaces: int, vcpus: int, memory_gib: int
) -> None:
    known = instance_types()[name]

    assert (known.accelerators, known.efa_interfaces) == (accelerators, efa_interfaces)
    assert (known.vcpus, known.memory_gib) == (vcpus, memory_gib)


@pytest.mark.parametrize(
    ("name", "orchestrator", "addresses"),
    [
        ("ml.p5.48xlarge", "slurm", 32),  # SageMaker developer guide, "SageMaker HyperPod prerequisites"
        ("ml.p5.48xlarge", "eks", 81),  # the same page
        ("ml.m5.xlarge", "slurm", 1),
        ("ml.g5.xlarge", "eks", 15),  # 14 pods and the node, issue 142 of awslabs/ai-on-sagemaker-hyperpod
        ("ml.p5en.48xlarge", "eks", 65),
    ],
)
def test_a_node_takes_the_addresses_that_aws_documents(name: str, orchestrator: Orchestrator, addresses: int) -> None:
    assert instance_types()[name].addresses(orchestrator) == addresses


@pytest.mark.parametrize(("count", "orchestrator", "prefix"), [(16, "slurm", 22), (16, "eks", 21), (64, "eks", 19)])
def test_p5_need_subnets_of_these_sizes(count: int, orchestrator: Orchestrator, prefix: int) -> None:
    assert prefix_length_for(addresses_needed([("ml.p5.48xlarge", count)], orchestrator=orchestrator)) == prefix


def test_an_empty_group_takes_no_address() -> None:
    assert addresses_needed([("ml.p5.48xlarge", 0)]) == addresses_needed([])


@pytest.mark.parametrize(("addresses", "prefix"), [(1, 28), (16, 28), (17, 27), (256, 24), (257, 23), (65537, 15)])
def test_a_subnet_is_the_smallest_with_room(addresses: int, prefix: int) -> None:
    assert prefix_length_for(addresses) == prefix
