"""The build of the Kubernetes binaries is cut off, refused and started twice; fast programs stand for slow ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import eventually

from holdfast.localcloud.kubernetes.binaries import (
    COMPONENTS,
    PROGRAMS,
    Binaries,
    BinariesError,
    build,
    compiled,
    find_binaries,
    observe_machine,
    only_one,
)

BUILDING = "holdfast.localcloud.kubernetes.binaries"
CUT_OFF = """
import os, pathlib, sys
from holdfast.localcloud.kubernetes.binaries import Step, go_through, only_one, run

folder, hangs = pathlib.Path(sys.argv[1]), sys.argv[2] == "hangs"

def first(note):
    with (folder / "first").open("a") as file:
        file.write("done\\n")

def second(note):
    (folder / "second").write_text("half")
    if hangs:
        tell = f"echo $$ > {folder}/child; exec sleep 600"
        run(["sh", "-c", tell], env=os.environ, deadline_s=600)
    (folder / "second").write_text("whole")

with only_one(folder):
    go_through([Step(name="1", title="one", run=first), Step(name="2", title="two", run=second)], work=folder / "work")
"""


@pytest.fixture(autouse=True)
def without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of ours: everything comes from the folder of official ones."""
    monkeypatch.setattr(f"{BUILDING}.recipe.FOLDERS", {})
    monkeypatch.setattr(f"{BUILDING}.building.MIN_FREE_GIB", 0.0)


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """A folder with every program, as a release has them."""
    folder = tmp_path / "official"
    folder.mkdir()
    for name in (*COMPONENTS, *(Path(name).name for name in PROGRAMS)):
        (folder / name).write_text(f"#!/bin/sh\necho Kubernetes v1.31.4 # {name}\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_build_that_is_killed_goes_on_with_the_step_that_it_was_in(tmp_path: Path) -> None:
    program = [sys.executable, "-c", CUT_OFF, str(tmp_path)]
    child = tmp_path / "child"
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen([*program, "hangs"], env=environment) as building:
        eventually(lambda: child.exists() and child.read_text().strip())
        building.send_signal(signal.SIGKILL)
    pid = int(child.read_text())

    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the end of the child")
    assert (tmp_path / "second").read_text() == "half"
    subprocess.run([*program, "ends"], env=environment, check=True, timeout=60)

    assert (tmp_path / "first").read_text() == "done\n"
    assert (tmp_path / "second").read_text() == "whole"


def test_a_second_build_is_refused_while_one_is_at_work(tmp_path: Path, official: Path) -> None:
    with only_one(tmp_path / "cache"), pytest.raises(BinariesError) as caught:
        build(cache=tmp_path / "cache", official=official)

    assert str(caught.value) == (
        f"another build is at work in {tmp_path}/cache (process {os.getpid()}); wait for it, or end it"
    )


def test_official_binaries_become_a_folder_that_is_found(tmp_path: Path, official: Path) -> None:
    made = build(cache=tmp_path / "cache", official=official)

    assert made.version == "1.31.4"
    assert not made.tried
    assert made.cni.joinpath("bridge").read_text().endswith("# bridge\n")
    assert find_binaries({"HOLDFAST_KUBERNETES": str(made.directory)}) == made
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name != ".lock"] == [made.directory.name]


def test_what_was_built_is_not_built_again(tmp_path: Path, official: Path) -> None:
    first = build(cache=tmp_path / "cache", official=official)
    written = (first.directory / "build.json").stat().st_mtime_ns

    assert build(cache=tmp_path / "cache", official=official) == first
    assert (first.directory / "build.json").stat().st_mtime_ns == written


def test_another_program_in_the_folder_is_another_build(tmp_path: Path, official: Path) -> None:
    first = build(cache=tmp_path / "cache", official=official)
    (official / "runc").write_text("#!/bin/sh\n# newer\n")

    second = build(cache=tmp_path / "cache", official=official)

    assert second.directory != first.directory
    assert "newer" in second.runc.read_text()


def test_components_of_several_versions_are_refused(tmp_path: Path, official: Path) -> None:
    (official / "kubelet").write_text("#!/bin/sh\necho Kubernetes v1.30.1\n")

    with pytest.raises(BinariesError, match=r"several versions \(.*kubelet 1\.30\.1.*\); take them from one release"):
        build(cache=tmp_path / "cache", official=official)


def test_a_folder_without_all_components_is_refused_before_anything_is_fetched(tmp_path: Path, official: Path) -> None:
    (official / "kube-proxy").unlink()

    with pytest.raises(BinariesError, match="lacks kube-proxy; put the five components of one version there"):
        build(cache=tmp_path / "cache", official=official)


