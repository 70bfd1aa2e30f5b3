"""What stands between containerd and runc: which containers it touches, and what it refuses."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from holdfast.localcloud.kubernetes.images import NodeRoot, node_files


class Runtime:
    """``holdfast-runc`` with a stand-in for runc that prints how it is called."""

    def __init__(self, folder: Path) -> None:
        runc = folder / "runc"
        runc.write_text('#!/bin/sh\necho runc "$@"\n')
        runc.chmod(0o755)
        files = node_files(registry="10.1.0.1:5000", runc=str(runc), root=NodeRoot())
        self._program = folder / "holdfast-runc"
        self._program.write_bytes(files["/opt/holdfast/runc/holdfast-runc"].content)
        self.bundle = folder / "bundle"
        (self.bundle / "rootfs").mkdir(parents=True)
        self.settings({"bounding": ["CAP_KILL"]}, args=[])
        self.log = folder / "log.json"

    def settings(self, capabilities: dict[str, list[str]], *, args: list[str]) -> None:
        process = {"args": args, "capabilities": capabilities, "oomScoreAdj": -998}
        (self.bundle / "config.json").write_text(json.dumps({"process": process}, separators=(",", ":")))

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = ["/bin/sh", str(self._program), "--log", str(self.log), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)

    def create(self) -> "subprocess.CompletedProcess[str]":
        return self.call("create", "--bundle", str(self.bundle), "c1")


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(tmp_path)


def test_runc_is_called_as_it_is_for_everything_but_create(runtime: Runtime) -> None:
    assert runtime.call("delete", "--force", "c1").stdout == f"runc --log {runtime.log} delete --force c1\n"


def test_a_container_without_a_marker_is_runcs_alone(runtime: Runtime) -> None:
    assert runtime.create().stdout.endswith(f"create --bundle {runtime.bundle} c1\n")


@pytest.mark.parametrize("marker", ["", "/", "sha256-", "sha256-../../etc", "sha256-0123/..", "node root", "$(id)"])
def test_a_marker_that_names_no_image_is_refused(runtime: Runtime, marker: str) -> None:
    (runtime.bundle / "rootfs/.holdfast-image").write_text(marker + "\n")

    done = runtime.create()

    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(runtime.log.read_text())["msg"] == "the image does not say where its files are"


def test_a_marker_that_is_a_link_is_not_followed(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("node\n")
    (runtime.bundle / "rootfs/.holdfast-image").symlink_to(tmp_path / "elsewhere")

    assert runtime.create().stdout.startswith("runc ")


def test_an_image_that_was_removed_is_named(runtime: Runtime) -> None:
    (runtime.bundle / "rootfs/.holdfast-image").write_text(f"sha256-{'1' * 64}\n")

    assert runtime.create().returncode == 1
    assert f"not on this machine any more: sha256-{'1' * 64}" in json.loads(runtime.log.read_text())["msg"]


def test_a_capability_that_the_node_lacks_is_taken_from_the_container_and_from_nothing_else(runtime: Runtime) -> None:
    status = Path("/proc/self/status").read_text()
    here = [] if not int(re.findall(r"CapBnd:\s*(\w+)", status)[0], 16) >> 24 & 1 else ["CAP_SYS_RESOURCE"]
    args = ["CAP_SYS_RESOURCE", '"capabilities":{"x":["CAP_SYS_RESOURCE"]}']
    runtime.settings(
        {"bounding": ["CAP_KILL", "CAP_SYS_RESOURCE"], "effective": ["CAP_SYS_RESOURCE", "CAP_KILL"]}, args=args
    )

    runtime.create()

    process = json.loads((runtime.bundle / "config.json").read_text())["process"]
    assert process["args"] == args
    assert process["capabilities"] == {"bounding": ["CAP_KILL", *here], "effective": [*here, "CAP_KILL"]}
    assert process["oomScoreAdj"] == (-998 if here else 0)
