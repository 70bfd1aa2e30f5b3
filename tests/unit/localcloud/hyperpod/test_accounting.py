"""The database of Slurm's accounting that a controller gets: made alone, and again where it could not be made."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from waiting import eventually

from holdfast.localcloud.hyperpod.slurm import SlurmClusters, SlurmError


class Installing:
    """`mariadb-install-db`, of which the first attempts fail."""

    def __init__(self, *, failures: int) -> None:
        self.commands: list[list[str]] = []
        self._failures = failures

    def __call__(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        failed = len(self.commands) <= self._failures
        return subprocess.CompletedProcess(command, int(failed), "", "Unknown table" if failed else "")


class Controller:
    """One that has neither settings nor data."""

    spec = SimpleNamespace(instance_id="i-1")
    pid = 1

    def read_file(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    def inside(self, path: str) -> Path:
        return Path("/nonexistent") / path


def test_its_temporary_tables_are_out_of_reach_of_other_servers_that_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installing = Installing(failures=0)
    monkeypatch.setattr(subprocess, "run", installing)
    monkeypatch.setattr("shutil.which", lambda name, path: name)
    accounting = SlurmClusters(home=tmp_path).accounting
    accounting.prepare()

    eventually(lambda: (tmp_path / "hyperpod/accounting/template").is_dir())
    (tables,) = [word for word in installing.commands[0] if word.startswith("--tmpdir=")]
    assert Path(tables.removeprefix("--tmpdir=")).parent == tmp_path / "hyperpod/accounting"
    assert [path.name for path in (tmp_path / "hyperpod/accounting").iterdir() if path.name.startswith("tables")] == []


def test_one_that_could_not_be_made_is_made_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installing = Installing(failures=1)
    monkeypatch.setattr(subprocess, "run", installing)
    monkeypatch.setattr("shutil.which", lambda name, path: name)
    accounting = SlurmClusters(home=tmp_path).accounting
    accounting.prepare()

    with pytest.raises(SlurmError, match="cannot create the database for Slurm's accounting: Unknown table"):
        accounting.start(cast("Any", Controller()))
    eventually(lambda: (tmp_path / "hyperpod/accounting/template").is_dir())
