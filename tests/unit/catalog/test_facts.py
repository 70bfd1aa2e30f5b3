"""Facts that move: the committed data are what the pinned packages give."""

import json
from datetime import date
from pathlib import Path

import cfnlint
import pytest
from registry_schemas import placed_types

from holdfast.catalog import facts, instance_types
from holdfast.catalog.facts import POLICIES_FILE, ZONES_FILE
from holdfast.catalog.refresh import policies_text, zones_text


def test_the_zones_are_those_of_the_pinned_packages() -> None:
    assert ZONES_FILE.read_text() == zones_text(), "run: python -m holdfast.catalog.refresh"


def test_the_managed_policies_are_those_of_the_pinned_packages() -> None:
    assert POLICIES_FILE.read_text() == policies_text(), "run: python -m holdfast.catalog.refresh"


def test_the_registry_of_the_pinned_cfn_lint_has_none_of_the_newer_types() -> None:
    newer = {json.loads(path.read_text())["typeName"] for path in facts.NEWER_TYPES.glob("*.json")}
    provider = Path(cfnlint.__file__).parent / "data" / "schemas" / "providers" / "us-east-1.json"

    assert newer
    assert newer & json.loads(provider.read_text()).keys() == set(), "delete their schemas, cfn-lint has them"


def test_every_fact_from_a_page_has_a_source_and_a_day() -> None:
    for name, entry in facts.page_facts().items():
        assert entry["source"], name
        assert isinstance(entry["date"], date), name


@pytest.mark.parametrize(
    ("region", "partition"),
    [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("nowhere-1", None)],
)
def test_a_region_is_of_a_partition_or_does_not_exist(region: str, partition: str | None) -> None:
    assert facts.partition_of(region) == partition


def test_hyperpod_is_in_some_regions_only() -> None:
    assert "us-west-2" in facts.hyperpod_regions()
    assert "eu-west-3" not in facts.hyperpod_regions()


def test_a_type_that_ec2_does_not_have_in_a_region_is_not_there() -> None:
    assert "ml.trn1.32xlarge" in facts.hyperpod_types("us-west-2")
    assert "ml.trn1.32xlarge" not in facts.hyperpod_types("eu-central-1")


def test_ultraservers_are_where_aws_says_that_they_are() -> None:
    there = [region for region in facts.hyperpod_regions() if "ml.p6e-gb200.36xlarge" in facts.hyperpod_types(region)]

    assert there == ["us-east-1"]


def test_pages_say_only_where_types_are_that_packages_do_not_place() -> None:
    assert placed_types() & facts.page_fact("regions_of_types_that_packages_lack").keys() == set()


def test_every_type_that_hyperpod_has_is_in_some_region() -> None:
    somewhere = set[str]().union(*map(facts.hyperpod_types, facts.hyperpod_regions()))

    assert set(instance_types()) - somewhere == set()


def test_a_schema_says_what_a_resource_has_and_gives() -> None:
    schema = facts.schema_of("AWS::FSx::FileSystem")

    assert schema is not None
    assert "StorageCapacity" in schema.properties
    assert {"DNSName", "LustreMountName"} <= schema.attributes
    assert facts.schema_of("AWS::FSx::Nothing") is None


def test_a_managed_policy_is_known_by_what_it_allows() -> None:
    policies = facts.managed_policies()

    assert "ssmmessages:OpenDataChannel" in policies["AmazonSageMakerClusterInstanceRolePolicy"].allows
    assert "ec2:CreateNetworkInterface" not in policies["AmazonSageMakerClusterInstanceRolePolicy"].allows
    assert policies["AmazonSageMakerHyperPodServiceRolePolicy"].service_linked


def test_a_version_of_kubernetes_has_the_days_of_its_support() -> None:
    support = facts.kubernetes_support()["1.34"]

    assert support.released < support.standard_until < support.extended_until
