"""Everything a machine lacks is named at once, with what to do."""

import contextlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli.deploying import check_machine, install_packages
from holdfast.cli.terminal import CommandError
from holdfast.localcloud.kubernetes.binaries import Machine


@pytest.fixture
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the local cloud could run."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.check_host", staticmethod(list[str]))
    monkeypatch.setattr("holdfast.cli.deploying.preflight._which", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setattr("holdfast.cli.deploying.preflight._version_line", lambda program: "slurm-wlm 24.11.5")
    monkeypatch.setattr("holdfast.cli.deploying.preflight.MIN_FREE_GIB", 0.0)


pytestmark = pytest.mark.usefixtures("capable")


def test_a_capable_machine_passes(tmp_path: Path) -> None:
    assert "cores" in check_machine(home=tmp_path)


def test_another_operating_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    with pytest.raises(CommandError, match=r"needs Linux .*; this is Darwin"):
        check_machine(home=tmp_path)


def test_a_user_without_root_gets_the_command_that_sudo_finds_with_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    monkeypatch.setattr("sys.argv", ["/home/a/lab/.venv/bin/holdfast", "up", "local"])
    monkeypatch.setenv("HOLDFAST_HOME", "/home/a/my cloud")
    monkeypatch.delenv("HOLDFAST_PORT", raising=False)

    with pytest.raises(
        CommandError,
        match=r"requires root; run: sudo 'HOLDFAST_HOME=/home/a/my cloud' /home/a/lab/.venv/bin/holdfast up local$",
    ):
        check_machine(home=tmp_path)


def test_a_user_without_root_gets_the_command_for_missing_packages_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(
        "holdfast.cli.deploying.preflight._which", lambda program: None if program == "munged" else program
    )
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/apt-get")

    with pytest.raises(CommandError, match=r"run: sudo apt-get install --no-install-recommends munge && sudo "):
        check_machine(home=tmp_path)


@pytest.mark.parametrize(
    ("code", "stderr", "refused"),
    [
        (0, "", None),
        (100, "W: x\nE: Unable to fetch some archives\nE: more", "munge: E: Unable to fetch some archives$"),
        (
            100,
            "W: Failed: Could not resolve 'deb.debian.org'\nE: no package munge",
            "munge: W: Failed: Could not resolve",
        ),
    ],
)
def test_missing_packages_are_installed_by_apt_after_an_update(
    code: int, stderr: str, refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(argv)
        return subprocess.CompletedProcess(argv, code, "", stderr)

    monkeypatch.setattr(
        "holdfast.cli.deploying.preflight._which", lambda program: None if program == "munged" else program
    )
    monkeypatch.setattr("subprocess.run", run)

    with pytest.raises(CommandError, match=refused) if refused else contextlib.nullcontext():
        install_packages()

    assert [argv[1] for argv in ran] == ["update", "install"]
    assert ran[1][-1] == "munge"


def test_an_apt_that_does_not_end_is_an_error_with_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(argv, timeout)

    monkeypatch.setattr("subprocess.run", run)

    with pytest.raises(CommandError, match=r"apt-get update did not end within \d+ s"):
        install_packages()


def test_missing_programs_come_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holdfast.cli.deploying.preflight._which", lambda program: None if program in ("slurmd", "munged") else program
    )
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/apt-get")

    with pytest.raises(CommandError) as caught:
        check_machine(home=tmp_path)

    assert str(caught.value) == (
        "this machine cannot run the local cloud:\n"
        "- missing programs: munged, slurmd; install them with: apt-get install --no-install-recommends munge slurmd"
    )


def test_without_apt_the_package_manager_is_left_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "holdfast.cli.deploying.preflight._which", lambda program: None if program == "slurmd" else program
    )
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)

    with pytest.raises(CommandError, match=r"missing programs: slurmd; install Slurm .* with your package manager"):
        check_machine(home=tmp_path)


NO_LIBRARY = "slurmctld: error while loading shared libraries: libslurmfull.so: cannot open shared object file"


@pytest.mark.parametrize(
    ("of_slurmctld", "of_slurmd", "said"),
    [
        (
            "slurm-wlm 24.11.5",
            "slurm-wlm 22.05.8",
            "Slurm's programs are of several versions (slurmctld 24.11.5, slurmd 22.05.8); "
            "install those of one version",
        ),
        (
            "slurm-wlm 21.08.5",
            "slurm-wlm 21.08.5",
            "got Slurm 21.08.5; allowed: Slurm 22.05 or newer, as Debian 12, Debian 13 and Ubuntu 24.04 have",
        ),
        (
            NO_LIBRARY,
            "slurm-wlm 24.11.5",
            f"slurmctld does not start ({NO_LIBRARY}); install it together with the libraries of its version",
        ),
    ],
    ids=["an older one beside a newer", "too old", "without its library"],
)
def test_a_slurm_that_is_old_or_of_several_versions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_slurmctld: str, of_slurmd: str, said: str
) -> None:
    told = {
        "slurmctld": of_slurmctld,
        "slurmd": of_slurmd,
        "slurmdbd": "slurmdbd: fatal: StorageType must be specified",
        "sbatch": "sbatch: fatal: Could not establish a configuration source",
    }
    monkeypatch.setattr("holdfast.cli.deploying.preflight._version_line", lambda program: told[Path(program).name])

    with pytest.raises(CommandError) as caught:
        check_machine(home=tmp_path)

    assert str(caught.value) == f"this machine cannot run the local cloud:\n- {said}"


