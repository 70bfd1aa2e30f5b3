"""
``hyperpodrun``: the flags of AWS's command, given to ``holdfast-run``.

Flags: the public description of AWS's package, version 1.1, read 2026-11-29; its source is proprietary and was not
read. The operator of HyperPodPyTorchJobs gives place, size and token by variables, so flags that say the same are left
out.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BY_OPERATOR = ("nnodes", "node-rank", "rdzv-endpoint", "rdzv-id", "master-addr", "master-port")
"""Variables of the operator come first: --nnodes of a manifest does not count spares."""
WITHOUT_EFFECT = (
    "duplicate-stderr-filters", "duplicate-stdout-filters", "event-log-handler", "inprocess-timeout", "local-addr",
    "local-ranks-filter", "logs-specs", "max-restarts", "monitor-interval", "numa-binding", "rdzv-backend", "rdzv-conf",
    "redirects", "role", "server-host", "server-log-level", "server-port", "server-shutdown-timeout", "shutdown-signal",
    "signals-to-handle", "start-method", "tee",
)  # fmt: skip
"""No port is open, output is the pod's log, where log rules look for it, and the operator counts restarts."""
SWITCHES_WITHOUT_EFFECT = ("inprocess-restart", "run-path", "standalone", "virtual-local-rank")
SHORT = {"redirects": ("-r", "--redirect"), "tee": ("-t",)}
"""Other forms of torchrun's flags; no abbreviation but AWS's own, since argparse checks the program's flags too."""
BY_DEVICES = ("auto", "gpu", "cpu")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scripts before and after the launcher, and the launcher."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    values = command_line().parse_args(given)
    if code := _script(values.pre_train_script, values.pre_train_args):
        sys.stderr.write(f"hyperpodrun: {values.pre_train_script} ended with {code}; training does not start\n")
        return code
    from holdfast_runtime.launcher.__main__ import main as launch

    return launch(launcher_arguments(values, os.environ)) or _script(values.post_train_script, values.post_train_args)


def launcher_arguments(values: argparse.Namespace, environment: Mapping[str, str]) -> list[str]:
    """Return the arguments of holdfast-run."""
    found = []
    for name in BY_OPERATOR:
        value = getattr(values, name.replace("-", "_"))
        if value is not None and "PET_NNODES" not in environment:
            found += [f"--{name}", value]
    if values.nproc_per_node in BY_DEVICES:
        if "PET_NPROC_PER_NODE" not in environment:
            found += ["--nproc-per-node", str(_devices(values.nproc_per_node))]
    elif values.nproc_per_node is not None:
        found += ["--nproc-per-node", values.nproc_per_node]
    if values.shutdown_timeout is not None:
        found += ["--deadlines", f"stop={values.shutdown_timeout}"]
    if values.log_dir is not None and values.tee is None:
        found += ["--log-dir", values.log_dir]
    found += ["-m"] if values.module else []
    found += ["--no-python"] if values.no_python else []
    return [*found, values.program, *values.arguments]


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hyperpodrun",
        allow_abbrev=False,
        description="Start the ranks of this pod with holdfast-run, by the flags of AWS's hyperpodrun.",
    )
    _add(parser, "nproc-per-node", metavar="N|auto|gpu|cpu", help="Ranks per node. Default: the operator's, or 1")
    _add(parser, "shutdown-timeout", type=float, metavar="S", help="From the request to exit to the kill. Default: 30")
    _add(parser, "log-dir", metavar="DIR", help="A file per rank, without --tee. Default: the pod's log")
    for when in ("pre", "post"):
        _add(parser, f"{when}-train-script", metavar="FILE", help=f"Program that runs {when} training, once per pod")
        _add(parser, f"{when}-train-args", default="", metavar="TEXT", help="Its arguments, in one text")
    for name in BY_OPERATOR:
        _add(parser, name, metavar="X", help="As holdfast-run; the operator's value comes first")
    for name in WITHOUT_EFFECT:
        _add(parser, name, *SHORT.get(name, ()), help=argparse.SUPPRESS)
    for name in SWITCHES_WITHOUT_EFFECT:
        _add(parser, name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-python", "--no_python", action="store_true", help="Run a program that is not Python")
    parser.add_argument("-m", "--module", action="store_true", help="Run a module, as python -m does")
    parser.add_argument("program", help="Script or module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="Arguments of the program")
    return parser


def _add(parser: argparse.ArgumentParser, name: str, *others: str, **options: object) -> None:
    parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", *others, **options)  # type: ignore[arg-type]


def _devices(kind: str) -> int:
    """Return the GPUs of this pod, as NVIDIA's driver shows them, or its CPUs."""
    gpus = len([path for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdecimal()])
    return gpus if gpus and kind != "cpu" else len(os.sched_getaffinity(0))


def _script(program: str | None, arguments: str) -> int:
    return 0 if program is None else subprocess.run([program, *shlex.split(arguments)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
