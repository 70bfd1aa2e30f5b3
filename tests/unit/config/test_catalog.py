"""The catalog agrees with its sources, and subnets are sized by the service's documented figures."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import botocore.session
import pytest

from holdfast.catalog import (
    INSTANCE_TYPES_FILE,
    LIMITS_FILE,
    Bounds,
    LustreThroughput,
    OpenZfsThroughput,
    Orchestrator,
    Steps,
    addresses_needed,
    bounds,
    instance_types,
    limits,
    prefix_length_for,
)
from holdfast.catalog.refresh import botocore_instance_types

HOLDFAST = Path(__file__).parents[3] / "holdfast"
READERS = sorted(
    path
    for room in (
        "config/models",
        "validation/rules",
        "importing/sections",
        "localcloud/aws/fsx",
        "localcloud/aws/sagemaker",
    )
    for path in (HOLDFAST / room).rglob("*.py")
)
ENTRIES = json.loads(LIMITS_FILE.read_text())
SAGEMAKER = botocore.session.get_session().get_service_model("sagemaker")


def figures(value: object) -> Iterator[int]:
    """All numbers in some data."""
    if isinstance(value, dict):
        for part in value.values():
            yield from figures(part)
    elif isinstance(value, list):
        for part in value:
            yield from figures(part)
    elif isinstance(value, int):
        yield value


AMBIGUOUS = {*range(1000), 1024, 2048, 3600, 4096}
FIGURES = {figure for entry in ENTRIES.values() for figure in figures(entry["values"])} - AMBIGUOUS


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
    ("name", "gpu_gb", "network_gbps", "card_gbps"),
    [
        # "Amazon EC2 instance types", pages of P4, P5 and P6, a second source for the same facts
        ("ml.p4d.24xlarge", 40, 400, 100),
        ("ml.p5.48xlarge", 80, 3200, 100),
        ("ml.p5en.48xlarge", 141, 3200, 200),
        ("ml.p6-b200.48xlarge", 179, 3200, 200),
        ("ml.m5.xlarge", 0, 10, 10),
    ],
)
def test_memory_of_gpus_and_networks_agree_with_a_second_source(
    name: str, gpu_gb: int, network_gbps: float, card_gbps: float
) -> None:
    known = instance_types()[name]

    assert known.accelerator_mib // 1024 == gpu_gb
    assert (known.network_gbps, known.card_gbps) == (network_gbps, card_gbps)


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


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if "shape" in entry])
def test_a_limit_of_the_api_is_that_of_its_shape(name: str) -> None:
    shape = SAGEMAKER.shape_for(ENTRIES[name]["shape"])

    assert bounds(name) == Bounds(least=shape.metadata["min"], most=shape.metadata["max"])


def test_throughputs_are_the_same_for_type_checkers() -> None:
    assert list(get_args(LustreThroughput)) == limits("lustre_throughput_mbps_per_tib")["PERSISTENT_2"]
    assert list(get_args(OpenZfsThroughput)) == limits("openzfs_throughput_mbps")["SINGLE_AZ_2"]


def test_a_figure_of_the_catalog_stands_nowhere_else() -> None:
    """Small and round figures mean other things too."""
    written = {
        f"{path.relative_to(HOLDFAST)}: {node.value}"
        for path in READERS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in FIGURES
    }

    assert written == set()


def test_sizes_come_in_steps() -> None:
    sizes = Steps(small=(1500, 3000), multiple=12000, most=24000)

    assert [size for size in (0, 1500, 2000, 12000, 24000, 36000) if sizes.has(size)] == [1500, 12000, 24000]
    assert [sizes.step_above(size) for size in (1, 2000, 3001, 12001)] == [1500, 3000, 12000, 24000]
    assert str(sizes) == "1500, 3000, or a multiple of 12000 up to 24000"
