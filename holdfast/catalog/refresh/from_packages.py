"""
The facts that packages know, as data and as a page: ``python -m holdfast.catalog.refresh``.

To run after upgrades of cfn-lint or botocore; a test detects that it was forgotten.
"""

import fnmatch
import importlib.util
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from holdfast.catalog.facts import (
    ASKED,
    POLICIES_FILE,
    REGIONS_FILE,
    VERSIONS_FILE,
    facts_date,
    forget,
    page_facts,
    sources,
)

HYPERPOD_TYPES = "schemas/extensions/aws_sagemaker_cluster/instancetype_enum.json"
RDS_VERSIONS = "schemas/extensions/aws_rds_dbinstance/engine_version.json"
ENGINES = ("mariadb", "mysql", "postgres", "aurora-mysql", "aurora-postgresql")

_INTRO = """\
# Facts

`holdfast check` judges by facts that move: what a region has, until when a version is supported.
Each is data in `holdfast/catalog` with a source and a date; none is asked for over the network.

What packages know is refreshed by one command, after the package was upgraded:

    python -m holdfast.catalog.refresh

A test fails when the committed data are not what the pinned packages give.
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
    REGIONS_FILE.write_text(regions_text())
    VERSIONS_FILE.write_text(versions_text())
    POLICIES_FILE.write_text(policies_text())
    forget()


def regions_text() -> str:
    folder = _data_of("cfnlint") / "data"
    by_region = {
        region: set(each["enum"])
        for region, each in sorted(json.loads((folder / HYPERPOD_TYPES).read_text()).items())
        if isinstance(each, dict)
    }
    ec2 = {region: set(each["enum"]) for region, each in _ec2(folder).items()}
    everywhere = set().union(*ec2.values())
    for region, names in by_region.items():
        # A price that SageMaker has for a type says nothing where EC2 does not have it.
        names -= {
            name
            for name in names
            if name[3:].startswith(("p", "trn", "inf")) and name[3:] in everywhere - ec2.get(region, everywhere)
        }
    instance_types = sorted(set().union(*by_region.values()))
    partitions = json.loads((_data_of("botocore") / "data/partitions.json").read_text())["partitions"]
    return _lines(
        {
            "partitions": {
                each["id"]: {
                    "suffix": each["outputs"]["dnsSuffix"],
                    "regions": sorted(name for name in each["regions"] if not name.endswith("-global")),
                }
                for each in partitions
            },
            "zones": _zones(),
            "instance_order": list(by_region),
            "instance_types": {name: _bits(name in each for each in by_region.values()) for name in instance_types},
        }
    )


def versions_text() -> str:
    folder = _data_of("cfnlint") / "data"
    schemas = json.loads((folder / "schemas/version.json").read_text())["schema_date"][:10]
    runtimes = json.loads((folder / "AdditionalSpecs/LmbdRuntimeLifecycle.json").read_text())
    lint, core = f"cfn-lint {version('cfn-lint')}", f"botocore {version('botocore')}"
    return _lines(
        {
            "date": schemas,
            "sources": {
                "partitions and regions": f"{core}, partitions.json",
                "resource types by region": f"{lint}, schemas/providers, read where it is installed",
                "HyperPod's instance types by region": f"{lint}, {HYPERPOD_TYPES}; P, Trn, Inf where EC2 has them",
                "zones of regions": f"moto {version('moto')}, ec2",
                "properties and attributes of resource types": f"{lint}, schemas/resources, read where it is installed",
                "actions of IAM": f"{lint}, AdditionalSpecs/Policies.json, read where it is installed",
                "AWS managed policies": f"moto {version('moto')}, iam/aws_managed_policies",
                "runtimes of Lambda": f"{lint}, AdditionalSpecs/LmbdRuntimeLifecycle.json",
                "versions of databases": f"{lint}, {RDS_VERSIONS}",
            },
            "lambda_runtimes": {
                name: {
                    "deprecated": each["deprecated"],
                    "create_block": each["create-block"],
                    "successor": each["successor"],
                }
                for name, each in sorted(runtimes.items())
            },
            "rds_versions": _engines(json.loads((folder / RDS_VERSIONS).read_text())),
        }
    )


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
    parts = [f"| {what} | {source} | {day} |\n" for what, source in sources().items()]
    pages = [
        f"| {name.replace('_', ' ')} | {entry['source']} | {entry['date']} |\n" for name, entry in page_facts().items()
    ]
    return "".join([_INTRO, *parts, _PAGES, *pages])


def _ec2(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "schemas/extensions/aws_ec2_instance/instancetype_enum.json").read_text())
    return {region: each for region, each in data.items() if isinstance(each, dict)}


def _zones() -> dict[str, str]:
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    return {
        region: "".join(sorted({zone.name[-1] for zone in zones if zone.zone_type == "availability-zone"}))
        for region, zones in sorted(RegionsAndZonesBackend.zones.items())
    }


def _engines(data: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for branch in data["allOf"]:
        engine = branch["if"]["properties"].get("Engine", {}).get("const")
        versions = branch["then"]["properties"].get("EngineVersion", {}).get("enum")
        if engine in ENGINES and versions:
            found[engine] = sorted(map(str, versions))
    return found


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


def _data_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.submodule_search_locations is not None, f"{package} is a module without data"
    return Path(spec.submodule_search_locations[0])
