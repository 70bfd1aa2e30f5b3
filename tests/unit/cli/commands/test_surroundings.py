"""What surrounds a command, said in words: variables, credentials, folders in the place of files."""

from pathlib import Path

import pytest
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.terminal import PIPE_WIDTH, stream_width
from holdfast.localcloud import LocalCloudError, from_environment


def said(*words: str) -> str:
    return str(CliRunner().invoke(cli.app, list(words)).exception)


def test_an_empty_home_is_not_the_folder_that_somebody_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", "")
    with pytest.raises(LocalCloudError, match="HOLDFAST_HOME is empty; allowed: a folder"):
        from_environment()


def test_a_region_that_none_can_be_is_not_handed_to_a_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    assert "got --region 'x'; allowed: a region of AWS" in said("env", "--region", "x")


def test_whoever_has_no_credentials_is_told_how_to_get_some(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask(**_: object) -> None:
        raise NoCredentialsError

    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("holdfast.cli.entry_point.app", ask)
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 2
    assert "AWS_PROFILE" in capsys.readouterr().err


def test_a_folder_that_is_no_assembly_is_told_from_one(tmp_path: Path) -> None:
    assert "allowed: a file, or what cdk synth writes" in said("check", str(tmp_path))


@pytest.mark.parametrize(("columns", "width"), [(None, PIPE_WIDTH), ("80", None)])
def test_output_to_a_pipe_is_as_wide_as_columns_says(
    monkeypatch: pytest.MonkeyPatch, columns: str | None, width: int | None
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    with Path("/dev/null").open() as pipe:
        assert stream_width(pipe) == width
