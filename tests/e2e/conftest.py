"""A whole local cloud for the tests of the product: its own home and port, and proof that nothing stays behind."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from ports import free_port

from holdfast.localcloud import LocalCloud

ROOT = Path(__file__).parents[2]
COMMAND_TIMEOUT_S = 420


@dataclass(frozen=True, kw_only=True)
class Product:
    """The command line, pointed at one home directory."""

    home: Path
    port: int
    work: Path

    @property
    def variables(self) -> dict[str, str]:
        return {"HOLDFAST_HOME": str(self.home), "HOLDFAST_PORT": str(self.port)}

    def popen(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "holdfast"), *arguments],
            cwd=ROOT,
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        child = self.popen(*arguments)
        out, err = child.communicate(timeout=COMMAND_TIMEOUT_S)
        done = subprocess.CompletedProcess(arguments, child.returncode, out, err)
        assert not check or done.returncode == 0, f"holdfast {' '.join(arguments)}: {done.returncode}\n{out}\n{err}"
        return done

    def cdk(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """The CDK CLI as a user runs it, in the repository's root."""
        local = LocalCloud(home=self.home, port=self.port)
        tools = Path(sys.executable).parent
        return subprocess.run(
            [
                str(tools / "node"),
                str(ROOT / "node_modules/aws-cdk/bin/cdk"),
                *arguments,
                "--output",
                str(self.work / "out"),
            ],
            cwd=ROOT,
            env={**os.environ, **local.client_environment(region="us-west-2"), "PATH": f"{tools}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        view: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return view

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            region_name="us-west-2",
            **LocalCloud(home=self.home, port=self.port).client_arguments(),
        )

    def environment(self, name: str = "local", *, workers: int = 4, spares: int = 1, **changes: Any) -> Path:
        """environments/local.yaml with another number of workers, and top-level settings replaced."""
        document = yaml.safe_load((ROOT / "environments" / "local.yaml").read_text())
        group = next(g for g in document["cluster"]["instance_groups"] if g["name"] == "workers")
        group["instance_count"], group["spare_count"] = workers, spares
        document.update(changes)
        path = self.work / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path


@pytest.fixture(scope="session")
def new_product() -> Callable[[Path], Product]:
    """Makes the command line for a home of its own below a folder, with a port of its own."""

    def made(work: Path) -> Product:
        return Product(home=work / "home", port=free_port(), work=work)

    return made


@pytest.fixture
def product(tmp_path: Path, new_product: Callable[[Path], Product]) -> Iterator[Product]:
    before = shared_traces()
    product = new_product(tmp_path)
    try:
        yield product
    finally:
        product.run("down")
    assert own_traces(product.home) == set()
    assert shared_traces() - before == set()
    assert not product.home.exists()


@pytest.fixture(scope="session")
def traces() -> Callable[[Path], set[str]]:
    """What of a home is still there."""
    return own_traces


def own_traces(home: Path) -> set[str]:
    """Processes and mounts of this home. A process inside a node names the home in its overlay mount."""
    name = str(home)
    found = {f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if name in line}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mounts = (process / "mountinfo").read_text()
        except OSError:
            continue
        if int(process.name) != os.getpid() and (name in words or name in mounts):
            found.add(f"process {process.name} {words}")
    return found


def shared_traces() -> set[str]:
    """What a local cloud could leave in places that all programs of the machine share."""
    found = {f"netns {entry.name}" for entry in Path("/run/netns").glob("*")}
    found |= {f"link {entry.name}" for entry in Path("/sys/class/net").iterdir()}
    return found | {f"cgroup {path}" for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()}
