"""Judge from observations if a machine can run a cluster."""

from dataclasses import dataclass

from holdfast.localcloud.kubernetes.binaries.errors import BinariesError
from holdfast.localcloud.kubernetes.binaries.finding import VARIABLE, Binaries

CONTROLLERS = {
    1: ("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"),
    2: ("cpu", "cpuset", "memory", "pids"),
}
"""
By version of cgroups. 1: kubelet 1.20 ends without cpu, cpuacct, cpuset and memory (pkg/kubelet/cm,
validateSystemRequirements) and without pids (SupportPodPidsLimit); runc 1.1 limits devices and stops pods by freezer.
2: the kernel has devices and the freezer without a controller; the others are what kubelet and runc write limits to.
"""
_WAYS = {
    1: "mount their hierarchies, or boot it with cgroup v2 alone",
    2: "run the command where they are delegated, and boot without cgroup_disable=",
}
SYS_RESOURCE = 24
"""Bit of CAP_SYS_RESOURCE: capability.h of Linux."""
BUILD_TAKES = "about 5 minutes on two free cores, once"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """
    Observations of a machine.

    Args:
        cgroups: Version of cgroups: 2 only if the machine has no other.
        controllers: Controllers that a node can have, of that version.
        bounding: The bounding set of capabilities, as a bit mask.
        memory_bytes: Available now, of the machine and this process's cgroups.
    """

    cgroups: int
    controllers: frozenset[str]
    bounding: int
    memory_bytes: int
    iptables: bool
    root: bool


def check_machine(*, machine: Machine, binaries: Binaries | BinariesError | None, builds: bool = False) -> list[str]:
    """
    Return what a cluster lacks, a sentence each with the fix; empty if it can run.

    Args:
        binaries: Result or error of ``find_binaries``.
        builds: A build follows. Default: missing binaries are a problem.
    """
    problems = []
    if not machine.root:
        problems.append("namespaces and mounts of Kubernetes nodes require root; run the command with sudo")
    if missing := [name for name in CONTROLLERS[machine.cgroups] if name not in machine.controllers]:
        problems.append(
            f"kubelets require the controllers {', '.join(missing)}, which cgroup v{machine.cgroups} of this machine "
            f"lacks; {_WAYS[machine.cgroups]}"
        )
    if isinstance(binaries, BinariesError):
        problems.append(str(binaries))
    elif binaries is None and not builds:
        problems.append(
            f"Kubernetes binaries not found; run: holdfast kubernetes build ({BUILD_TAKES}), "
            f"or set {VARIABLE}=records to have EKS clusters as records only"
        )
    if not machine.iptables:
        problems.append("iptables not found, which kube-proxy requires; install the package iptables")
    return problems


def notes_of_machine(*, machine: Machine, binaries: Binaries | BinariesError | None) -> list[str]:
    """Return differences on this machine that do not prevent a cluster."""
    notes = [f"Kubernetes {binaries.version}"] if isinstance(binaries, Binaries) else []
    if not machine.bounding >> SYS_RESOURCE & 1:
        notes.append("there is no CAP_SYS_RESOURCE here: pods, privileged ones too, do without it")
    if isinstance(binaries, Binaries) and not binaries.tried:
        notes.append("this version was not tried with Holdfast")
    return notes
