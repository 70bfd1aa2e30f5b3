"""What this machine needs for the local cloud, all that is missing at once."""

import os
import platform
import shutil
from pathlib import Path

from holdfast.cli.terminal import CommandError

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
}
"""Program and the Debian packages it needs."""

MIN_FREE_GIB = 3.0


def check_machine(*, home: Path) -> str:
    """
    Words for the progress line when everything is there.

    Raises:
        CommandError: naming everything that is missing and what to do about each.
    """
    if platform.system() != "Linux":
        raise CommandError(f"the local cloud needs Linux (namespaces, overlay mounts); this is {platform.system()}")
    if os.geteuid() != 0:
        raise CommandError("the local cloud makes namespaces and mounts and needs root; run it with sudo")
    from holdfast.localcloud.nodes import Fleet

    problems = [*_missing_programs(), *_too_little_disk(home), *Fleet.check_host()]
    if problems:
        raise CommandError("this machine cannot run the local cloud:\n" + "\n".join(f"- {each}" for each in problems))
    from holdfast.localcloud.containers import missing

    without = missing()
    note = f"; srun --container-image is not offered: {without[0]}" if without else ""
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores{note}"


def _missing_programs() -> list[str]:
    missing = {program: package for program, package in PROGRAMS.items() if _which(program) is None}
    if not missing:
        return []
    packages = " ".join(sorted(set(missing.values())))
    programs = ", ".join(sorted(missing))
    if shutil.which("apt-get") is None:
        return [f"missing programs: {programs}; install Slurm 22.05 or newer and munge with your package manager"]
    return [f"missing programs: {programs}; install them with: apt-get install --no-install-recommends {packages}"]


def _which(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")))


def _too_little_disk(home: Path) -> list[str]:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free_gib = shutil.disk_usage(place).free / 2**30
    if free_gib >= MIN_FREE_GIB:
        return []
    return [f"{place} has {free_gib:.1f} GiB free; at least {MIN_FREE_GIB:g} GiB are needed; free some space"]
