"""Requirements of the local cloud, all missing ones at once."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Literal

from holdfast.catalog import local_nodes
from holdfast.cli.deploying.capacity import Capacity
from holdfast.cli.terminal import CommandError, step, sudo_command

PROGRAMS = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "slurmdbd": "slurmdbd slurm-wlm-mysql-plugin",
    "mariadbd": "mariadb-server-core",
    "mariadb": "mariadb-client-core",
    "munged": "munge",
    "sshd": "openssh-server",
    "sudo": "sudo",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "pkill": "procps",
}
"""Program and the Debian packages it needs."""

OLDEST_SLURM = (22, 5)
MIN_FREE_GIB = 3.0
_ASK_S = 20.0
_NETWORK = re.compile(r"[EW]: .*(Could not|Temporary failure|[Uu]nreachable|Connection)")
_INSTALL_S = 1800.0


def check_system() -> None:
    """Check for Linux and root. Raises: CommandError."""
    if platform.system() != "Linux":
        raise CommandError(f"the local cloud needs Linux (namespaces, overlay mounts); this is {platform.system()}")
    if os.geteuid() != 0:
        command = install_command()
        first = f"sudo {command} && " if command else ""
        raise CommandError(
            f"the local cloud creates namespaces and mounts, which requires root; run: {first}{sudo_command()}"
        )


def missing_packages() -> tuple[str, ...]:
    """Return the Debian packages of the programs that this machine lacks, sorted."""
    lacking = {name for program, names in PROGRAMS.items() if _which(program) is None for name in names.split()}
    return tuple(sorted(lacking))


def install_command() -> str:
    """Return the command that installs what this machine lacks; empty if it lacks nothing, or has no apt."""
    packages = " ".join(missing_packages())
    return f"apt-get install --no-install-recommends {packages}" if packages and shutil.which("apt-get") else ""


def install_packages() -> None:
    """
    Install what this machine lacks, with apt. No daemon is started: local nodes have their own.

    Raises:
        CommandError: apt failed, or did not end in time; gives the cause.
    """
    packages = missing_packages()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "RUNLEVEL": "1"}
    output = ""
    with step("install system packages") as progress:
        for argv in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *packages]):
            try:
                done = subprocess.run(
                    ["apt-get", *argv], env=environment, capture_output=True, text=True, check=False, timeout=_INSTALL_S
                )
            except subprocess.TimeoutExpired:
                raise CommandError(f"apt-get {argv[0]} did not end within {_INSTALL_S:.0f} s") from None
            output += f"{done.stderr}\n"
        if done.returncode:
            why = _cause(output) or f"exit code {done.returncode}"
            raise CommandError(f"apt-get could not install {' '.join(packages)}: {why}")
        progress.update(" ".join(packages))


def _cause(output: str) -> str:
    """Return the cause in the output of apt: without a network a warning of the update, as in scripts/apt.sh."""
    lines = output.splitlines()
    network = [line for line in lines if _NETWORK.match(line)]
    errors = [line for line in lines if line.startswith("E: ")]
    return next(iter([*network[-1:], *errors]), "")


def check_machine(
    *, home: Path, orchestrator: Literal["slurm", "eks"] = "slurm", nodes: int = 0, builds: bool = False
) -> str:
    """
    Return a summary for the progress line.

    Args:
        orchestrator: Default: Slurm, which needs no Kubernetes.
        nodes: Planned nodes, which need memory.
        builds: Default: no build of Kubernetes follows, so its binaries have to exist.

    Raises:
        CommandError: all missing requirements, each with its remedy.
    """
    check_system()
    from holdfast.localcloud.nodes import Fleet

    lacking, notes = _for_kubernetes(builds=builds) if orchestrator == "eks" else ([], [])
    room = capacity_of(home=home, orchestrator=orchestrator)
    problems = [
        *_too_little_disk(home),
        *_missing_programs(),
        *_wrong_slurm(),
        *Fleet.check_host(),
        *lacking,
        *room.lacking(nodes),
    ]
    if problems:
        raise CommandError("this machine cannot run the local cloud:\n" + "\n".join(f"- {each}" for each in problems))
    from holdfast.localcloud.containers import missing

    if orchestrator == "slurm" and (without := missing()):
        notes.append(f"srun --container-image is not available: {without[0]}")
    return "; ".join([f"{platform.system()} {platform.release()}, {room.cores} cores, {room}", *notes])


def capacity_of(*, home: Path, orchestrator: Literal["slurm", "eks"]) -> Capacity:
    from holdfast.localcloud.kubernetes import binaries as kubernetes
    from holdfast.localcloud.nodes import Fleet

    real = orchestrator == "eks" and not kubernetes.uses_records(os.environ)
    return Capacity(
        figures=local_nodes()["eks" if real else "slurm"],
        memory_bytes=kubernetes.observe_machine().memory_bytes,
        cores=len(os.sched_getaffinity(0)),
        running=sum(node.alive() for node in Fleet(home=home).nodes()),
    )


def _for_kubernetes(*, builds: bool) -> tuple[list[str], list[str]]:
    from holdfast.localcloud.kubernetes import binaries as kubernetes

    if kubernetes.uses_records(os.environ):
        return [], ["EKS clusters are records only"]
    found: kubernetes.Binaries | kubernetes.BinariesError | None
    try:
        found = kubernetes.find_binaries(os.environ)
    except kubernetes.BinariesError as error:
        found = error
    machine = kubernetes.observe_machine()
    lacking = kubernetes.check_machine(machine=machine, binaries=found, builds=builds)
    return lacking, kubernetes.notes_of_machine(machine=machine, binaries=found)


def _missing_programs() -> list[str]:
    missing = [program for program in PROGRAMS if _which(program) is None]
    if not missing:
        return []
    programs = ", ".join(sorted(missing))
    if not (command := install_command()):
        return [f"missing programs: {programs}; install Slurm 22.05 or newer and munge with your package manager"]
    return [f"missing programs: {programs}; install them with: {command}"]


def _wrong_slurm() -> list[str]:
    versions: dict[str, str] = {}
    # Clients and slurmdbd say their version only where they have a configuration; without their library they say so.
    for program in ("slurmctld", "slurmd", "slurmdbd", "sbatch"):
        answer = _version_line(path) if (path := _which(program)) else ""
        if "shared librar" in answer:
            return [f"{program} does not start ({answer}); install it together with the libraries of its version"]
        if found := re.search(r"^slurm\S* (\d+\.\d+\.\d+)", answer):
            versions[program] = found[1]
    if len(set(versions.values())) > 1:
        found_versions = ", ".join(f"{program} {version}" for program, version in sorted(versions.items()))
        return [f"Slurm's programs are of several versions ({found_versions}); install those of one version"]
    for version in set(versions.values()):
        if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_SLURM:
            return [
                f"got Slurm {version}; allowed: Slurm 22.05 or newer, as Debian 12, Debian 13 and Ubuntu 24.04 have"
            ]
    return []


def _version_line(program: str) -> str:
    try:
        done = subprocess.run([program, "-V"], capture_output=True, text=True, check=False, timeout=_ASK_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (f"{done.stderr}{done.stdout}".strip().splitlines() or [""])[-1]


def _which(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")))


def _too_little_disk(home: Path) -> list[str]:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free_gib = shutil.disk_usage(place).free / 2**30
    if free_gib >= MIN_FREE_GIB:
        return []
    return [f"{place} has {free_gib:.1f} GiB free; at least {MIN_FREE_GIB:g} GiB are needed; free some space"]
