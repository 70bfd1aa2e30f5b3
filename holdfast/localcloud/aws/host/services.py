"""Own services of the embedded AWS; moto has the rest."""

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.localcloud.aws.clients import Clients, SendHandler
from holdfast.localcloud.aws.common import Mishaps, Plane
from holdfast.localcloud.aws.host.hosted_service import Caller, HostedService
from holdfast.localcloud.aws.ssm import EnterNode, Sessions
from holdfast.localcloud.home import Keys

OF_CALLERS = ("evaluation", "machine")
"""What a service is given that is another one for each account and region."""


def hosted(
    *,
    port: int,
    plane: Plane,
    keys: Keys,
    home: Path,
    in_moto: Callable[[str], AbstractContextManager[None]],
    sessions: Sessions,
    enter: EnterNode,
    direct: SendHandler | None = None,
    skip: bool = False,
    mishaps: Mishaps | None = None,
) -> Mapping[str, HostedService]:
    """
    Return the services by name.

    ``keys`` are those of their own clients; ``in_moto`` is held by changes of moto's state without a request;
    ``sessions`` and ``enter`` are for Session Manager, ``home`` for CloudFormation and EKS, ``skip`` and ``mishaps``
    for CloudFormation.
    """

    def service(name: str, module: str, kind: str, *, beside_moto: bool, scope: str = "", **more: Any) -> HostedService:
        load = partial(_load, module, kind)

        def create(caller: Caller) -> Any:
            place = {"account": caller.account, "region": caller.region}
            client = Clients(endpoint=f"http://127.0.0.1:{port}", keys=keys, direct=direct, **place)
            made = {key: value(caller) if key in OF_CALLERS else value for key, value in more.items()}
            return load()(client=client, **place, **made)

        return HostedService(name=name, load=load, create=create, beside_moto=beside_moto, scope=scope)

    by_name: dict[str, HostedService] = {}

    def machine(caller: Caller) -> Any:
        return _load("cloudformation.resources.handlers", "LocalMachine")(
            home=home, endpoint=f"http://127.0.0.1:{port}", runs=lambda name: by_name["eks"].at(caller).runs(name)
        )

    def evaluation(caller: Caller) -> Any:
        return by_name["cloudwatch"].at(caller).evaluation

    services = [
        service("amp", "small", "AlertManager", beside_moto=True, scope="aps"),
        service(
            "cloudformation",
            "cloudformation",
            "CloudFormation",
            beside_moto=False,
            skip=skip,
            mishaps=mishaps,
            machine=machine,
        ),
        service("cloudtrail", "small", "CloudTrail", beside_moto=True),
        service("cloudwatch", "monitoring", "CloudWatch", beside_moto=True, scope="monitoring", in_moto=in_moto),
        service("ec2", "small", "Gateways", beside_moto=True),
        service("eks", "eks", "Eks", beside_moto=False, plane=plane, reach=partial(_reach, home)),
        service("events", "small", "Events", beside_moto=True),
        service("fsx", "fsx", "Fsx", beside_moto=False),
        service("grafana", "small", "Grafana", beside_moto=False),
        service("iam", "iam", "Simulation", beside_moto=True),
        service("logs", "monitoring", "Logs", beside_moto=True, in_moto=in_moto, evaluation=evaluation),
        service("sagemaker", "sagemaker", "SageMaker", beside_moto=True, plane=plane),
        service("ssm", "ssm", "SessionManager", beside_moto=True, sessions=sessions, enter=enter),
    ]
    by_name |= {service.name: service for service in services}
    return by_name


def _reach(home: Path, described: Mapping[str, Any]) -> Any:
    control = importlib.import_module("holdfast.localcloud.kubernetes.control")
    return control.administrator(home / "kubernetes", described)


def _load(module: str, kind: str) -> type:
    loaded: type = getattr(importlib.import_module(f"holdfast.localcloud.aws.{module}"), kind)
    return loaded
