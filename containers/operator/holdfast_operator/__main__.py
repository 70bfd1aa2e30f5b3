"""``python -m holdfast_operator``: serve the HoldfastJobs of the pod's cluster."""

import argparse
import os
import sys
from pathlib import Path

from holdfast_operator.driver import run

PORT = 8443


def main() -> int:
    parser = argparse.ArgumentParser(prog="holdfast-operator", description=__doc__)
    add = parser.add_argument
    add("--identity", default=os.environ.get("HOSTNAME", ""), help="Holder of the lease. Default: HOSTNAME")
    add("--certificates", type=Path, metavar="DIR", help="Folder with tls.crt and tls.key. Default: no webhook")
    add("--port", type=int, default=PORT, help=f"Port of the webhook. Default: {PORT}")
    serves = "Serve HyperPodPyTorchJobs too, in place of AWS's training operator"
    add("--hyperpod-pytorch-jobs", action="store_true", help=serves)
    options = parser.parse_args()
    if not options.identity:
        parser.error("got no identity, and HOSTNAME is not set; give --identity NAME")
    run(
        identity=options.identity,
        certificates=options.certificates,
        port=options.port,
        serves_hyperpod=options.hyperpod_pytorch_jobs,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
