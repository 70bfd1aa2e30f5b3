"""Lifecycle scripts: fetched from S3 once per content, copied to the instance, run as root."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.confined import Inside, safe_path
from holdfast.localcloud.hyperpod.lifecycle.node_files import (
    EVENTS,
    PROVISIONING_LOG,
    PROVISIONING_PARAMETERS,
    RESOURCE_CONFIG,
)
from holdfast.localcloud.hyperpod.slurm import last_words
from holdfast.localcloud.nodes import Node, kill_group
from holdfast_common import kinds, parse_events

TIMEOUT_S = 600.0
COPY_TIMEOUT_S = 60.0
PLACE = "/tmp"  # noqa: S108  where HyperPod puts them
AGENT_LOG = "/var/log/aws/clusters/sagemaker-host-agent.log"
AGENT_LOG_BYTES = 64 << 20
OWN_LINES = "[SageMaker] "
"""Prefixes of HyperPod's own lines in provisioning.log (``instances``)."""
LAST_LINES = 6
LAST_CHARACTERS = 700
TAIL_BYTES = 8192
_NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LifecycleError(Exception):
    """A bundle is not available or its script failed (``missing``: does not exist); one line of reason."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


class Bundles:
    def __init__(self, *, s3: Any, directory: Path) -> None:
        self._s3 = s3
        self._directory = directory
        self._lock = threading.Lock()
        self._fetching: dict[str, Future[Path]] = {}
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="bundle")

    def begin(self, uri: str) -> "Future[Path]":
        """Start fetching ``uri``. The result raises LifecycleError if it does not exist or is empty."""
        with self._lock:
            fetching = self._fetching.get(uri)
            if fetching is None or fetching.done():
                fetching = self._fetching[uri] = self._pool.submit(self._fetch, uri)
            return fetching

    def _fetch(self, uri: str) -> Path:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        prefix = prefix.rstrip("/") + "/"
        try:
            objects = self._list(uri, bucket=bucket, prefix=prefix)
            digest = hashlib.sha256(json.dumps([uri, sorted(objects.items())]).encode()).hexdigest()[:20]
            place = self._directory / digest
            if not place.is_dir():
                self._download(bucket=bucket, prefix=prefix, names=list(objects), place=place)
        except (ClientError, BotoCoreError) as error:
            raise LifecycleError(f"lifecycle scripts at {uri} cannot be read: {error}", missing=True) from None
        return place

    def _list(self, uri: str, *, bucket: str, prefix: str) -> dict[str, str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = {item["Key"][len(prefix) :]: item["ETag"] for page in pages for item in page.get("Contents", ())}
        objects = {name: etag for name, etag in found.items() if name and not name.endswith("/") and safe_path(name)}
        if not objects:
            raise LifecycleError(f"no lifecycle scripts at {uri}; upload them under this prefix", missing=True)
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
    node: Node
    bundle: Path
    name: str
    """Of the script, relative to the bundle."""
    uri: str
    """Source of the bundle."""
    timeout_s: float = TIMEOUT_S
    """AWS names no limit, and does end scripts that hang. Default: 600 s"""

    def run(self) -> None:
        """
        Copy the bundle to the node and run the script.

        Only provisioning.log goes to CloudWatch (SageMaker developer guide, "Logging at instance level"); the output
        stays on the node, in the log of HyperPod's agent.

        Raises:
            LifecycleError: The script is missing, failed, or timed out.
        """
        if not (self.bundle / self.name).is_file():
            raise LifecycleError(f"no script {self.name} among the lifecycle scripts", missing=True)
        place = working_folder(self.uri)
        self._put(self.node.inside(place))
        with contextlib.suppress(OSError):
            # Scripts read it by its relative name too, where the bundle brought none.
            copy = f"{place}/{Path(PROVISIONING_PARAMETERS).name}"
            if not self.node.inside(copy).exists():
                self.node.write_file(copy, self.node.read_file(PROVISIONING_PARAMETERS))
        tail = OutputTail()
        code = self._execute(place=place, tail=tail)
        if code == 0:
            return
        step = failed_step(self.node)
        where = f" in step {step}" if step else ""
        how = how_it_ended(code, timeout_s=self.timeout_s)
        if not self.node.alive():
            how = "did not finish: the instance was lost"
        log = OutputTail()
        log.add(_end_of(self.node.outside(PROVISIONING_LOG)))
        last = " | ".join(last_lines(reported=tail.lines(), logged=log.lines()))
        if len(last) > LAST_CHARACTERS:
            last = "..." + last[3 - LAST_CHARACTERS :]
        raise LifecycleError(f"lifecycle script {self.name} {how}{where}" + (f": {last}" if last else ""))

    def _put(self, target: Inside) -> None:
        # What somebody has put there before, links among it, is removed instead of written through.
        command = ["cp", "--recursive", "--preserve=mode", "--remove-destination", f"{self.bundle}/."]
        with target.directory(make=0o755) as place:
            done = subprocess.run(
                [*command, f"/proc/self/fd/{place}"],
                pass_fds=(place,),
                check=False,
                timeout=COPY_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise LifecycleError(f"the lifecycle scripts cannot be copied to the instance: {last_words(done)}")

    def _execute(self, *, place: str, tail: "OutputTail") -> int | None:
        process = self.node.popen(
            [f"./{self.name}"],
            cwd=place,
            env={"SAGEMAKER_RESOURCE_CONFIG_PATH": RESOURCE_CONFIG},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        reader = threading.Thread(target=_pump, args=(process, self.node.inside(AGENT_LOG), tail), daemon=True)
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


def _end_of(path: Inside) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read(TAIL_BYTES)
    return b""


class OutputTail:
    def __init__(self) -> None:
        self._kept = b""

    def add(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-TAIL_BYTES:]

    def lines(self) -> list[str]:
        lines = (line.strip("\0 \t\r") for line in self._kept.decode(errors="replace").splitlines())
        return [line for line in lines if line and not line.startswith(OWN_LINES)]


def last_lines(*, reported: list[str], logged: list[str]) -> list[str]:
    """Return the last lines of a script's output and of its log, both represented."""
    half = LAST_LINES // 2
    return [*reported[-(LAST_LINES - min(half, len(logged))) :], *logged[-(LAST_LINES - min(half, len(reported))) :]]


