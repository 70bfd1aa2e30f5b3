"""Which services the embedded AWS has of its own, and how each is made; moto has the rest."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from holdfast.localcloud.aws.clients import Clients, Direct
from holdfast.localcloud.aws.common import Mishaps, Plane
from holdfast.localcloud.aws.host.hosted_service import Caller, HostedService
from holdfast.localcloud.home import Keys


def hosted(
    *,
    port: int,
    plane: Plane,
    keys: Keys,
    in_moto: Callable[[str], AbstractContextManager[None]],
    direct: Direct | None = None,
    skip: bool = False,
    mishaps: Mishaps | None = None,
) -> Mapping[str, HostedService]:
    """
    The services by name.

    ``keys`` are those of their own clients; ``in_moto`` is held by those that change moto's state without a request to
    it; ``skip`` and ``mishaps`` are CloudFormation's.
    """

    def service(name: str, module: str, kind: str, *, beside_moto: bool, scope: str = "", **more: Any) -> HostedService:
        load = partial(_load, module, kind)

        def create(caller: Caller) -> Any:
            place = {"account": caller.account, "region": caller.region}
            client = Clients(endpoint=f"http://127.0.0.1:{port}", keys=keys, direct=direct, **place)
            return load()(client=client, **place, **more)

        return HostedService(name=name, load=load, create=create, beside_moto=beside_moto, scope=scope)

    services = [
        service("amp", "small", "Amp", beside_moto=False, scope="aps"),
        service("cloudformation", "cloudformation", "CloudFormation", beside_moto=False, skip=skip, mishaps=mishaps),
        service("cloudtrail", "small", "CloudTrail", beside_moto=True),
        service("cloudwatch", "small", "CloudWatch", beside_moto=True, scope="monitoring", in_moto=in_moto),
        service("ec2", "small", "Gateways", beside_moto=True),
        service("eks", "eks", "Eks", beside_moto=False, plane=plane),
        service("events", "small", "Events", beside_moto=True),
        service("fsx", "fsx", "Fsx", beside_moto=False),
        service("grafana", "small", "Grafana", beside_moto=False),
        service("iam", "iam", "Simulation", beside_moto=True),
        service("logs", "small", "LogKeys", beside_moto=True, in_moto=in_moto),
        service("sagemaker", "sagemaker", "SageMaker", beside_moto=True, plane=plane),
    ]
    return {service.name: service for service in services}


def _load(module: str, kind: str) -> type:
    """The class; imported late, for start-up's sake."""
    loaded: type = getattr(importlib.import_module(f"holdfast.localcloud.aws.{module}"), kind)
    return loaded