def test_all_that_is_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "holdfast.cli.deploying.preflight._which", lambda program: None if program == "slurmd" else program
    )
    monkeypatch.setattr("holdfast.cli.deploying.preflight.MIN_FREE_GIB", 1e9)
    monkeypatch.setattr("holdfast.localcloud.nodes.Fleet.check_host", staticmethod(lambda: ["no overlay file system"]))

    with pytest.raises(CommandError) as caught:
        check_machine(home=tmp_path / "not" / "there" / "yet")

    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert f"- {tmp_path} has" in str(caught.value)
    assert lines[-1] == "- no overlay file system"


KUBERNETES = Machine(
    cgroups=1,
    controllers=frozenset(("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids")),
    bounding=(1 << 41) - 1,
    memory_bytes=8 << 30,
    iptables=True,
    root=True,
)


@pytest.fixture
def without_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a cluster of EKS could run, before the first build."""
    monkeypatch.delenv("HOLDFAST_KUBERNETES")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.observe_machine", lambda: KUBERNETES)


@pytest.mark.usefixtures("without_binaries")
def test_an_eks_cluster_without_binaries_is_refused_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Kubernetes binaries not found; run: holdfast kubernetes build"):
        check_machine(home=tmp_path, orchestrator="eks", nodes=6)


@pytest.mark.usefixtures("without_binaries")
def test_before_a_build_all_is_asked_of_the_machine_but_the_binaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cores" in check_machine(home=tmp_path, orchestrator="eks", nodes=6, builds=True)
    poor = replace(KUBERNETES, controllers=frozenset())
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.observe_machine", lambda: poor)

    with pytest.raises(CommandError, match="kubelets require the controllers") as caught:
        check_machine(home=tmp_path, orchestrator="eks", nodes=6, builds=True)

    assert "holdfast kubernetes build" not in str(caught.value)


def test_up_says_how_many_nodes_the_machine_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(KUBERNETES, memory_bytes=24 << 30)
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.observe_machine", lambda: machine)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})

    assert ", 2 cores, room for 48 nodes" in check_machine(home=tmp_path, nodes=6)


def test_more_nodes_than_there_is_memory_for_are_refused_with_the_number_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = replace(KUBERNETES, memory_bytes=4 << 30)
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.observe_machine", lambda: machine)

    assert "room for" in check_machine(home=tmp_path, nodes=51)
    with pytest.raises(CommandError) as caught:
        check_machine(home=tmp_path, nodes=64)

    assert str(caught.value).splitlines()[1:] == [
        "- a cluster of 64 nodes needs 4.6 GiB of memory, 4.0 GiB are available, for 51 nodes; end other programs, "
        "reduce the counts, or use a larger machine"
    ]


@pytest.mark.usefixtures("without_binaries")
def test_a_slurm_cluster_needs_no_binaries_of_kubernetes(tmp_path: Path) -> None:
    assert "Kubernetes" not in check_machine(home=tmp_path, orchestrator="slurm", nodes=6)


@pytest.mark.usefixtures("without_binaries")
def test_all_that_kubernetes_lacks_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = replace(KUBERNETES, controllers=frozenset(), memory_bytes=4 << 30, iptables=False)
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.observe_machine", lambda: poor)

    with pytest.raises(CommandError) as caught:
        check_machine(home=tmp_path, orchestrator="eks", nodes=6)

    assert [line.split(";")[0].split(",")[0] for line in str(caught.value).splitlines()[1:]] == [
        "- kubelets require the controllers cpu",
        "- Kubernetes binaries not found",
        "- iptables not found",
        "- a cluster of 6 nodes needs 4.3 GiB of memory",
    ]


@pytest.mark.usefixtures("without_binaries")
def test_a_named_folder_that_is_wrong_is_named_among_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KUBERNETES", str(tmp_path))

    with pytest.raises(CommandError, match=r"- .* \(HOLDFAST_KUBERNETES\) lacks kube-apiserver, "):
        check_machine(home=tmp_path, orchestrator="eks", nodes=6)


@pytest.mark.usefixtures("without_binaries")
def test_eks_clusters_as_records_need_nothing_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KUBERNETES", "records")

    assert "EKS clusters are records only" in check_machine(home=tmp_path, orchestrator="eks", nodes=6)
