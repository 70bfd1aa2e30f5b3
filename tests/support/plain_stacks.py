"""Stacks of a few resources on an embedded AWS of a test, by CloudFormation's own operations."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from holdfast.localcloud.aws import serve


class Cloud:
    """Clients of one embedded AWS, and waiting for stacks."""

    def __init__(self, reach: dict[str, str]) -> None:
        self._reach = reach
        self._made: dict[str, Any] = {}
        self.stacks = self.client("cloudformation")

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name="us-west-2", **self._reach)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()

    def create(self, name: str, resources: dict[str, Any]) -> Any:
        self.stacks.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
        return self._settled(name)

    def update(self, name: str, resources: dict[str, Any]) -> Any:
        self.stacks.update_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
        return self._settled(name)

    def delete(self, name: str) -> Any:
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name)
        return self._settled(stack_id)

    def events(self, name: str) -> list[tuple[str, str]]:
        events = self.stacks.describe_stack_events(StackName=name)["StackEvents"]
        return [(event["LogicalResourceId"], event["ResourceStatus"]) for event in reversed(events)]

    def _settled(self, name: str) -> Any:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            stack = self.stacks.describe_stacks(StackName=name)["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                return stack
            time.sleep(0.02)
        raise TimeoutError(name)


@contextmanager
def plain_cloud(home: Path) -> Iterator[Cloud]:
    """An embedded AWS whose nodes are records only."""
    with serve(home=home, hyperpod="simulated") as running:
        cloud = Cloud(running.client_arguments)
        try:
            yield cloud
        finally:
            cloud.close()