def _pump(process: "subprocess.Popen[bytes]", log: Inside, tail: OutputTail) -> None:
    """Read to the end even without a log, so that the script never blocks."""
    assert process.stdout is not None
    left = AGENT_LOG_BYTES
    with process.stdout as output:
        while chunk := output.read1(1 << 16):  # type: ignore[attr-defined]
            tail.add(chunk)
            with contextlib.suppress(OSError):
                log.append(chunk[:left])
            left = max(0, left - len(chunk))


def how_it_ended(code: int | None, *, timeout_s: float) -> str:
    if code is None:
        return f"timed out after {timeout_s:g} s"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    with contextlib.suppress(ValueError):
        # What a shell makes of a program that was killed, and what a script may say as well.
        return f"failed with exit code {code} ({signal.Signals(code - 128).name})"
    return f"failed with exit code {code}"


def failed_step(node: Node) -> str:
    """Return the step of the scripts' last step_failed event, or ""."""
    try:
        lines = node.outside(EVENTS).read_bytes().decode(errors="replace").splitlines()
    except OSError:
        return ""
    failures = [
        event
        for event in parse_events(lines).events
        if event.kind == kinds.STEP_FAILED and event.detail.get("outcome") != "not started"
    ]
    return str(failures[-1].detail.get("step", "")) if failures else ""


def working_folder(uri: str) -> str:
    """Return HyperPod's folder of the scripts: /tmp/<bucket>/<prefix> (a comment in AWS's own scripts)."""
    return f"{PLACE}/{uri.partition('://')[2].rstrip('/')}"
