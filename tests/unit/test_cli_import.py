"""What ``holdfast import`` writes and says."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli._errors import CommandError
from holdfast.cli._import import import_cluster
from holdfast.config import load

CASES = Path(__file__).parents[1] / "cases" / "import"
SAMPLES = (
    "--config",
    str(CASES / "cluster-config.json"),
    "--provisioning",
    str(CASES / "provisioning_parameters.json"),
)
APP = typer.Typer()
APP.command()(import_cluster)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(APP, list(arguments))


def test_a_new_file_is_written_that_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"

    answer = run(*SAMPLES, "--output", str(path))

    assert answer.exit_code == 0
    assert answer.stdout == ""
    assert load(path).cluster_name == "ml-cluster"


def test_the_file_is_printed_and_what_is_missing_is_told_apart_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    import_cluster(
        config=CASES / "cluster-config.json", provisioning=CASES / "provisioning_parameters.json", cloud="aws"
    )
    printed = capsys.readouterr()

    assert printed.out.startswith("# yaml-language-server")
    assert "storage.lustre: DECIDE: size and throughput" in printed.err
    assert printed.err.endswith("to decide: 4; not carried over: 14; next: holdfast check FILE\n")


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")

    answer = run(*SAMPLES, "--output", str(path))

    assert str(answer.exception) == f"{path} is there already; name a new file"
    assert path.read_text() == "name: mine\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cluster.json:1: no JSON"),
        ("[]", "holds no object of settings"),
        ('{"InstanceGroups": []}', "has no ClusterName: it is no request of CreateCluster"),
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
        assert "either --cluster NAME, or --config" in str(run(*arguments).exception)


def test_rejects_a_cluster_without_a_region() -> None:
    assert "add --region" in str(run("--cluster", "a").exception)
