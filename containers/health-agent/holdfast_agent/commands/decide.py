"""``holdfast-agent decide``: the decider of a Kubernetes cluster, in a Deployment; one pod acts, by a lease."""

import argparse
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.remedies import RemedySettings, decider_of
from holdfast_agent.signals import Happening
from holdfast_common import ClusterAccess, EventLog, Lease

NAME = "holdfast-decider"
"""Of the lease."""


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)
    parser.add_argument("--identity", required=True, help="holder of the lease: the pod's name")
    parser.add_argument("--namespace", required=True, help="namespace of the lease")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 when stopped; 2 for a mistake."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    if configuration.remedies_mode != "act" or configuration.remedies_way not in ("label", "api"):
        print("error: decide needs remedies.mode act, and remedies.way label or api", file=sys.stderr)
        return 2
    log = EventLog(
        path=Path(configuration.events_path),
        source="agent",
        cluster=configuration.cluster_name,
        node=configuration.node_instance_id,
    )

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def report(happening: Happening) -> None:
        fields: dict[str, Any] = {**asdict(happening), "detail": dict(happening.detail)}
        try:
            log.write(**fields)
        except OSError as error:  # a full disk of this node keeps no other one from its remedy
            say(f"event not written: {error}: {fields}")

    client = ClusterAccess().client
    lease = Lease(client, name=NAME, namespace=arguments.namespace, identity=arguments.identity, report=say)
    decider = decider_of(RemedySettings.of(configuration), may_act=lambda: lease.is_held, report=report)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    lease.start()
    decider.start()
    stopping.wait()
    decider.stop()
    return 0
