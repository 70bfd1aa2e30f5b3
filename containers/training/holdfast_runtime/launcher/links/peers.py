"""Addresses of the other launchers: from flags, Slurm, or a Kubernetes headless service. One that answers is enough."""

import os
import re
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from holdfast_runtime.launcher.links.resolver import addresses_of

Address = tuple[str, int]
"""Host and port."""

FIRST_PORT = 29400
PORTS = 1000


class PeersError(ValueError):
    """The place of this launcher cannot be known, and which flags would tell it."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """The launchers of a job."""

    nodes: int
    node_rank: int
    port: int
    """Where this launcher listens; 0 for any."""
    known: tuple[Address, ...]
    """Addresses to try. This launcher's own may be among them."""
    host: str
    """How others reach this node."""


Run = Callable[[Sequence[str]], str]


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def find_peers(
    *,
    nodes: int | None,
    node_rank: int | None,
    listed: str | None,
    endpoint: str | None,
    port: int | None,
    environment: Mapping[str, str] = os.environ,
    run: Run = _run,
) -> Peers:
    """
    Flags win over the platform.

    Raises:
        PeersError: they contradict each other, or several nodes are wanted and nothing says where.
    """
    if listed is not None:
        return _listed(read_addresses(listed), nodes=nodes, node_rank=node_rank, port=port)
    if endpoint is not None:
        return _endpoint(read_address(endpoint), nodes=nodes, node_rank=node_rank, port=port, environment=environment)
    if "SLURM_ARRAY_TASK_ID" in environment and (nodes or 0) != 1:
        return _slurm_array(environment, nodes=nodes, port=port, run=run)
    if "SLURM_JOB_NODELIST" in environment and nodes != 1:
        return _slurm(environment, nodes=nodes, node_rank=node_rank, port=port, run=run)
    if "JOB_COMPLETION_INDEX" in environment and (nodes or 1) > 1:
        return _kubernetes(environment, nodes=nodes or 1, port=port)
    if (nodes or 1) > 1:
        raise PeersError(
            f"--nnodes is {nodes} and the addresses of the other nodes are not known; give --rdzv-endpoint "
            "HOST:PORT or --peers, or run under Slurm or as a Kubernetes Indexed Job with a headless service"
        )
    return Peers(nodes=1, node_rank=node_rank or 0, port=port or 0, known=(), host="127.0.0.1")


def read_address(text: str) -> Address:
    host, _, number = text.rpartition(":")
    if not host or not number.isdigit() or not 0 < int(number) < 65536:
        raise PeersError(f"address is {text!r}; allowed: HOST:PORT with a port from 1 to 65535")
    return host.strip("[]"), int(number)


def read_addresses(text: str) -> tuple[Address, ...]:
    return tuple(read_address(item) for item in text.split(",") if item)


def _rank(node_rank: int | None, nodes: int) -> int:
    rank = node_rank or 0
    if not 0 <= rank < nodes:
        raise PeersError(f"--node-rank is {rank}; allowed: 0 to {nodes - 1}")
    return rank


def _listed(known: tuple[Address, ...], *, nodes: int | None, node_rank: int | None, port: int | None) -> Peers:
    if nodes is not None and nodes != len(known):
        raise PeersError(f"--nnodes is {nodes} and --peers names {len(known)}; they must agree")
    rank = _rank(node_rank, len(known))
    host, own = known[rank]
    return Peers(nodes=len(known), node_rank=rank, port=port or own, known=known, host=host)


def _endpoint(
    address: Address, *, nodes: int | None, node_rank: int | None, port: int | None, environment: Mapping[str, str]
) -> Peers:
    nodes = nodes or int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    if node_rank is None:
        node_rank = int(environment.get("SLURM_NODEID") or environment.get("JOB_COMPLETION_INDEX") or 0)
    rank = _rank(node_rank, nodes)
    # As with torchrun, the launcher of node 0 is the one at the endpoint.
    listen = port or (address[1] if rank == 0 else 0)
    return Peers(nodes=nodes, node_rank=rank, port=listen, known=(address,), host=_own_host(toward=address))


def _job_port(environment: Mapping[str, str], name: str) -> int:
    return FIRST_PORT + int(environment.get(name, "0")) % PORTS


def _slurm(
    environment: Mapping[str, str], *, nodes: int | None, node_rank: int | None, port: int | None, run: Run
) -> Peers:
    hosts = _hosts(environment["SLURM_JOB_NODELIST"], run=run)
    if nodes is not None and nodes != len(hosts):
        raise PeersError(f"--nnodes is {nodes} and Slurm's allocation has {len(hosts)} nodes; leave the flag out")
    rank = _rank(int(environment.get("SLURM_NODEID", "0")) if node_rank is None else node_rank, len(hosts))
    listen = port or _job_port(environment, "SLURM_JOB_ID")
    known = tuple((host, listen) for host in hosts)
    return Peers(nodes=len(hosts), node_rank=rank, port=listen, known=known, host=hosts[rank])


