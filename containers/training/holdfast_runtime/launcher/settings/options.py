"""The flags of ``holdfast-run``: torchrun's, where they mean the same, and a few of its own."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TextIO

from holdfast_common import node_socket
from holdfast_runtime.control import Deadlines
from holdfast_runtime.launcher.allocation import VARIABLE as SPARE
from holdfast_runtime.launcher.allocation import Request, job_of
from holdfast_runtime.launcher.links import Address, Peers, PeersError, find_peers, run_token
from holdfast_runtime.launcher.settings.folders import socket_folders
from holdfast_runtime.launcher.settings.sizes import read_nodes, read_sizes
from holdfast_runtime.witness import find_witness

USAGE = "holdfast-run [options] script.py [arguments]   or: holdfast-run status [--json] [--socket PATH]"
EXAMPLE = """example, under Slurm:
  srun --no-kill --ntasks-per-node 1 holdfast-run --nproc-per-node 8 --spares 1 train.py --batch 32
"""

LOG_LEVEL = "HOLDFAST_LOG_LEVEL"
TORCHRUN = "PET_"
"""
Prefix of torchrun's variables, PET_NNODES for --nnodes (torch/distributed/argparse_util.py, ``env``), which Kubeflow's
trainer sets; a flag overrides them.
"""
PRELOAD = "torch,torch._dynamo,holdfast_runtime.inprocess"
"""torch._dynamo because making any optimizer of torch imports it, which takes longer than torch itself."""


class OptionsError(ValueError):
    """A flag that cannot be right, with what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a launcher."""

    nodes: int
    """Launchers of the job, those of spare nodes included."""
    spare_nodes: int
    node_rank: int
    processes: int
    """Ranks per node."""
    spares: int
    """Warm spare processes per node, beside the ranks."""
    peers: Peers
    program: tuple[str, ...]
    """The script or module and its arguments."""
    module: bool
    python: bool
    """False for a program that is no Python script."""
    preload: tuple[str, ...]
    max_restarts: int
    lost_steps_allowed: int
    deadlines: Deadlines
    run_id: str
    token: str = field(repr=False)
    socket: Path
    metrics_port: int | None
    metrics_file: Path | None
    log_dir: Path | None
    log_json: bool
    agent_socket: Path = Path(node_socket.PATH)
    witness: str | None = None
    """HOST:PORT, or none. Default: beside Slurm's controller"""
    expansion: Request = field(default_factory=Request)
    """How a node that the allocation has lost comes back."""
    is_brought: bool = False
    """Whether this launcher was started for one that comes back."""
    log_debug: bool = False
    sizes: tuple[int, ...] = ()
    """Numbers of nodes that an elastic job may have, ascending. Default: it keeps its size"""
    on_sigterm: str | None = None
    """leave: never end the job. Default: end it; an elastic one goes on if the others can"""

    @property
    def world_size(self) -> int:
        return max(self.sizes, default=self.nodes - self.spare_nodes) * self.processes

    @property
    def world_sizes(self) -> tuple[int, ...]:
        return tuple(size * self.processes for size in self.sizes)

    @property
    def slots(self) -> int:
        return self.processes + self.spares


