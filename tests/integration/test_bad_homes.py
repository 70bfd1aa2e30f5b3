"""Bad days of a home: a full disk under it, a read-only mount, and a `down` in the middle of another command."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.cli.deployed import Context, Session, UnreachableError, stored
from holdfast.cli.submission import make_environment
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud
from holdfast.localcloud.home import MARKER
from holdfast.localcloud.processes import HeldError

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts file systems of its own"),
]

SESSION = Session(environment="lab", cloud="embedded", region="us-west-2", stack_name="lab", cluster_name="lab", port=1)
AWS = """name: lab
account: "123456789012"
region: us-west-2
cloud: aws
network: {cidr: 10.0.0.0/16, availability_zone: us-west-2a}
cluster:
  instance_groups:
    - {name: head, instance_type: ml.m5.2xlarge, instance_count: 1, slurm: {node_type: Controller}}
    - {name: workers, instance_type: ml.g5.8xlarge, instance_count: 1, slurm: {node_type: Compute, partition: dev}}
slurm: {}
storage: {lustre: {capacity_gib: 1200, throughput_mbps_per_tib: 250}}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    at = tmp_path / "disk"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "small", str(at)], check=True)
    yield at
    subprocess.run(["umount", str(at)], check=True)


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    assert shutil.disk_usage(disk).free == 0


def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str]:
    """The exit code and what standard error has."""
    monkeypatch.setattr(sys, "argv", ["holdfast", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


def test_a_full_disk_is_what_up_names_first(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(disk)
    monkeypatch.setenv("HOLDFAST_HOME", str(disk / "home"))

    code, said = typed(monkeypatch, capsys, "up", "local")

    assert code == 2
    lines = said.splitlines()
    assert lines[0] == "holdfast: this machine cannot run the local cloud:"
    assert lines[1] == f"- {disk / 'home'} has 0.0 GiB free; at least 3 GiB are needed; free some space"
    assert not (disk / "home").exists()


def test_a_file_of_a_home_for_which_there_is_no_room_is_named(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(disk)
    (tmp_path / "lab.yaml").write_text(AWS)
    monkeypatch.setenv("HOLDFAST_HOME", str(disk / "home"))

    code, said = typed(monkeypatch, capsys, "up", str(tmp_path / "lab.yaml"))

    assert (code, said) == (
        2,
        f"holdfast: {disk / 'home' / MARKER} cannot be written, the disk is full; free some space there\n",
    )
    assert not (disk / "home").exists()


def test_down_frees_a_full_disk(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    local = LocalCloud(home=disk / "home")
    local.claim()
    fill(disk)
    monkeypatch.setenv("HOLDFAST_HOME", str(local.home))
    monkeypatch.setattr(sys, "argv", ["holdfast", "down"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (0, None), capsys.readouterr().err
    assert not local.home.exists()


def test_on_a_full_disk_a_home_is_held_all_the_same(disk: Path) -> None:
    local = LocalCloud(home=disk / "home")
    local.claim()
    with local.held(verb="up"):
        fill(disk)
        with pytest.raises(HeldError, match=rf"holdfast up \(pid {os.getpid()}\) is using"), local.held(verb="down"):
            raise AssertionError
    with local.held(verb="rehearse"), pytest.raises(HeldError, match="holdfast rehearse"), local.held(verb="down"):
        raise AssertionError


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        (True, ("up", "local")),
        (True, ("down",)),
        (True, ("images", "remove", "x")),
        (False, ("up", "local")),
        (False, ("images", "remove", "x")),
    ],
)
def test_a_home_on_a_read_only_mount_is_told_in_one_line(
    claimed: bool,
    words: tuple[str, ...],
    disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = disk / "home"
    if claimed:
        LocalCloud(home=home).claim()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    monkeypatch.setenv("HOLDFAST_HOME", str(home))

    assert typed(monkeypatch, capsys, *words) == (
        2,
        f"holdfast: {home} is on a file system that is mounted read-only; mount it for writing, "
        "or name another folder with HOLDFAST_HOME=<folder>\n",
    )
    assert home.exists() == claimed


@pytest.mark.e2e  # it makes a Python environment
def test_packages_are_built_under_the_home_whatever_room_tmpdir_has(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(disk)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.setattr("holdfast.cli.submission.packages.jobs_prefix", lambda _: ("bucket", "jobs", "/fsx/jobs"))
    put: list[Path] = []
    monkeypatch.setattr("holdfast.cli.submission.packages._put", lambda _, made, **__: put.append(made))
    local = LocalCloud(home=tmp_path / "home")
    local.claim()
    (tmp_path / "requirements.txt").write_text("")
    context = Context(session=SESSION, local=local)

    made = make_environment(context, file=tmp_path / "requirements.txt", name="mine", user="ubuntu", pip=())

    assert (made.path, made.packages) == ("/fsx/envs/mine", ())
    assert put[0].is_relative_to(local.home)
    assert list((local.home / "packages").iterdir()) == []
    local.remove()
    assert not local.home.exists()


def test_a_full_folder_of_temporary_files_is_named(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(disk)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    with pytest.raises(CommandError, match=rf"in {disk}: No space left on device; free some space there, or name"):
        stored([b"{}\n"] * 1_000)


def test_a_machine_without_any_folder_for_temporary_files_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/proc/none"])
    with pytest.raises(CommandError, match=r"No usable temporary directory found in \['/proc/none'\]; free some space"):
        stored([])


def taken_down(home: Path) -> None:
    local = LocalCloud(home=home)
    with local.held(verb="down"):
        local.remove()


def going_down(home: Path) -> None:
    """By another process that is in the middle of it; its record is what shows that."""
    record = {"pid": 1, "start_ticks": ticks(1), "verb": "down", "since": 0.0, "removing": True}
    (home / ".holdfast-command").write_text(json.dumps(record).ljust(256))


def ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.mark.parametrize("meanwhile", [taken_down, going_down])
@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("localhost:5710 does not answer"),
        CommandError("tar on ip-10-1-0-4 ended with -9", exit_code=1),
        ConnectionResetError(104, "Connection reset by peer"),
        FileNotFoundError(2, "No such file or directory", "node.json"),
        KeyError("NodeRecord"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_command_whose_home_is_taken_down_meanwhile_says_so_in_one_line(
    error: Exception,
    meanwhile: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    LocalCloud(home=home).claim()
    monkeypatch.setenv("HOLDFAST_HOME", str(home))

    def submit(**_: object) -> None:
        meanwhile(home)
        raise error

    monkeypatch.setattr("holdfast.cli.entry_point.app", submit)

    code, said = typed(monkeypatch, capsys, "submit", "job.sbatch")

    by = " by holdfast down (pid 1)" if meanwhile is going_down else ""
    assert code == (1 if isinstance(error, CommandError) else 2)
    assert said == (
        f"holdfast: the local cloud in {home} was taken down{by} while this command ran; "
        "restart it with: holdfast up ENV\n"
    )


def test_a_failure_in_a_home_that_stays_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    LocalCloud(home=tmp_path / "home").claim()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))

    def submit(**_: object) -> None:
        raise CommandError("no such job")

    monkeypatch.setattr("holdfast.cli.entry_point.app", submit)
    assert typed(monkeypatch, capsys, "submit", "job.sbatch") == (2, "holdfast: no such job\n")
