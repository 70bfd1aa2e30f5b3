"""Clients of an embedded AWS that send what they are given, so that it is the service which refuses."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from holdfast.localcloud.aws import serve

UNCHECKED = Config(parameter_validation=False, retries={"total_max_attempts": 1})


@contextlib.contextmanager
def unchecked_clients(home: Path) -> Iterator[Callable[[str], Any]]:
    """Clients by service, of an embedded AWS of their own whose clusters are records."""
    made: dict[str, Any] = {}
    with serve(home=home, hyperpod="simulated") as running:

        def client(service: str) -> Any:
            if service not in made:
                made[service] = boto3.client(
                    service, region_name="us-west-2", config=UNCHECKED, **running.client_arguments
                )
            return made[service]

        yield client
        for one in made.values():
            one.close()