def parse_options(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> Options:
    """
    Read the command line, and what Slurm or Kubernetes say about the place of this launcher.

    A mistake ends the process with exit code 2.
    """
    parser = _parser()
    parser.set_defaults(**_from_environment(parser, environment))
    given = list(sys.argv[1:] if arguments is None else arguments)
    values = parser.parse_args(given)
    own = tuple(given[: len(given) - len(values.arguments) - 1])
    try:
        return _options(values, environment, own=own)
    except (OptionsError, PeersError, ValueError) as error:
        parser.error(str(error))


def _from_environment(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> dict[str, str]:
    """
    Return the values of options that variables give; argparse converts them as those of the command line.

    In an Indexed Job the host names give the place: one address alone would be that of a pod which can be lost.
    """
    names = vars(parser.parse_args(["program"])).keys() - {"arguments", "module", "no_python", "program"}
    if "JOB_COMPLETION_INDEX" in environment:
        names -= {"master_addr", "master_port", "node_rank", "rdzv_endpoint"}
    return {name: environment[key] for name in names if environment.get(key := f"{TORCHRUN}{name.upper()}")}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast-run",
        usage=USAGE,
        allow_abbrev=False,
        description="Start the ranks of this node and keep the job training through losses.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument_group("size of the job").add_argument
    add("--nnodes", "--nnode", metavar="N|MIN:MAX", help="Nodes, spare nodes included. Default: from Slurm, or 1")
    add("--sizes", metavar="N,...", help="Numbers of nodes of an elastic job. Default: all from MIN to MAX")
    add("--nproc-per-node", "--nproc_per_node", type=int, default=1, metavar="N", help="Ranks per node. Default: 1")
    add("--spares", type=int, default=0, metavar="N", help="Warm spare processes per node. Default: 0")
    add("--spare-nodes", type=int, default=0, metavar="N", help="Nodes that have spare processes only. Default: 0")
    add = parser.add_argument_group("finding the other nodes").add_argument
    add("--node-rank", "--node_rank", type=int, metavar="R", help="Default: from Slurm or Kubernetes, or 0")
    add("--rdzv-endpoint", "--rdzv_endpoint", metavar="HOST:PORT", help="Address of any other launcher")
    add("--master-addr", "--master_addr", metavar="HOST", help="Older flag of torchrun for --rdzv-endpoint")
    add("--master-port", "--master_port", type=int, metavar="PORT", help="Older flag of torchrun. Default: 29500")
    add("--peers", metavar="HOST:PORT,...", help="Addresses of all launchers, by node rank")
    add("--port", type=int, metavar="PORT", help="Listening port. Default: that of the peers, or any")
    add("--witness", metavar="HOST:PORT", help="Additional voter, or 'none'. Default: beside Slurm's controller")
    add("--rdzv-id", "--rdzv_id", default="", metavar="ID", help="Name of the job. Default: Slurm's job id")
    add = parser.add_argument_group("recovery").add_argument
    add("--max-restarts", "--max_restarts", type=int, default=3, help="Deaths allowed without progress. Default: 3")
    add("--allow-loss", type=int, default=0, metavar="STEPS", help="Committed steps that may be redone. Default: 0")
    leave = "leave: this launcher exits, after a hand-over if possible, and the job goes on. Default: the job ends"
    add("--on-sigterm", choices=("leave",), help=leave)
    add("--preload", default=PRELOAD, metavar="MODULES", help=f"Modules imported before the fork. Default: {PRELOAD}")
    add("--deadlines", default="", metavar="NAME=S,...", help=f"Names: {', '.join(f.name for f in fields(Deadlines))}")
    add = parser.add_argument_group("status and logs").add_argument
    add("--socket", type=Path, metavar="PATH", help="Status socket. Default: in the run folder")
    agent = f"Socket of the health agent. Default: {node_socket.PATH_VARIABLE}, or {node_socket.PATH}"
    add("--agent-socket", type=Path, metavar="PATH", help=agent)
    add("--metrics-port", type=int, metavar="PORT", help="Prometheus port. Default: none")
    last = "File for the last metrics of a job that has finished, or why it ended. Default: none"
    add("--metrics-file", type=Path, metavar="FILE", help=last)
    add(
        "--log-dir", "--log_dir", type=Path, metavar="DIR", help="A file per rank and launcher. Default: stdout, stderr"
    )
    add("--log-format", choices=("text", "json"), default="text", help="Format of the launcher's lines. Default: text")
    level = "debug: all launchers write all lines. Default: HOLDFAST_LOG_LEVEL, or info: the leader writes"
    add("--log-level", choices=("info", "debug"), help=level)
    add = parser.add_argument_group("program").add_argument
    add("--no-python", "--no_python", action="store_true", help="Run a program that is not a Python script")
    add("-m", "--module", action="store_true", help="Run a module, as python -m does")
    add("program", help="Script or module")
    add("arguments", nargs=argparse.REMAINDER, help="Arguments of the program")
    return parser


def _options(values: argparse.Namespace, environment: Mapping[str, str], *, own: tuple[str, ...]) -> Options:
    endpoint = values.rdzv_endpoint
    if endpoint is None and values.master_addr is not None:
        endpoint = f"{values.master_addr}:{values.master_port or 29500}"
    given = read_nodes(values.nnodes)
    peers = find_peers(
        nodes=given[1] if given is not None else None,
        node_rank=values.node_rank,
        listed=values.peers,
        endpoint=endpoint,
        port=values.port,
        environment=environment,
    )
    for name, least in (("nproc_per_node", 1), ("spares", 0), ("max_restarts", 0), ("allow_loss", 0)):
        if getattr(values, name) < least:
            raise OptionsError(f"--{name.replace('_', '-')} is {getattr(values, name)}; allowed: {least} or more")
    if not 0 <= values.spare_nodes < peers.nodes:
        raise OptionsError(f"--spare-nodes is {values.spare_nodes}; allowed: 0 to {peers.nodes - 1}, fewer than nodes")
    sizes = read_sizes(values.sizes, given=given, nodes=peers.nodes, spare_nodes=values.spare_nodes)
    find_witness(values.witness, nodes=2, environment={})  # refuses what is no address
    run_id = values.rdzv_id or environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID") or "0"
    program = (values.program, *values.arguments)
    return Options(
        nodes=peers.nodes,
        spare_nodes=values.spare_nodes,
        node_rank=peers.node_rank,
        processes=values.nproc_per_node,
        spares=values.spares,
        peers=peers,
        program=program,
        module=values.module,
        python=not values.no_python,
        preload=tuple(name for name in values.preload.split(",") if name),
        max_restarts=values.max_restarts,
        lost_steps_allowed=values.allow_loss,
        deadlines=read_deadlines(values.deadlines),
        run_id=run_id,
        token=run_token(environment=environment, nodes=peers.nodes, run_id=run_id),
        socket=values.socket or default_socket(run_id, peers.node_rank),
        metrics_port=values.metrics_port,
        metrics_file=values.metrics_file,
        agent_socket=values.agent_socket or Path(environment.get(node_socket.PATH_VARIABLE) or node_socket.PATH),
        log_dir=values.log_dir,
        log_json=values.log_format == "json",
        log_debug=(values.log_level or environment.get(LOG_LEVEL, "info")) == "debug",
        witness=values.witness,
        sizes=sizes,
        on_sigterm=values.on_sigterm,
        expansion=Request(
            job="" if values.peers else job_of(environment),
            is_asked=environment.get(SPARE) == "expand",
            nodes=peers.nodes,
            hosts=tuple(host for host, _ in peers.known) if len(peers.known) == peers.nodes else (),
            run_id=run_id,
            port=peers.port,
            arguments=own,
            program=program,
        ),
        is_brought="HOLDFAST_ALLOCATION" in environment,
    )


def log_file(options: Options) -> TextIO | None:
    """Log file of this launcher in ``--log-dir``; None without one."""
    if options.log_dir is None:
        return None
    try:
        options.log_dir.mkdir(parents=True, exist_ok=True)
        return (options.log_dir / f"launcher-{options.node_rank}.log").open("a")
    except OSError:  # ranks report it when they open theirs
        return None


def default_socket(run_id: str, node_rank: int) -> Path:
    return socket_folders(os.environ, uid=os.geteuid())[0] / f"{run_id}-{node_rank}.sock"


def read_deadlines(text: str) -> Deadlines:
    """
    Deadlines as JSON or as ``name=seconds,...``; what is not named has its default.

    Raises:
        OptionsError: an unknown name, no number, or an order that would have an outer wait end first.
    """
    if not text:
        return Deadlines()
    known = asdict(Deadlines())
    try:
        given = json.loads(text) if text.startswith("{") else dict(item.split("=", 1) for item in text.split(","))
        seconds = {name: float(value) for name, value in given.items()}
    except ValueError as error:
        raise OptionsError(f"--deadlines is {text!r} ({error}); allowed: name=seconds,... or JSON") from None
    unknown = sorted(seconds.keys() - known.keys())
    if unknown:
        raise OptionsError(f"--deadlines names {', '.join(unknown)}; allowed: {', '.join(known)}")
    return replace(Deadlines(), **seconds)


__all__ = ["Address", "Options", "OptionsError", "default_socket", "log_file", "parse_options", "read_deadlines"]