def _hosts(listed: str, *, run: Run) -> list[str]:
    try:
        return run(["scontrol", "show", "hostnames", listed]).split()
    except FileNotFoundError:  # in a container of Pyxis there is none of Slurm's programs
        return expand_host_list(listed)


def expand_host_list(text: str) -> list[str]:
    """
    The names that Slurm's ``ip-10-1-0-[11-12,20],login`` stands for.

    Leading zeros count, as Slurm has it: ``n[08-10]`` is n08, n09, n10.

    Raises:
        PeersError: not a list of hosts.
    """
    names = []
    for item in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        parts = re.split(r"\[([^\]]*)\]", item)
        made = [parts[0]]
        for numbers, rest in zip(parts[1::2], parts[2::2], strict=True):
            made = [name + number + rest for name in made for number in _numbers(numbers, whole=text)]
        names += made
    if not names:
        raise PeersError(f"SLURM_JOB_NODELIST is {text!r}; allowed: names of hosts, such as ip-10-1-0-[11-12]")
    return names


def _numbers(ranges: str, *, whole: str) -> list[str]:
    found = []
    for one in ranges.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", one)
        if not match:
            raise PeersError(f"SLURM_JOB_NODELIST is {whole!r}; {one!r} in brackets must be N or N-M")
        last = match[2] or match[1]
        found += [f"{number:0{len(match[1])}d}" for number in range(int(match[1]), int(last) + 1)]
    return found


def _slurm_array(environment: Mapping[str, str], *, nodes: int | None, port: int | None, run: Run) -> Peers:
    """
    One array task a node: Slurm requeues the task of a lost node by itself, and the others never notice.

    The host of each running task is what squeue says; a task that is not running yet finds this one.
    """
    job = environment["SLURM_ARRAY_JOB_ID"]
    count = nodes or int(environment.get("SLURM_ARRAY_TASK_COUNT", "1"))
    first = int(environment.get("SLURM_ARRAY_TASK_MIN", "0"))
    rank = _rank(int(environment["SLURM_ARRAY_TASK_ID"]) - first, count)
    listen = port or _job_port(environment, "SLURM_ARRAY_JOB_ID")
    try:
        answer = run(["squeue", "--noheader", "--array", "--job", job, "--states", "RUNNING", "--format", "%N"])
    except FileNotFoundError:
        raise PeersError(
            "this is a task of a job array and there is no squeue to ask where the others are, as in a container; "
            "give --rdzv-endpoint HOST:PORT or --peers, or run one job of several nodes"
        ) from None
    known = tuple((host, listen) for host in answer.split())
    return Peers(
        nodes=count, node_rank=rank, port=listen, known=known, host=environment.get("SLURMD_NODENAME") or _own_host()
    )


def _kubernetes(environment: Mapping[str, str], *, nodes: int, port: int | None) -> Peers:
    index = environment["JOB_COMPLETION_INDEX"]
    rank = _rank(int(index), nodes)
    given = environment.get("HOSTNAME") or socket.gethostname()
    name, _, domain = (given if "." in given else socket.getfqdn(given)).partition(".")
    found = re.fullmatch(rf"(.+)-{index}", name)
    if not found or not domain:
        raise PeersError(
            f"this pod is called {name!r} in {domain or 'no domain'}; an Indexed Job names it JOB-{index}, and "
            "spec.template.spec.subdomain must name a headless service"
        )
    listen = port or FIRST_PORT
    known = tuple((f"{found[1]}-{other}.{domain}", listen) for other in range(nodes))
    return Peers(nodes=nodes, node_rank=rank, port=listen, known=known, host=_pod_address(known[rank][0]))


def _pod_address(name: str) -> str:
    """
    What the kubelet wrote into the pod's /etc/hosts: address and full name, where it has a subdomain
    (``managedHostsFileContent`` in Kubernetes' ``pkg/kubelet/kubelet_pods.go``).
    """
    try:
        found = addresses_of(name)
    except OSError:
        return name
    reached = sorted(one for one in found if not ip_address(one.partition("%")[0]).is_loopback)
    return reached[0] if reached else name


def _own_host(toward: Address | None = None) -> str:
    if toward is not None:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.connect(toward)
                return str(probe.getsockname()[0])
        except OSError:
            pass
    return socket.gethostname()