def test_a_change_of_one_program_takes_the_other_from_the_build_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {name: tmp_path / f"{name}-sources" for name in ("hyperkube", "holdfast-stand-ins")}
    for folder in sources.values():
        folder.mkdir()
        (folder / "main.go").write_text("package main")
    monkeypatch.setattr(f"{BUILDING}.recipe.FOLDERS", sources)
    monkeypatch.setattr(f"{BUILDING}.collecting.FOLDERS", sources)
    earlier = tmp_path / "cache" / "0123456789abcdef"
    earlier.mkdir(parents=True)
    (earlier / "hyperkube").write_text("#!/bin/sh\necho Kubernetes v1.20.2\n")
    (earlier / "hyperkube").chmod(0o755)
    (earlier / "build.json").write_text(json.dumps({"compiled": {**compiled(), "holdfast-stand-ins": "of before"}}))
    done = []

    def fetched(work: Path, *, packages: list[str], source: str | None, note: object) -> None:
        done.append(f"fetch {source}")
        for _, path in PROGRAMS.values():
            (work / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
            (work / "tree" / path).touch()

    def compile_program(tree: object, program: str, note: object) -> None:
        done.append(f"compile {program}")
        (next((tmp_path / "cache").glob(".work-*")) / "built" / program).write_text(program)

    monkeypatch.setattr(f"{BUILDING}.building.fetch", fetched)
    monkeypatch.setattr(f"{BUILDING}.building.unpack", lambda work, note: None)
    monkeypatch.setattr(f"{BUILDING}.compiling.Tree.unpack", lambda tree, note: None)
    monkeypatch.setattr(f"{BUILDING}.compiling.Tree.compile", compile_program)

    made = build(cache=tmp_path / "cache")

    assert done == ["fetch kubernetes", "compile holdfast-stand-ins"]
    assert made.argv("kubelet") == [f"{made.directory}/hyperkube", "kubelet"]
    assert made.stand_ins is not None
    assert made.stand_ins.read_text() == "holdfast-stand-ins"


def test_binaries_of_a_user_with_an_open_mask_are_changed_by_nobody_else(tmp_path: Path, official: Path) -> None:
    before = os.umask(0)
    try:
        made = build(cache=tmp_path / "cache", official=official)
    finally:
        os.umask(before)

    assert find_binaries({"HOLDFAST_KUBERNETES": str(made.directory)}) == made


@pytest.fixture
def apt_get(tmp_path: Path, official: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of apt-get, and a build that has to ask it for runc."""
    (official / "runc").unlink()
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(f"{BUILDING}.packages.KEYRING", Path("/dev/null"))
    return program


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("E: Failed to fetch http://deb.debian.org/x  Could not connect", "Debian's packages cannot be fetched (E: "),
        ("E: Write error - write (28: No space left on device)", "the disk is full (apt-get); free some space and run"),
        ("E: Something else", "apt-get ended with 100: E: Something else"),
    ],
)
def test_a_fetch_that_fails_says_why_in_a_sentence(
    tmp_path: Path, official: Path, apt_get: Path, printed: str, said: str
) -> None:
    apt_get.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 100\n")
    apt_get.chmod(0o755)

    with pytest.raises(BinariesError) as caught:
        build(cache=tmp_path / "cache", official=official)

    assert str(caught.value).startswith(said)


def test_packages_that_are_installed_here_have_no_part_in_what_is_fetched(
    tmp_path: Path, official: Path, apt_get: Path
) -> None:
    # One of a newer Debian would be chosen, and no mirror of this one has it.
    asked = "apt-config dump --format '%f=%v%n' Dir::State::status"
    apt_get.write_text(f'#!/bin/sh\necho "E: $({asked})" >&2\nexit 100\n')
    apt_get.chmod(0o755)

    with pytest.raises(BinariesError, match=r"Dir::State::status=") as caught:
        build(cache=tmp_path / "cache", official=official)

    status = Path(str(caught.value).rpartition("=")[2])
    assert status.is_relative_to(tmp_path / "cache")
    assert status.read_text() == ""


def test_tools_that_are_missing_are_named_before_anything_is_fetched(
    tmp_path: Path, official: Path, apt_get: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "main.go").write_text("package main")
    monkeypatch.setattr(f"{BUILDING}.recipe.FOLDERS", {"holdfast-stand-ins": tmp_path / "sources"})
    monkeypatch.setattr(f"{BUILDING}.packages.KEYRING", tmp_path / "no keyring")
    apt_get.write_text("#!/bin/sh\nexit 100\n")
    apt_get.chmod(0o755)
    for name in ("dpkg-deb", "setpriv", "tar"):
        (apt_get.parent / name).symlink_to(apt_get)
    monkeypatch.setenv("PATH", str(apt_get.parent))
    for name in COMPONENTS:
        (official / name).write_text("#!/bin/sh\necho Kubernetes v1.31.4\n")

    with pytest.raises(BinariesError) as caught:
        build(cache=tmp_path / "cache", official=official)

    assert str(caught.value) == (
        "a build needs packages that are not installed; run: apt-get install debian-archive-keyring gzip"
    )
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_too_little_room_is_said_before_anything_is_fetched(
    tmp_path: Path, official: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{BUILDING}.building.MIN_FREE_GIB", 1e9)

    with pytest.raises(BinariesError, match=r"GiB free and a build needs 1e\+09 GiB; free some space, or name"):
        build(cache=tmp_path / "cache", official=official)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.root
def test_a_disk_that_fills_up_is_said_and_the_build_goes_on_when_there_is_room(
    official: Path, small_disk: Path
) -> None:
    with (official / "etcd").open("a") as file:
        file.write("#" * (2 << 20))

    with pytest.raises(BinariesError, match=f"the disk of {small_disk} is full; free some space and run"):
        build(cache=small_disk, official=official)
    assert [path for path in small_disk.iterdir() if not path.name.startswith(".")] == []
    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)

    made = build(cache=small_disk, official=official)
    assert made.record()["attempts"] == 2


def test_this_machine_is_observed_as_the_kernel_describes_it() -> None:
    machine = observe_machine()

    total_kib = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines())
    assert 0 < machine.memory_bytes <= total_kib * 1024
    assert machine.root == (os.geteuid() == 0)
    assert machine.iptables == (shutil.which("iptables", path="/usr/sbin:/sbin:/usr/bin:/bin") is not None)


@pytest.mark.kubernetes
def test_version_1_20_can_be_given_as_official_binaries(tmp_path: Path, binaries: Binaries) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    for name in COMPONENTS:
        (folder / name).write_text(f'#!/bin/sh\nexec {" ".join(binaries.argv(name))} "$@"\n')
        (folder / name).chmod(0o755)
    for name in PROGRAMS:
        (folder / Path(name).name).symlink_to(binaries.directory / name)

    made = build(cache=tmp_path / "cache", official=folder)

    assert made.version == "1.20.2"
    assert made.tried
    assert made.argv("kubelet") == [f"{made.directory}/kubelet"]
    told = subprocess.run([*made.argv("kubelet"), "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == "Kubernetes v1.20.2\n"


@pytest.mark.kubernetes
@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_takes_the_flags_of_its_version(component: str, binaries: Binaries) -> None:
    argv = [*binaries.argv(component), *binaries.flags(component)]

    assert subprocess.run([*argv, "--help"], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*argv, "--no-such-flag", "--help"], capture_output=True, check=False).returncode != 0


@pytest.mark.kubernetes
@pytest.mark.parametrize("program", ["etcd", "containerd", "ctr", "runc"])
def test_what_kubernetes_runs_on_runs_here(program: str, binaries: Binaries) -> None:
    told = subprocess.run([binaries.directory / program, "--version"], capture_output=True, text=True, check=True)

    assert program in told.stdout


def test_the_command_tells_what_there_is(tmp_path: Path, official: Path) -> None:
    made = build(cache=tmp_path / "cache", official=official)
    command = [sys.executable, "-c", "from holdfast.cli import main; main()", "kubernetes", "show"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path), "COLUMNS": "200"}

    def show(value: str, *options: str) -> str:
        given = {**environment, "HOLDFAST_KUBERNETES": value, "XDG_CACHE_HOME": str(tmp_path / "empty")}
        return subprocess.run([*command, *options], env=given, capture_output=True, text=True, check=True).stdout

    takes = "about 5 minutes on two free cores, once"
    assert show("") == f"Kubernetes binaries not found; run: holdfast kubernetes build ({takes})\n"
    assert show("records") == "HOLDFAST_KUBERNETES is records: clusters of EKS are records only\n"
    assert show(str(made.directory)).startswith(
        f"Kubernetes 1.31.4  (not tried with Holdfast)  0 MiB  {made.directory}\n"
    )
    assert json.loads(show(str(made.directory), "--json"))["version"] == "1.31.4"
