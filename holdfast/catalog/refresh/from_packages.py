"""
The facts that packages know, as data and as a page: ``python -m holdfast.catalog.refresh``.

To run after upgrades of moto; a test detects that it was forgotten.
"""

import fnmatch
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from holdfast.catalog.facts import (
    ASKED,
    HYPERPOD_TYPES,
    LAMBDA_RUNTIMES,
    POLICIES_FILE,
    ZONES_FILE,
    facts_date,
    forget,
    page_facts,
)

_INTRO = """\
# Facts

`holdfast check` judges by facts that move: what a region has, until when a version is supported.
Each has a source and a date; none is asked for over the network.

Facts of cfn-lint and botocore are those of the installed version. Facts of moto are data in `holdfast/catalog`,
refreshed by

    python -m holdfast.catalog.refresh

after an upgrade; a test fails when they are not what the pinned moto gives.
Versions are judged relative to the day on which `check` runs; without a clock, to the date of the schemas.

## From packages

| facts | source | date |
|---|---|---|
"""

_PAGES = """
## From AWS's pages alone

| facts | source | read on |
|---|---|---|
"""


def write_facts() -> None:
    ZONES_FILE.write_text(zones_text())
    POLICIES_FILE.write_text(policies_text())
    forget()


def zones_text() -> str:
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    ends: dict[str, set[str]] = {}
    for zones in RegionsAndZonesBackend.zones.values():
        for zone in zones:
            if zone.zone_type == "availability-zone":
                for name in (zone.name, zone.zone_id):
                    ends.setdefault(name[:-1], set()).add(name[-1])
    return _lines({family: "".join(sorted(each)) for family, each in sorted(ends.items())})


def policies_text() -> str:
    from moto.iam.aws_managed_policies import aws_managed_policies_data

    policies = json.loads(aws_managed_policies_data)
    return _lines(
        {
            "policies": {
                name: [each["Path"].lstrip("/"), _allowed(each["Document"])] for name, each in sorted(policies.items())
            }
        }
    )


def _allowed(document: Mapping[str, Any]) -> str:
    statements = document["Statement"]
    patterns: list[str] = []
    for each in statements if isinstance(statements, list) else [statements]:
        actions = each.get("Action", [])
        if each["Effect"] == "Allow":
            patterns += [actions] if isinstance(actions, str) else actions
    return _bits(any(fnmatch.fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns) for action in ASKED)


def page_text() -> str:
    day = facts_date().isoformat()
    lint, moto = f"cfn-lint {version('cfn-lint')}", f"moto {version('moto')}"
    sources = {
        "partitions and regions": f"botocore {version('botocore')}, partitions.json",
        "resource types by region": f"{lint}, schemas/providers",
        "HyperPod's instance types by region": f"{lint}, {HYPERPOD_TYPES}; P, Trn, Inf where EC2 has them",
        "zones of regions": f"{moto}, ec2",
        "properties and attributes of resource types": f"{lint}, schemas/resources",
        "actions of IAM": f"{lint}, AdditionalSpecs/Policies.json",
        "AWS managed policies": f"{moto}, iam/aws_managed_policies",
        "runtimes of Lambda": f"{lint}, {LAMBDA_RUNTIMES}",
    }
    parts = [f"| {what} | {source} | {day} |\n" for what, source in sources.items()]
    pages = [
        f"| {name.replace('_', ' ')} | {entry['source']} | {entry['date']} |\n" for name, entry in page_facts().items()
    ]
    return "".join([_INTRO, *parts, _PAGES, *pages])


def _bits(there: Any) -> str:
    return f"{sum(1 << index for index, each in enumerate(there) if each):x}"


def _lines(data: Mapping[str, Any]) -> str:
    sections = []
    for name, value in data.items():
        if isinstance(value, dict):
            rows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(each)}" for key, each in value.items())
            sections.append(f"  {json.dumps(name)}: {{\n{rows}\n  }}")
        else:
            sections.append(f"  {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(sections) + "\n}\n"
