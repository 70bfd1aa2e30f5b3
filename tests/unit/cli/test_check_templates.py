"""``holdfast check`` of templates: what is printed, as text, as JSON, and as SARIF that code scanning takes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import yaml
from typer.testing import CliRunner

from holdfast.cli.commands.environment import check
from holdfast.cli.terminal import CommandError

CASES = Path(__file__).parents[2] / "cases" / "templates"

app = typer.Typer()
app.command()(check.check)

RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
    "properties": {
        "level": {"enum": ["error", "warning", "note", "none"]},
        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "partialFingerprints": {"type": "object", "required": ["primaryLocationLineHash"]},
        "locations": {
            "type": "array",
            "minItems": 1,
            "items": {
                "required": ["physicalLocation"],
                "properties": {
                    "physicalLocation": {
                        "required": ["artifactLocation", "region"],
                        "properties": {
                            "artifactLocation": {
                                "required": ["uri"],
                                "properties": {"uri": {"type": "string", "pattern": "^[^ /][^ ]*$"}},
                            },
                            "region": {
                                "required": ["startLine"],
                                "properties": {"startLine": {"type": "integer", "minimum": 1}},
                            },
                        },
                    }
                },
            },
        },
    },
    # SARIF 2.1.0, 3.27.9: what is no failure has no level.
    "if": {"required": ["kind"], "properties": {"kind": {"not": {"const": "fail"}}}},
    "then": {"properties": {"level": {"const": "none"}}},
}
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "results": {"type": "array", "items": RESULT},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name", "rules", "semanticVersion"],
                                "properties": {
                                    "rules": {
                                        "items": {
                                            "required": ["id", "shortDescription", "fullDescription", "help"],
                                            "properties": {
                                                "shortDescription": {"required": ["text"]},
                                                "fullDescription": {
                                                    "required": ["text"],
                                                    "properties": {"text": {"maxLength": 1024}},
                                                },
                                                "help": {"required": ["text"]},
                                            },
                                        }
                                    }
                                },
                            }
                        },
                    },
                },
            },
        },
    },
}
"""What code scanning needs (GitHub Docs, "SARIF support for code scanning"), in the forms of the standard."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*arguments, "--offline"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def template(folder: Path, name: str, change: Any = None) -> str:
    body = json.loads((CASES / f"{name}.json").read_text())
    if change is not None:
        change(body["Resources"]["Cluster"]["Properties"])
    (folder / "stack.yaml").write_text(yaml.safe_dump(body, sort_keys=False))
    return "stack.yaml"


def unknown_network(properties: dict[str, Any]) -> None:
    properties["VpcConfig"] = {"Subnets": [{"Ref": "Subnet"}], "SecurityGroupIds": [{"Ref": "Group"}]}


def test_a_yaml_template_is_checked_with_lines(folder: Path) -> None:
    code, output = run(template(folder, "eight-defects"))

    lines = (folder / "stack.yaml").read_text().splitlines()
    (told,) = [line for line in output.splitlines() if line.startswith("error HF407")]
    number = int(told.split("stack.yaml:")[1].split()[0])
    assert code == 1
    assert "PartitionNames" in lines[number - 1]


def test_json_has_file_line_and_path_of_each_finding(folder: Path) -> None:
    _, output = run(template(folder, "eight-defects"), "--format", "json")

    findings = json.loads(output)
    assert {finding["file"] for finding in findings} == {"stack.yaml"}
    assert all(isinstance(finding["line"], int) for finding in findings)
    assert all(finding["path"].startswith("Resources.") for finding in findings)


def test_what_was_not_checked_is_told_once_a_cause_and_each_by_itself_in_json(folder: Path) -> None:
    file = template(folder, "eight-defects.clean", unknown_network)
    text = run(file)[1]
    each = [finding for finding in json.loads(run(file, "--json")[1]) if finding["severity"] == "not-checked"]

    blocks = [line for line in text.splitlines() if line.startswith("not-checked ")]
    causes = {finding["cause"] for finding in each}
    assert len(blocks) == len(causes) < len(each)
    assert text.count("the value of Subnet is not known before deployment") == 1
    assert f"{len(each)} not checked for {len(causes)} reasons" in text


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.json")))
def test_sarif_is_what_code_scanning_takes(name: str, folder: Path) -> None:
    log = json.loads(run(template(folder, name, unknown_network), "--format", "sarif")[1])

    jsonschema.validate(log, SARIF)
    results = log["runs"][0]["results"]
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in results)
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]
    assert len(prints) == len(set(prints))
    assert "open" in {result.get("kind", "fail") for result in results}


def test_sarif_links_to_the_page_of_a_rule_once_there_is_a_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rules() -> list[dict[str, Any]]:
        log = json.loads(run(template(folder, "eight-defects", unknown_network), "--format", "sarif")[1])
        found: list[dict[str, Any]] = log["runs"][0]["tool"]["driver"]["rules"]
        return found

    assert [rule for rule in rules() if "helpUri" in rule] == []
    monkeypatch.setattr("holdfast.cli.findings.sarif.site_url", lambda: "https://docs.example.com")
    ours = [rule for rule in rules() if rule["id"].startswith("HF")]
    assert {rule["helpUri"] for rule in ours} == {
        f"https://docs.example.com/reference/findings/{rule['id']}.html" for rule in ours
    }
    assert all("cfn-lint" in rule["help"]["text"] for rule in rules() if rule not in ours)


def test_sarif_of_an_environment_and_of_what_cannot_be_read_is_valid_too(folder: Path) -> None:
    (folder / "broken.yaml").write_text("Resources: [")
    for name, expected in (("local", 0), ("broken.yaml", 2)):
        code, output = run(name, "--format", "sarif")

        jsonschema.validate(json.loads(output), SARIF)
        assert code == expected


def test_a_finding_keeps_its_fingerprint_when_lines_move(folder: Path) -> None:
    file = template(folder, "eight-defects")
    before = json.loads(run(file, "--format", "sarif")[1])["runs"][0]["results"]
    (folder / file).write_text("# a comment\n\n" + (folder / file).read_text())
    after = json.loads(run(file, "--format", "sarif")[1])["runs"][0]["results"]

    def prints(results: list[dict[str, Any]]) -> list[str]:
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    assert prints(before) == prints(after)
    assert before != after


def test_region_and_parameters_are_for_templates(folder: Path) -> None:
    with pytest.raises(CommandError, match="allowed: with a template"):
        run("local", "--region", "us-west-2")
    with pytest.raises(CommandError, match="allowed: NAME=VALUE"):
        run(template(folder, "eight-defects"), "--parameters", "Size")
    with pytest.raises(CommandError, match="the parameter Size; the template has: none"):
        run(template(folder, "eight-defects"), "--parameters", "Demo:Size=large")


def test_a_template_in_another_region_than_its_zones_is_told(folder: Path) -> None:
    file = template(folder, "storage-defects.clean")
    body = yaml.safe_load((folder / file).read_text())
    body["Resources"]["NodesSubnet"]["Properties"]["AvailabilityZone"] = "us-west-2a"
    (folder / file).write_text(yaml.safe_dump(body))
    here = json.loads(run(file, "--region", "us-west-2", "--json")[1])
    there = json.loads(run(file, "--region", "eu-west-1", "--json")[1])

    assert "HF210" not in {finding["code"] for finding in here if finding["severity"] == "error"}
    assert "HF210" in {finding["code"] for finding in there if finding["severity"] == "error"}
