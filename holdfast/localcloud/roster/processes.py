"""The list. Tests compare it with a running cluster, and docs/reference/processes.md with it."""

from holdfast.localcloud.roster.model import Place, SystemProcess

_UNIT = "its unit, or the control plane after 8 s"
_EVENT = "event `daemon_lost`, and `status` under the control plane"
_OR_LOST = "`daemon_lost` where it is not back after 3 s"
_AGENT = f"event `agent_started`; {_OR_LOST}"
_GO_ON = "reported; runs again with `up`, or `kill -CONT`"
_STATUS = "`status`"
_PYTHONS = ("python", "python3", *(f"python3.{minor}" for minor in range(10, 16)))
_UNDER_SLURM = (Place.CONTROLLER, Place.COMPUTE)
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
HYPERKUBE = "hyperkube"
"""One program that holds those of Kubernetes."""
LOOP = " (loop)"


def _own(name: str, what: str, *, restarted_by: str = "the keeper") -> SystemProcess:
    return SystemProcess(
        name=name, place=Place.MACHINE, what=what, restarted_by=restarted_by, reported=_STATUS, stopped=_GO_ON
    )


def _daemon(
    name: str,
    place: Place,
    *,
    unit: str,
    what: str = "",
    marks: tuple[bytes, ...] = (),
    shown: tuple[str, ...] = (),
    left_when_stopped: str = "",
    reported: str = _EVENT,
) -> SystemProcess:
    return SystemProcess(
        name=name,
        place=place,
        what=what or name,
        restarted_by=_UNIT,
        reported=reported,
        stopped=f"reported after 3 s; {left_when_stopped or 'killed, and so restarted, after 30 s'}",
        unit=unit,
        marks=marks,
        shown=shown,
        ends_when_stopped=not left_when_stopped,
    )


def _component(name: str) -> SystemProcess:
    return SystemProcess(
        name=name,
        place=Place.CONTROL_PLANE,
        what=f"{name} of EKS",
        restarted_by="its loop, after 1 s",
        reported="its log on the control plane's instance",
        stopped=f"{_STATUS} after 3 s; killed, and so restarted, after 30 s, or when the API server is silent for 4 s",
        shown=(name[:15], HYPERKUBE),
        marks=(f"{name}\0".encode(),),
    )


def _loop(name: str) -> SystemProcess:
    return SystemProcess(
        name=f"{name}{LOOP}",
        place=Place.CONTROL_PLANE,
        what=f"loop that restarts {name} of EKS",
        restarted_by="the control plane, with its program",
        reported="`log/hyperpod.log`",
        stopped="as killed",
        shown=("sh",),
        marks=(f"/run/kube/respawn\0{name}\0".encode(),),
    )


EVERY: tuple[SystemProcess, ...] = (
    _own("aws", "embedded AWS"),
    _own("hyperpod", "HyperPod control plane"),
    _own("keeper", "keeper of the others", restarted_by="the control plane"),
    _own("kernel-log", "process behind the kernel logs of all nodes"),
    _own("monitor", "monitor"),
    SystemProcess(
        name="sh",
        place=Place.NODE,
        what="first process of a node",
        restarted_by="the control plane, which replaces the node",
        reported="event `node_lost`",
        stopped="the node does not answer, and is replaced",
        marks=(b"holdfast-init",),
    ),
    _daemon(
        "sshd",
        Place.NODE,
        unit="ssh",
        marks=(b"sshd\0-D", b"sshd -D"),
        left_when_stopped="its sessions, which its unit would end with it, go on",
    ),
    *(
        _daemon(
            "holdfast-agent", place, unit="holdfast-agent", what="health agent", marks=(b"\0run\0",), reported=_AGENT
        )
        for place in _UNDER_SLURM
    ),
    _daemon(
        "holdfast-agent",
        Place.WORKER,
        unit="holdfast-events",
        what="shipping of events",
        marks=(b"\0ship\0",),
        reported=_OR_LOST,
    ),
    *(_daemon("munged", place, unit="munge", what="MUNGE") for place in _UNDER_SLURM),
    _daemon("mariadbd", Place.CONTROLLER, unit="mariadb", what="MariaDB"),
    _daemon("slurmdbd", Place.CONTROLLER, unit="slurmdbd"),
    _daemon("slurmctld", Place.CONTROLLER, unit="slurmctld"),
    _daemon(
        "slurmd",
        Place.COMPUTE,
        unit="slurmd",
        left_when_stopped="Slurm sets the node DOWN after SlurmdTimeout, and it is rebooted",
    ),
    _daemon(
        "witness",
        Place.CONTROLLER,
        unit="holdfast-witness",
        what="witness of jobs",
        marks=(b"holdfast_runtime.witness",),
        shown=_PYTHONS,
        reported=f"event `witness_lost` of jobs; {_OR_LOST}",
    ),
    *map(_component, COMPONENTS),
    *map(_loop, COMPONENTS),
    _daemon("containerd", Place.WORKER, unit="containerd"),
    _daemon("kubelet", Place.WORKER, unit="kubelet", marks=(b"kubelet\0",), shown=("kubelet", HYPERKUBE)),
)


def at(place: Place) -> tuple[SystemProcess, ...]:
    """Return the processes of a place; for a kind of node, those of every node too."""
    of_nodes = (Place.CONTROLLER, Place.COMPUTE, Place.WORKER)
    desired = {place, Place.NODE} if place in of_nodes else {place}
    return tuple(one for one in EVERY if one.place in desired)


def named(name: str) -> SystemProcess:
    return {one.name: one for one in at(Place.MACHINE)}[name]


def upkept(place: Place) -> tuple[SystemProcess, ...]:
    """Return daemons of a kind of node that the control plane watches and restarts."""
    return tuple(one for one in at(place) if one.unit)
