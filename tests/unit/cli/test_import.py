"""What ``holdfast import`` writes and says."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from holdfast.cli.commands.environment import import_
from holdfast.cli.deployed import Session
from holdfast.cli.terminal import CommandError
from holdfast.config import load
from holdfast.localcloud.home import claim
from holdfast.validation.from_environment import check

CASES = Path(__file__).parents[2] / "cases" / "import"
SAMPLES = (
    "--config",
    str(CASES / "cluster-config.json"),
    "--provisioning",
    str(CASES / "provisioning_parameters.json"),
)
APP = typer.Typer()
APP.command()(import_.import_cluster)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(APP, list(arguments))


def test_a_new_file_is_written_that_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"

    answer = run(*SAMPLES, "--output", str(path))

    assert answer.exit_code == 0
    assert answer.stdout == ""
    assert load(path).cluster_name == "ml-cluster"


def test_the_file_is_printed_and_what_is_missing_is_told_apart_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    import_.import_cluster(
        config=[CASES / "cluster-config.json"], provisioning=CASES / "provisioning_parameters.json", cloud="aws"
    )
    printed = capsys.readouterr()

    assert printed.out.startswith("# Imported from ")
    assert "lifecycle.existing.source_s3_uri: DECIDE: HyperPod refuses" in printed.err
    assert printed.err.endswith("to decide: 6; remarks: 10; next: holdfast check FILE\n")


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")

    answer = run(*SAMPLES, "--output", str(path))

    assert str(answer.exception) == f"got --output {path}, which exists; allowed: a new file"
    assert path.read_text() == "name: mine\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cluster.json:1: no JSON"),
        ("[]", "cluster.json holds a list of something else; allowed: a request of CreateCluster"),
        ('{"InstanceGroups": []}', "cluster.json: it is no request of CreateCluster"),
    ],
)
def test_rejects_what_is_no_configuration(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(content)

    answer = run("--config", str(path))

    assert isinstance(answer.exception, CommandError)
    assert words in str(answer.exception)


def test_rejects_a_command_that_does_not_say_what_to_import() -> None:
    for arguments in ((), ("--cluster", "a", "--config", "b")):
        assert "exactly one source: --cluster NAME or --config FILE" in str(run(*arguments).exception)


def test_rejects_a_part_that_nothing_is_made_of() -> None:
    answer = run(*SAMPLES, "--create", "nodes")

    assert str(answer.exception) == "got --create nodes; allowed: eks, network, roles, scripts, storage"


def test_files_without_a_name_get_the_one_that_is_given(tmp_path: Path) -> None:
    groups = tmp_path / "instance-groups.json"
    role = "arn:aws:iam::111122223333:role/nodes"
    groups.write_text(json.dumps([{"InstanceGroupName": "a", "InstanceCount": 1, "ExecutionRole": role}]))

    nameless = run("--config", str(groups))
    named = run("--config", str(groups), "--name", "my-cluster", "--region", "us-west-2")

    assert str(nameless.exception).endswith("no ClusterName; add --name, such as --name my-cluster")
    assert yaml.safe_load(named.stdout)["name"] == "my-cluster"


def test_what_is_printed_is_refused_by_check_until_it_is_decided(tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"
    run(*SAMPLES, "--output", str(path))
    open_questions = {each.code for each in check(path).findings if each.severity == "error"}
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "DECIDE" not in line))

    assert "HF013" in open_questions
    assert "HF013" not in {each.code for each in check(path).findings}


def test_rejects_a_cluster_without_a_region() -> None:
    assert "add --region" in str(run("--cluster", "a").exception)


def test_a_local_cluster_is_imported_from_the_region_that_it_is_deployed_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    claim(tmp_path)
    Session(environment="x", cloud="embedded", region="eu-north-1", stack_name="x", cluster_name="a", port=1).save(
        home=tmp_path
    )
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))

    def read_cluster(*_: object, region: str, **__: object) -> object:
        asked.append(region)
        raise CommandError("far enough")

    monkeypatch.setattr("holdfast.importing.read_cluster", read_cluster)
    run("--cluster", "a", "--cloud", "embedded")

    assert asked == ["eu-north-1"]
