"""A setting and its CloudFormation property are said on its field; templates, pages, updates and importing follow."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
from pydantic import BaseModel

from holdfast.catalog import FILE_SYSTEM, Property, property_in
from holdfast.config import models
from holdfast.config.models import Dataset, Home, Lustre, meanings, property_of
from holdfast.validation import (
    AccountingDatabase,
    AutoPatch,
    BatchSize,
    Cluster,
    DataRepositoryAssociation,
    EksControlPlane,
    InstanceGroup,
    Item,
    LustreFileSystem,
    OpenZfsFileSystem,
    PriorityClass,
    RestrictedGroup,
    RestrictedLustre,
    RollingUpdate,
    ScheduledUpdate,
    Taint,
)
from holdfast.validation.model import Governance, Quota, TeamQuota

ROOT = Path(__file__).parents[3]
PAIRS = [
    (Lustre, LustreFileSystem),
    (Home, OpenZfsFileSystem),
    (Dataset, DataRepositoryAssociation),
    (models.Cluster, Cluster),
    (models.InstanceGroup, InstanceGroup),
    (models.RestrictedInstanceGroup, RestrictedGroup),
    (models.RestrictedLustre, RestrictedLustre),
    (models.Taint, Taint),
    (models.BatchSize, BatchSize),
    (models.Deployment, RollingUpdate),
    (models.ScheduledUpdate, ScheduledUpdate),
    (models.AutoPatch, AutoPatch),
    (models.Accounting, AccountingDatabase),
    (models.Eks, EksControlPlane),
    (models.InstanceQuota, Quota),
    (models.Team, TeamQuota),
    (models.PriorityClass, PriorityClass),
    (models.TaskGovernance, Governance),
]
LISTS = ("instance_groups",)
"""Sections that the reference has a table for, which says what they are."""
NAMES = ("EfaEnabled", "ThroughputCapacity", "MetadataConfiguration.Iops", "DataCompressionType")
SAID_ON_FIELDS = {"holdfast/config/models/storage.py", "holdfast/validation/model/surroundings.py"}
ROOMS = ("config", "importing", "updates", "validation")


@pytest.mark.parametrize(("section", "kind"), PAIRS)
def test_a_setting_and_what_rules_judge_under_its_name_are_one_property(
    section: type[BaseModel], kind: type[Item]
) -> None:
    hints = get_type_hints(kind, include_extras=True)
    judged = {field.name: property_in(hints[field.name]) for field in fields(kind)}
    said = {name: property_of(field) for name, field in section.model_fields.items()}
    shared = [name for name in said if judged.get(name) is not None]

    shared = [name for name in shared if name not in LISTS]

    assert shared
    assert {name: judged[name] for name in shared} == {name: said[name] for name in shared}


def test_no_other_file_repeats_the_property_of_a_file_system() -> None:
    repeated = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / "holdfast" / room).rglob("*.py")
        for name in NAMES
        if re.search(rf'["./]{re.escape(name)}"', path.read_text())
    }

    assert repeated <= SAID_ON_FIELDS


def test_the_reference_names_the_property_after_the_first_statement() -> None:
    assert meanings(Lustre)["efa"].startswith("Whether nodes reach it through EFA (API: EfaEnabled). It cannot")
    assert "API" not in meanings(Lustre)["preload"]


def test_a_property_is_read_from_what_an_api_tells() -> None:
    iops = Property(FILE_SYSTEM, "LustreConfiguration.MetadataConfiguration.Iops")

    assert iops.read({"LustreConfiguration": {"MetadataConfiguration": {"Iops": 6000}}}) == 6000
    assert iops.read({"LustreConfiguration": {}}) is None
    assert iops.read(None) is None
    assert Property(FILE_SYSTEM, "StorageType", "SSD").read({}) == "SSD"
    assert (iops.name, iops.pointer) == ("Iops", "LustreConfiguration/MetadataConfiguration/Iops")
