"""
Chosen folders are being fetched from S3, before a job reads them.

By the controller alone, in the background: the step ends when the fetch runs, because an unfetched file is fetched on
first read. A directory in place of Lustre has its files already. Nodes under Kubernetes skip this.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict

from holdfast_lifecycle.model import Context
from holdfast_lifecycle.node import find_program
from holdfast_lifecycle.preloading import Order
from holdfast_lifecycle.steps.fsx import mount_type

_STATE = "/var/lib/holdfast/preload"
_LOG = "/var/log/holdfast/preload.log"
_START_WAIT_S = 10.0


def order(context: Context) -> Order:
    return Order(
        folders=tuple(str(context.path(folder)) for folder in context.preload),
        state=str(context.path(_STATE)),
        events=str(context.path(context.events_path)),
        cluster=context.cluster_name,
        node=context.instance_id,
    )


def _remark(context: Context) -> str:
    if not context.preload:
        return "nothing to fetch"
    kind = mount_type(context)
    if kind != "lustre":
        return f"{context.fsx_mount_path} is {kind or 'not mounted'}: nothing to fetch"
    fetching = order(context)
    if fetching.mark.exists():
        return f"fetched: {', '.join(context.preload)}"
    return f"being fetched: {', '.join(context.preload)}" if fetching.is_running() else ""


def check(context: Context) -> bool:
    return bool(_remark(context))


def apply(context: Context) -> None:
    find_program("lfs")
    log = context.path(_LOG)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        subprocess.run(
            [sys.executable, "-S", "-m", "holdfast_lifecycle.preloading", json.dumps(asdict(order(context)))],
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # or what it leaves running would end with the step
            check=False,
            timeout=_START_WAIT_S,
        )


def verify(context: Context) -> str:
    """A failed fetch is reported and fails nothing: files are fetched on first read."""
    return _remark(context) or f"not fetched: read {_LOG} and {context.events_path}"
