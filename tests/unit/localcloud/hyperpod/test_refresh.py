"""The control plane asks the service in an order in which an update that begins meanwhile is seen as begun."""

import logging
import threading
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.hyperpod.control import Health, Observation, Remove, Service, decide
from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"


class Changing:
    """One that is asked to take the second worker away while the control plane asks it for all there is."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}

    def clusters(self) -> list[Cluster]:
        workers = Group(name="workers", instance_type="ml.c5.xlarge", on_create="on_create.sh")
        instances = tuple(
            Instance(instance_id=f"i-{number}", group="workers", address=f"10.1.0.{10 + number}", status="Running")
            for number in range(2)
        )
        self.asked = {"i-1": "delete"}
        return [Cluster(arn=ARN, name="dev", status="Updating", groups=(workers,), instances=instances)]

    def asked_through(self) -> Service:
        plane: Any = SimpleNamespace(requests=lambda: dict(self.asked))
        aws: Any = SimpleNamespace(clusters=self.clusters, file_systems=list)
        return Service(aws=aws, plane=plane, on_change=lambda: None)


def test_the_first_refusal_of_a_row_is_logged_and_the_rest_are_not(caplog: pytest.LogCaptureFixture) -> None:
    answers, calls = threading.Event(), []

    def watch(*, version: int, kubernetes: str) -> int:
        calls.append(version)
        if len(calls) <= 3:
            raise urllib.error.HTTPError("http://127.0.0.1/watch", 403, "Forbidden", Message(), None)
        answers.set()
        return 1

    plane: Any = SimpleNamespace(watch=watch)
    aws: Any = SimpleNamespace()
    service = Service(aws=aws, plane=plane, on_change=lambda: None)

    with caplog.at_level(logging.WARNING):
        service.start()
        assert answers.wait(10.0)
        service.stop()
        service.worker.join(5.0)

    assert [record.getMessage() for record in caplog.records] == [
        "waiting for changes: embedded AWS: HTTPError: HTTP Error 403: Forbidden"
    ]


def test_an_update_that_begins_meanwhile_is_not_taken_for_one_that_is_over() -> None:
    service = Changing().asked_through()

    service.ask()

    (cluster,) = service.clusters
    health = dict.fromkeys(("i-0", "i-1"), Health.ALIVE)
    assert decide(Observation(cluster=cluster, health=health, requests=service.requests)) == [Remove(instance_id="i-1")]
