"""Process that holds one fault: ``python -m holdfast.localcloud.planting --home DIR --node ID --fault NAME``."""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from holdfast.localcloud.kernel_log import KernelLogError
from holdfast.localcloud.nodes import Fleet, NodeError
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.planting import fault_named, records
from holdfast.localcloud.planting.effects import FaultHold
from holdfast.localcloud.planting.lasting import held, leave_callers_folder
from holdfast.localcloud.planting.records import ActiveFault


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast-planting", description="Holds one fault of one node.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--node", required=True, help="instance id")
    parser.add_argument("--fault", required=True)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--for", dest="for_s", type=float)
    options = parser.parse_args()
    fleet, fault = Fleet(home=options.home), fault_named(options.fault)
    leave_callers_folder()
    try:
        node = fleet.node(options.node)
        holding = FaultHold(node, for_s=options.for_s)
        with held(fault, node=node, fleet=fleet, gpu=options.gpu, holding=holding) as (device, detail):
            since_ns = time.time_ns()
            planted = ActiveFault(
                instance_id=node.spec.instance_id,
                host=node.spec.hostname,
                fault=fault.name,
                what=fault.what,
                detail=detail,
                device=device,
                since_ns=since_ns,
                ends_ns=None if options.for_s is None else since_ns + int(options.for_s * 1e9),
                lasts=True,
                pid=os.getpid(),
                start_ticks=proc.start_ticks(os.getpid()) or 0,
            )
            directory = fleet.directory / node.spec.instance_id
            records.folder(directory).mkdir(exist_ok=True)
            records.write(directory, planted)
            _report({"planted": asdict(planted)})
            holding.wait()
    except (NodeError, KernelLogError, OSError, ValueError, subprocess.SubprocessError) as error:
        _report({"refused": str(error)})
        return 1
    records.path_of(fleet.directory / options.node, fault.name).unlink(missing_ok=True)
    return 0


def _report(document: dict[str, object]) -> None:
    """Report to the waiting caller once; later reports are dropped."""
    if sys.stdout.closed:
        return
    print(json.dumps(document), flush=True)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
