"""Everything a machine lacks is named at once, with what to do."""

from pathlib import Path

import pytest

from holdfast.cli import _preflight
from holdfast.cli._errors import CommandError


@pytest.fixture
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the local cloud could run."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.check_host", staticmethod(list[str]))
    monkeypatch.setattr(_preflight, "_which", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setattr(_preflight, "MIN_FREE_GIB", 0.0)


pytestmark = pytest.mark.usefixtures("capable")


def test_a_capable_machine_passes(tmp_path: Path) -> None:
    assert "cores" in _preflight.check(home=tmp_path)


def test_another_operating_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    with pytest.raises(CommandError, match=r"needs Linux .*; this is Darwin"):
        _preflight.check(home=tmp_path)


def test_a_user_without_root_is_told_to_use_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(CommandError, match=r"needs root; run it with sudo"):
        _preflight.check(home=tmp_path)


def test_missing_programs_come_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_preflight, "_which", lambda program: None if program in ("slurmd", "munged") else program)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/apt-get")

    with pytest.raises(CommandError) as caught:
        _preflight.check(home=tmp_path)

    assert str(caught.value) == (
        "this machine cannot run the local cloud:\n"
        "- missing programs: munged, slurmd; install them with: apt-get install --no-install-recommends munge slurmd"
    )


def test_without_apt_the_package_manager_is_left_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_preflight, "_which", lambda program: None if program == "slurmd" else program)
    monkeypatch.setattr("shutil.which", lambda _: None)

    with pytest.raises(CommandError, match=r"missing programs: slurmd; install Slurm .* with your package manager"):
        _preflight.check(home=tmp_path)


def test_all_that_is_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_preflight, "_which", lambda program: None if program == "slurmd" else program)
    monkeypatch.setattr(_preflight, "MIN_FREE_GIB", 1e9)
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.check_host", staticmethod(lambda: ["no overlay file system"]))

    with pytest.raises(CommandError) as caught:
        _preflight.check(home=tmp_path / "not" / "there" / "yet")

    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert f"- {tmp_path} has" in str(caught.value)
    assert lines[-1] == "- no overlay file system"
