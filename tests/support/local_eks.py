"""A local EKS as its tests see it: where its embedded AWS is, who may log in, and how its clients are run.

It is made by a fixture of `tests/e2e/kubernetes`, or attached to where one runs already: `HOLDFAST_LOCAL_EKS` names a
JSON file with the fields of `LocalEks`.
"""

import json
import subprocess
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import kubernetes_clients

COMMAND_TIMEOUT_S = 120
DEFAULT_KUBECTL = "1.34"
"""Where the client's version does not matter; it is the one of the CDK's layer that the product pins."""


@dataclass(frozen=True, kw_only=True)
class LocalEks:
    """One EKS cluster of an embedded AWS with a HyperPod cluster on it, and three roles."""

    home: Path
    endpoint: str
    """URL of the embedded AWS."""
    region: str
    variables: Mapping[str, str]
    """What points AWS clients at the embedded AWS, as its administrator."""
    eks_cluster: str
    hyperpod_cluster: str
    admin_role: str
    """ARN of a role with an access entry and AmazonEKSClusterAdminPolicy."""
    view_role: str
    """ARN of a role with an access entry and AmazonEKSViewPolicy."""
    other_role: str
    """ARN of a role without an access entry."""
    fabric: Path
    """Network namespace of the nodes' bridge."""
    image: str
    """An image with sh, python3, tar and coreutils, which every node can start."""

    def aws(self, service: str) -> Any:
        """A boto3 client of the embedded AWS."""
        return boto3.client(
            service,
            region_name=self.region,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.variables["AWS_SECRET_ACCESS_KEY"],
        )

    def assume(self, role: str) -> dict[str, str]:
        """The variables of AWS clients that act as a role."""
        found = self.aws("sts").assume_role(RoleArn=role, RoleSessionName="clients")["Credentials"]
        return {
            **self.variables,
            "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
            "AWS_SESSION_TOKEN": found["SessionToken"],
        }

    def loopback_ports(self) -> list[int]:
        """The ports of 127.0.0.1 that clients need: that of the embedded AWS and that of the API server."""
        cluster = self.aws("eks").describe_cluster(name=self.eks_cluster)["cluster"]
        found = [urllib.parse.urlsplit(url) for url in (self.endpoint, cluster["endpoint"])]
        return [url.port or 443 for url in found]


def attached(description: Path) -> LocalEks:
    """The local EKS that a file describes."""
    values = json.loads(description.read_text())
    values.update({name: Path(values[name]) for name in ("home", "fabric")})
    return LocalEks(**values)


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody at a terminal: a home directory, credentials of one role, and programs that run in a closed network."""

    home: Path
    variables: Mapping[str, str]
    before: tuple[str, ...] = ()
    """What a command is put behind; a closed network's words. Default: none."""
    minor: str = DEFAULT_KUBECTL
    """The Kubernetes version of kubectl and helm."""

    def environment(self) -> dict[str, str]:
        """Everything that the programs see; nothing of the environment of the tests."""
        programs = kubernetes_clients.hyp_programs()
        return {
            **self.variables,
            "HOME": str(self.home),
            "PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "HELM_CACHE_HOME": str(self.home / "helm"),
        }

    def popen(self, *argv: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self.before, *argv],
            env=self.environment(),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def tried(self, *argv: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        """A command that may fail."""
        return subprocess.run(
            [*self.before, *argv],
            env=self.environment(),
            cwd=self.home,
            input=text or "",
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def run(self, *argv: str, text: str | None = None) -> str:
        """What a command prints; it has to succeed."""
        done = self.tried(*argv, text=text)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kubectl(self, *argv: str, text: str | None = None) -> str:
        return self.run(str(kubernetes_clients.kubectl(self.minor)), *argv, text=text)

    def tried_kubectl(self, *argv: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        return self.tried(str(kubernetes_clients.kubectl(self.minor)), *argv, text=text)

    def get(self, *argv: str) -> Any:
        """`kubectl get -o json`, read."""
        return json.loads(self.kubectl("get", *argv, "-o", "json"))

    def apply(self, *objects: Mapping[str, Any]) -> str:
        """`kubectl apply` of objects."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def helm(self, *argv: str) -> str:
        return self.run(str(kubernetes_clients.helm(self.minor)), *argv)


def eventually_true(holds: Any, what: str, *, within_s: float = 60, every_s: float = 0.2) -> Any:
    """As `waiting.eventually`, for questions that cost a process: asked five times a second."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} did not come about in {within_s:g} s"
        time.sleep(every_s)
    return found
