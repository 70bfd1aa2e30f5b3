"""The schema for editors is up to date, and says something about every setting."""

import json
import subprocess
import sys
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from holdfast.config import Environment
from holdfast.config.pages import schema_text
from holdfast.config.reading import allowed_at


def test_the_committed_schema_is_up_to_date(repository: Path) -> None:
    assert (repository / "docs" / "environment.schema.json").read_text() == schema_text(), "run: make schema"


@pytest.mark.parametrize("name", ["local", "slurm-p5"])
def test_the_environments_satisfy_the_schema(name: str, repository: Path) -> None:
    data = yaml.safe_load((repository / "environments" / f"{name}.yaml").read_text())

    assert list(jsonschema.Draft202012Validator(json.loads(schema_text())).iter_errors(data)) == []


@pytest.mark.parametrize(
    ("setting", "known", "new", "wrong"),
    [
        ("region", "us-west-2", "mx-central-1", "ohio"),
        ("Eks.kubernetes_version", "1.34", "1.99", "1.34.1"),
        ("InstanceGroup.instance_type", "ml.p5.48xlarge", "", "p5.48xlarge"),
        ("InstanceGroup.instance_types.items", "ml.p5.48xlarge", "", "p5.48xlarge"),
    ],
)
def test_an_editor_completes_known_values_and_takes_those_that_holdfast_accepts(
    setting: str, known: str, new: str, wrong: str
) -> None:
    schema = json.loads(schema_text())
    *section, name = setting.removesuffix(".items").split(".")
    node = schema["$defs"][section[0]]["properties"][name] if section else schema["properties"][name]
    if setting.endswith(".items"):
        node = next(each["items"] for each in node["anyOf"] if "items" in each)
    offered = [value for option in [node, *node.get("anyOf", ())] for value in option.get("enum", ())]
    accepts = jsonschema.Draft202012Validator(node).is_valid

    assert known in offered
    assert [accepts(value) for value in (known, new, wrong)] == [True, bool(new), False]


def test_the_schema_names_its_address_once_there_is_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "$id" not in json.loads(schema_text())
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: _metadata("https://docs.example.com"))
    assert json.loads(schema_text())["$id"] == "https://docs.example.com/environment.schema.json"


def _metadata(site: str) -> Message:
    found = Message()
    found["Project-URL"] = f"Documentation, {site}"
    return found


def test_every_setting_is_described_and_every_optional_one_names_its_default() -> None:
    schema = json.loads(schema_text())
    for section in (schema, *schema["$defs"].values()):
        for name, setting in section.get("properties", {}).items():
            assert setting.get("description"), name
            if name not in section.get("required", ()):
                assert "Default: " in setting["description"], name


def test_every_setting_can_be_explained() -> None:
    for location in locations(Environment, ()):
        assert allowed_at(location).text


def test_importing_the_config_loads_nothing_slow() -> None:
    program = (
        "import sys, holdfast.config; print([m for m in ('botocore', 'boto3', 'aws_cdk', 'moto') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)

    assert answer.stdout.strip() == "[]"


def locations(model: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    schema = model.model_json_schema()
    yield from _walk(schema, schema["$defs"], at)


def _walk(
    node: dict[str, Any], definitions: dict[str, Any], at: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    node = definitions[node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
    for option in node.get("anyOf", ()):
        if option != {"type": "null"}:
            yield from _walk(option, definitions, at)
    if "items" in node:
        yield (*at, 0)
        yield from _walk(node["items"], definitions, (*at, 0))
    for name, child in node.get("properties", {}).items():
        yield (*at, name)
        yield from _walk(child, definitions, (*at, name))


def test_each_setting_is_of_one_type_so_that_a_wrong_value_has_one_message() -> None:
    schema = json.loads(schema_text())
    several = [
        f"{section}.{name}"
        for section, node in {"": schema, **schema["$defs"]}.items()
        for name, setting in node.get("properties", {}).items()
        if len({each.get("type", each.get("$ref")) for each in setting.get("anyOf", ())} - {"null"}) > 1
    ]

    assert several == []
