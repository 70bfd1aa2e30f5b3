"""
Lifecycle scripts: fetched from S3 once per content, put on the instance, run as root, their output passed on.

What the scripts do is theirs; that a failed one fails its instance is ``_instances``'s.
"""

import hashlib
import json
import os
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.hyperpod._node_files import EVENTS, RESOURCE_CONFIG
from holdfast.localcloud.hyperpod._sync import safe_path
from holdfast.localcloud.nodes import Node, kill_group
from holdfast_common import kinds, parse_events

TIMEOUT_S = 600.0
PLACE = "/opt/ml/lifecycle"
LAST_LINES = 6
_NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LifecycleError(Exception):
    """A bundle cannot be had or its script failed; the message is what the instance's status shows."""


class Bundles:
    """Local copies of lifecycle prefixes."""

    def __init__(self, *, s3: Any, directory: Path) -> None:
        self._s3 = s3
        self._directory = directory
        self._lock = threading.Lock()
        self._fetching: dict[str, Future[Path]] = {}
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="bundle")

    def begin(self, uri: str) -> "Future[Path]":
        """
        Start fetching what is under ``uri`` now, so that it is there when the instance has booted.

        Instances that begin while a fetch is under way share it. The result raises LifecycleError when there is no such
        bucket, or nothing under the prefix.
        """
        with self._lock:
            fetching = self._fetching.get(uri)
            if fetching is None or fetching.done():
                fetching = self._fetching[uri] = self._pool.submit(self._fetch, uri)
            return fetching

    def _fetch(self, uri: str) -> Path:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        prefix = prefix.rstrip("/") + "/"
        objects = self._list(uri, bucket=bucket, prefix=prefix)
        digest = hashlib.sha256(json.dumps([uri, sorted(objects.items())]).encode()).hexdigest()[:20]
        place = self._directory / digest
        if not place.is_dir():
            self._download(bucket=bucket, prefix=prefix, names=list(objects), place=place)
        return place

    def _list(self, uri: str, *, bucket: str, prefix: str) -> dict[str, str]:
        try:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            found = {item["Key"][len(prefix) :]: item["ETag"] for page in pages for item in page.get("Contents", ())}
        except ClientError as error:
            raise LifecycleError(f"lifecycle scripts at {uri} cannot be read: {error}") from None
        objects = {name: etag for name, etag in found.items() if name and not name.endswith("/") and safe_path(name)}
        if not objects:
            raise LifecycleError(f"there are no lifecycle scripts at {uri}; upload on_create.sh under this prefix")
        return objects

    def _download(self, *, bucket: str, prefix: str, names: list[str], place: Path) -> None:
        fresh = place.with_name(place.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        for name in names:
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            body = self._s3.get_object(Bucket=bucket, Key=prefix + name)["Body"]
            target.write_bytes(body.read())
            target.chmod(0o755)
        python = shutil.which("python3", path=_NODE_PATH)
        if python:
            # Compiled once here instead of on each of many nodes at the same time.
            command = [python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(fresh)]
            subprocess.run(command, check=False, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        fresh.rename(place)


@dataclass(frozen=True, kw_only=True)
class Script:
    """One script of a bundle, to be run on one node."""

    node: Node
    bundle: Path
    name: str
    """Of the script, relative to the bundle."""
    folder: str
    """Name of its directory below PLACE on the node."""
    timeout_s: float = TIMEOUT_S

    def run(self, *, on_line: Callable[[str], None]) -> None:
        """
        Put the bundle on the node and run the script to its end.

        Raises:
            LifecycleError: it is missing, failed, or took too long.
        """
        if not (self.bundle / self.name).is_file():
            raise LifecycleError(f"there is no script {self.name} among the lifecycle scripts")
        place = f"{PLACE}/{self.folder}"
        target = self.node.root / place.lstrip("/")
        shutil.copytree(self.bundle, target, dirs_exist_ok=True)
        tail: deque[str] = deque(maxlen=LAST_LINES)

        def keep(line: str) -> None:
            tail.append(line)
            on_line(line)

        code = self._execute(place=place, on_line=keep)
        if code == 0:
            return
        step = failed_step(self.node)
        where = f" in step {step}" if step else ""
        how = f"took more than {self.timeout_s:g} s and was ended" if code is None else f"failed with exit code {code}"
        if not self.node.alive():
            how = "did not finish: the instance was lost"
        last = " | ".join(line for line in tail if line.strip())
        raise LifecycleError(f"lifecycle script {self.name} {how}{where}" + (f": {last}" if last else ""))

    def _execute(self, *, place: str, on_line: Callable[[str], None]) -> int | None:
        process = self.node.popen(
            [f"./{self.name}"],
            cwd=place,
            env={"SAGEMAKER_RESOURCE_CONFIG_PATH": RESOURCE_CONFIG},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        reader = threading.Thread(target=_pump, args=(process, on_line), daemon=True)
        reader.start()
        try:
            code: int | None = process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            code = None
            kill_group(process)
            process.wait()
        # A daemon that the script left behind may hold the pipe open for ever.
        reader.join(1.0)
        return code


def _pump(process: "subprocess.Popen[bytes]", on_line: Callable[[str], None]) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            on_line(line.decode(errors="replace").rstrip("\n"))


def failed_step(node: Node) -> str:
    """The step that the scripts' own last step_failed event names; empty when there is none."""
    try:
        lines = node.outside(EVENTS).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    failures = [event for event in parse_events(lines).events if event.kind == kinds.STEP_FAILED]
    return str(failures[-1].detail.get("step", "")) if failures else ""


def folder_of(uri: str) -> str:
    """The last part of a prefix, as a directory name."""
    return os.path.basename(uri.rstrip("/")) or "bundle"  # noqa: PTH119  a URI, no path
