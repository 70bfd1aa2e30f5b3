"""What `make setup` and `make up` find on a machine: what is made again, left alone, or refused in one sentence."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.deploying import check_machine

TOOLS = (
    "awk",
    "bash",
    "cat",
    "cp",
    "dirname",
    "dpkg",
    "env",
    "grep",
    "head",
    "id",
    "mktemp",
    "paste",
    "readlink",
    "rm",
)
TOOLS += ("rmdir", "sed", "setpriv", "sort", "tail", "touch", "uname")
PYTHON = f"""#!{sys.executable}
import os, sys, venv
if sys.argv[1:3] == ["-m", "venv"]:
    venv.create(sys.argv[3])
    lib = os.path.join(sys.argv[3], "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    os.symlink({str(Path(sysconfig.get_path("purelib")) / "pip")!r}, os.path.join(lib, "pip"))
else:
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
"""
OLD_PYTHON = '#!/bin/sh\ncase "$2" in *platform*) echo 3.9.18 ;; *) exit 1 ;; esac\n'
BARE_PYTHON = f"""#!/bin/sh
case "$2" in *ensurepip*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac
"""


class Bench:
    """A PATH with little on it, and the scripts of `make setup`."""

    def __init__(self, folder: Path, scripts: Path) -> None:
        self.bin, self.venv, self._scripts = folder / "bin", folder / ".venv", scripts
        self.bin.mkdir()
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or "/nowhere")
        self.program("python3", PYTHON)

    def program(self, name: str, text: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run(self, script: str, *words: str, before: tuple[str, ...] = (), **more: str) -> tuple[int, list[str]]:
        """Its exit code, and the lines that it printed."""
        done = subprocess.run(
            [*before, "bash", str(self._scripts / script), *words],
            env={"PATH": str(self.bin), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout.splitlines()

    def environment(self, **more: str) -> tuple[int, list[str]]:
        return self.run("make_environment.sh", str(self.venv), **more)

    def slurm(self, *, before: tuple[str, ...] = (), **more: str) -> tuple[int, list[str]]:
        return self.run("install_slurm.sh", "slurmctld", "jq", before=before, **more)

    def apt(self, *, says: str = "", ends_with: int = 0, simulated: str = "", offers: str = "23.11.4-1") -> None:
        """An apt-get that installs nothing, and an apt-cache that offers a version of slurmctld."""
        self.program(
            "apt-get",
            f"#!/bin/sh\ncase \"$*\" in *-s*) echo '{simulated}' ;; *update*) exit 0 ;;\n"
            f"*print-uris*) echo \"'http://mirror/slurm.deb' slurm.deb 81200000 MD5Sum:0\" ;;\n"
            f"*) echo '{says}'; exit {ends_with} ;; esac\n",
        )
        self.program("apt-cache", f"#!/bin/sh\necho 'slurmctld:'; echo '  Candidate: {offers}'\n")


@pytest.fixture
def bench(tmp_path: Path, repository: Path) -> Bench:
    return Bench(tmp_path, repository / "scripts")


# --- the virtual environment


def test_a_whole_environment_is_left_alone(bench: Bench) -> None:
    assert bench.environment() == (0, [])
    made = (bench.venv / ".made").stat().st_mtime_ns
    (bench.venv / "mine").touch()

    assert bench.environment() == (0, [])
    assert (bench.venv / ".made").stat().st_mtime_ns == made
    assert (bench.venv / "mine").exists()


def test_what_was_installed_before_environments_had_a_stamp_is_not_installed_again(bench: Bench) -> None:
    bench.environment()
    (bench.venv / ".made").unlink()
    (bench.venv / ".installed").touch()
    os.utime(bench.venv / ".installed", (1e9, 1e9))

    assert bench.environment() == (0, [])
    assert (bench.venv / ".made").stat().st_mtime == 1e9


@pytest.mark.parametrize("fault", ["cut off", "of another Python", "whose Python is gone"])
def test_an_environment_that_does_not_run_is_made_again(bench: Bench, fault: str) -> None:
    bench.environment()
    (bench.venv / ".installed").touch()
    if fault == "cut off":
        next((bench.venv / "lib").glob("*/site-packages/pip")).unlink()
    elif fault == "of another Python":
        settings = bench.venv / "pyvenv.cfg"
        settings.write_text(settings.read_text().replace("version = 3.", "version = 3.1"))
    else:
        (bench.venv / "bin" / "python").unlink()
        (bench.venv / "bin" / "python").symlink_to("/nowhere")

    said = f"making {bench.venv} again: it was cut off, or made with another version of Python"
    assert bench.environment() == (0, [said])
    assert not (bench.venv / ".installed").exists(), "packages are installed into it again"
    assert bench.environment() == (0, [])


def test_a_folder_that_is_no_environment_is_not_removed(bench: Bench) -> None:
    bench.venv.mkdir()
    (bench.venv / "mine").touch()

    code, said = bench.environment()

    assert (code, len(said)) == (1, 1)
    assert said[0].endswith(
        ".venv is no virtual environment, and one is to be made there; move it away and run make again"
    )
    assert (bench.venv / "mine").exists()


def test_a_link_to_an_environment_that_does_not_run_is_named(bench: Bench) -> None:
    bench.venv.symlink_to("/nowhere/.venv")

    code, said = bench.environment()

    assert (code, len(said)) == (1, 1)
    assert ".venv is a link to /nowhere/.venv, which is no whole environment of Python 3.11 or newer; " in said[0]


def test_an_old_python_is_refused_with_what_is_allowed(bench: Bench) -> None:
    bench.program("python3", OLD_PYTHON)

    assert bench.environment(OS_RELEASE="/nowhere") == (
        1,
        ["got Python 3.9.18; allowed: Python 3.11 or newer; install it as python3 or, beside yours, as python3.11"],
    )


def test_a_newer_python_beside_an_old_one_is_taken(bench: Bench) -> None:
    bench.program("python3", OLD_PYTHON)
    bench.program("python3.12", PYTHON)

    assert bench.environment() == (0, [])


def test_ubuntu_22_04_is_refused_with_its_versions_of_python_and_slurm(bench: Bench, tmp_path: Path) -> None:
    bench.program("python3", OLD_PYTHON.replace("3.9.18", "3.10.12"))
    (tmp_path / "os-release").write_text('ID=ubuntu\nVERSION_ID="22.04"\n')

    assert bench.environment(OS_RELEASE=str(tmp_path / "os-release")) == (
        1,
        [
            "got Ubuntu 22.04 with Python 3.10.12 and Slurm 21.08; allowed: Python 3.11 and Slurm 22.05 or newer; "
            "use Ubuntu 24.04, Debian 12 or Debian 13"
        ],
    )


def test_where_python_makes_no_environments_and_no_apt_is_the_package_is_named(bench: Bench) -> None:
    bench.program("python3", BARE_PYTHON)

    code, said = bench.environment()

    package = "python{}.{}-venv".format(*sys.version_info)
    assert (code, said) == (
        1,
        [
            f"{bench.bin}/python3 makes no virtual environments: it lacks ensurepip, which is in Debian's package "
            f"{package}; install it and run make again"
        ],
    )


@pytest.mark.root
def test_where_python_makes_no_environments_the_package_is_installed(bench: Bench) -> None:
    bench.program("python3", BARE_PYTHON)
    bench.apt(says="E: Unable to locate package", ends_with=100)

    code, said = bench.environment()

    package = "python{}.{}-venv".format(*sys.version_info)
    assert code == 1
    assert said[0] == f"installing {package}: 81.2 MB to download"


# --- Slurm and the machine


def test_without_apt_a_setup_goes_on_and_a_cluster_is_refused(bench: Bench) -> None:
    code, (note,) = bench.slurm()
    assert code == 0
    assert note.startswith("note: not installed: ")
    assert note.endswith("; the local HyperPod needs them (Debian's packages: slurmctld jq)")
    if os.geteuid() == 0:
        code, (said,) = bench.slurm(FOR_CLUSTER="yes")
        assert code == 1
        assert said.endswith("(Debian's packages: slurmctld jq); install them and run make again")


def test_a_cluster_is_refused_to_others_than_root(bench: Bench) -> None:
    bench.program("id", '#!/bin/sh\n[ "$1" = -un ] && echo jane || echo 1000\n')

    assert bench.slurm(FOR_CLUSTER="yes") == (
        1,
        ["got user jane; allowed: root, since nodes are namespaces and mounts; use sudo"],
    )


@pytest.mark.root
def test_a_cluster_is_refused_in_a_container_that_may_not_mount(bench: Bench) -> None:
    without = (str(bench.bin / "setpriv"), "--inh-caps=-sys_admin", "--bounding-set=-sys_admin", "--")

    code, said = bench.slurm(before=without, FOR_CLUSTER="yes")

    assert (code, said) == (
        1,
        [
            "got a container without CAP_SYS_ADMIN; allowed: a machine, a virtual machine or a container with "
            "--privileged, since nodes are namespaces and mounts; start one of them"
        ],
    )


@pytest.mark.root
def test_what_apt_downloads_is_said_first(bench: Bench) -> None:
    bench.apt()

    assert bench.slurm() == (0, ["installing Slurm: 81.2 MB to download"])


@pytest.mark.root
@pytest.mark.parametrize(
    ("says", "why"),
    [
        (
            "W: Failed to fetch http://mirror/x  Temporary failure resolving mirror\nE: Unable to locate package jq",
            "W: Failed to fetch http://mirror/x  Temporary failure resolving mirror",
        ),
        ("E: Unable to locate package jq\nE: Unable to locate package x", "E: Unable to locate package jq"),
        ("E: You do not have enough free space in /var/cache", "E: You do not have enough free space in /var/cache"),
    ],
    ids=["no network", "no such package", "no room"],
)
def test_what_apt_cannot_install_is_said_in_a_sentence(bench: Bench, says: str, why: str) -> None:
    bench.apt(says=says, ends_with=100)

    code, said = bench.slurm()

    assert code == 1
    assert said[1:] == [f"apt-get could not install Slurm: {why}; fix this and run make again"]


@pytest.mark.root
def test_packages_of_an_older_slurm_are_refused(bench: Bench) -> None:
    bench.apt(offers="21.08.5-2ubuntu1")

    assert bench.slurm() == (
        1,
        [
            "got Slurm 21.08.5 in this machine's packages; allowed: Slurm 22.05 or newer; "
            "use Ubuntu 24.04, Debian 12 or Debian 13"
        ],
    )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[None]:
    """A daemon with the name of Slurm's, which this machine runs for itself."""
    daemon = tmp_path / "slurmdbd"
    shutil.copy(shutil.which("sleep") or "", daemon)
    with subprocess.Popen([daemon, "60"]) as process:
        yield
        process.kill()


@pytest.mark.root
@pytest.mark.usefixtures("running")
def test_a_slurm_that_this_machine_runs_is_left_alone_and_told_of(bench: Bench) -> None:
    bench.apt()

    code, said = bench.slurm()

    assert code == 0
    assert said[0].startswith("note: this machine runs Slurm itself (")
    assert "slurmdbd" in said[0]
    assert said[0].endswith("); it is left alone, local nodes have their own")


@pytest.mark.root
@pytest.mark.usefixtures("running")
def test_packages_that_would_replace_a_slurm_in_use_are_refused(bench: Bench) -> None:
    bench.apt(simulated="Inst slurm-client [22.05.8-1] (23.11.4-1 Debian [amd64])\nInst jq (1.7 Debian [amd64])")

    code, said = bench.slurm()

    assert code == 1
    assert said[1].endswith(
        "; with them apt would replace slurm-client, which this machine uses; upgrade these first, or install what "
        "is missing in their version"
    )


@pytest.mark.root
@pytest.mark.slurm
def test_a_machine_with_all_of_it_can_run_a_cluster(tmp_path: Path) -> None:
    assert "cores" in check_machine(home=tmp_path)
