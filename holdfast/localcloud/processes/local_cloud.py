"""Local cloud of one home: start, find and stop the embedded AWS and the HyperPod control plane."""

import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.localcloud.home import (
    MARKER,
    Keys,
    LocalCloudError,
    claim,
    fresh_keys,
    is_fresh,
    keys_of,
    made_keys,
    recognise,
    release,
    unwritable,
)
from holdfast.localcloud.processes import detached, spawning
from holdfast.localcloud.processes.holding import HomeHold, hold, removing
from holdfast.localcloud.processes.monitoring import MONITOR, restart_monitor
from holdfast.localcloud.processes.state import KERNEL_LOG, ProcessState, found, process_state, serves_kernel_logs
from holdfast.localcloud.supervision import together
from holdfast_common import kinds, parse_events

DEFAULT_HOME = Path("/var/lib/holdfast")
DEFAULT_PORT = 5710
ACCOUNT = "123456789012"

AWS, HYPERPOD, KEEPER = "aws", "hyperpod", "keeper"
OF_COMMANDS = ("cdk", "synth")
"""Processes that end with the command that started them."""

_OWN_EVENT = re.compile(r"^[\d-]+ [\d:,]+ INFO \S*events: (\{.*)$", re.MULTILINE)
"""Start of a record that is an event of the control plane, not a quotation."""


@dataclass(frozen=True, kw_only=True)
class LocalCloud:
    """One embedded AWS with its HyperPod: one per home, on a port of the loopback (default: 5710)."""

    home: Path
    port: int = DEFAULT_PORT

    @property
    def endpoint(self) -> str:
        return f"http://localhost:{self.port}"

    def keys(self) -> Keys:
        """Return the keys of this cloud, or unusable keys. Raise LocalCloudError if they are not this user's."""
        try:
            return keys_of(self.home)
        except FileNotFoundError:
            return fresh_keys()
        except PermissionError as error:
            raise LocalCloudError(
                f"the keys of the local cloud in {self.home} are readable by their owner only: {error}; "
                "run the command as its owner"
            ) from None

    def client_environment(self, *, region: str) -> dict[str, str]:
        """Return environment variables that point any AWS client, the CDK CLI included, at this cloud only."""
        keys = self.keys()
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            # The CDK CLI writes template URLs from this one; it must be a host that S3 parses path-style.
            "AWS_ENDPOINT_URL_S3_FOR_CLOUDFORMATION": self.endpoint,
            "AWS_ACCESS_KEY_ID": keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        }

    def client_arguments(self) -> dict[str, str]:
        """Return arguments of boto3 and botocore for this cloud. Raise LocalCloudError, as `keys`."""
        return {"endpoint_url": self.endpoint, **self.keys().boto}

    @contextlib.contextmanager
    def held(self, *, verb: str) -> Iterator[HomeHold]:
        """Hold the home for one command; finish an interrupted removal. Raise HeldError or LocalCloudError."""
        with hold(self.home, verb=verb) as found:
            self._end_children()
            if found.unfinished and verb != "down":
                self.remove()
            try:
                yield replace(found, fresh=found.fresh or found.unfinished)
            finally:
                self._end_children()

    def _end_children(self) -> None:
        for name in OF_COMMANDS:
            detached.stop(name=name, home=self.home)

    def claim(self) -> None:
        """Create the home and its keys, or check their owner. Raise LocalCloudError if they are not ours."""
        try:
            claim(self.home)
            made_keys(self.home)
        except OSError as error:
            raise unwritable(self.home, error) from None

    def recognise(self) -> None:
        """Check that the folder is a home of this user, or one left unfinished. Raise LocalCloudError."""
        if not is_fresh(self.home):
            recognise(self.home)

    def is_claimed(self) -> bool:
        return (self.home / MARKER).is_file()

    def running(self) -> dict[str, bool]:
        return {name: detached.find(name=name, home=self.home) is not None for name in (AWS, HYPERPOD)}

    def health(self) -> dict[str, Any] | None:
        """Return the embedded AWS's health; None without an answer."""
        import urllib.request  # slow to load, and few commands ask

        try:
            with urllib.request.urlopen(f"{self.endpoint}/_holdfast/health", timeout=2.0) as answer:  # noqa: S310
                body: dict[str, Any] = json.load(answer)
                return body
        except (OSError, ValueError):
            return None

    def problems(self) -> list[str]:
        """Return problems of processes and threads, a line each."""
        return [line for one in self.processes() for line in one.problems]

    def processes(self) -> list[ProcessState]:
        logs = [KERNEL_LOG] if serves_kernel_logs(self.home) else []
        monitor = [MONITOR] if detached.has_record(name=MONITOR, home=self.home) else []
        return [process_state(name, home=self.home) for name in (AWS, HYPERPOD, KEEPER, *logs, *monitor)]

    def go_on(self) -> None:
        for name in (AWS, HYPERPOD, KEEPER, KERNEL_LOG, MONITOR):
            process = found(name, home=self.home)
            if process is not None and process.stands_still():
                process.go_on()

    def start_aws(self) -> bool:
        """Start it; return False if it runs. Raise LocalCloudError if the port is in use, or ProcessError."""
        if not self.is_claimed():  # nothing is made that would be refused
            self._refuse_taken_port()
        self.claim()
        with detached.starting(name=AWS, home=self.home):
            return self._start_aws()

    def _refuse_taken_port(self) -> None:
        if _port_is_taken(self.port):
            raise LocalCloudError(
                f"port {self.port} on localhost is in use by another program; "
                "stop that program, or choose another port with HOLDFAST_PORT=<port>"
            )

    def _start_aws(self) -> bool:
        def ready() -> bool:
            return self.health() is not None

        if found := detached.find(name=AWS, home=self.home):
            spawning.wait_until_ready(found, name=AWS, home=self.home, ready=ready)
            return False
        self._refuse_taken_port()
        spawning.start(
            name=AWS,
            argv=[sys.executable, "-m", "holdfast.localcloud.aws", "--home", str(self.home), "--port", str(self.port)],
            home=self.home,
            ready=ready,
            endpoint=self.endpoint,
        )
        return True

    def start_hyperpod(self, *, region: str) -> bool:
        """Start the HyperPod control plane unless it runs. It adopts running nodes."""
        with detached.starting(name=HYPERPOD, home=self.home):
            return self._start_hyperpod(region=region)

    def kernel_logs_died(self) -> bool:
        return serves_kernel_logs(self.home) and found(KERNEL_LOG, home=self.home) is None

    def restore_kernel_logs(self) -> None:
        """Serve the kernel logs again. Raise NodeError if a node has none."""
        from holdfast.localcloud.nodes import Fleet

        Fleet(home=self.home).restore_kernel_logs()

    def start_keeper(self, *, region: str) -> None:
        with detached.starting(name=KEEPER, home=self.home):
            if not detached.find(name=KEEPER, home=self.home):
                self._start_keeper(region=region)

    def restart_keeper(self, *, region: str) -> bool:
        """Start a keeper that has died; return False if it runs, or was ended by a command."""
        with detached.starting(name=KEEPER, home=self.home):
            if not detached.has_died(name=KEEPER, home=self.home):
                return False
            self._start_keeper(region=region)
            return True

    def _start_keeper(self, *, region: str) -> None:
        argv = [sys.executable, "-m", "holdfast.localcloud.keeper", "--home", str(self.home)]
        argv += ["--port", str(self.port), "--region", region]
        spawning.start(name=KEEPER, argv=argv, home=self.home, ready=lambda: True)

    def restart_monitor(self) -> bool:
        return restart_monitor(self.home)

    def _start_hyperpod(self, *, region: str) -> bool:
        ready = self.home / "run" / "hyperpod.ready"
        if found := detached.find(name=HYPERPOD, home=self.home):
            spawning.wait_until_ready(found, name=HYPERPOD, home=self.home, ready=ready.exists)
            return False
        recognise(self.home)
        ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "holdfast.localcloud.hyperpod", "--home", str(self.home)]
        spawning.start(
            name=HYPERPOD,
            argv=[*argv, "--endpoint", self.endpoint, "--region", region],
            home=self.home,
            ready=ready.exists,
            endpoint=self.endpoint,
        )
        return True

    def stop(self) -> None:
        with detached.starting(name=KEEPER, home=self.home):  # the control plane would start it again
            detached.stop(name=KEEPER, home=self.home)  # it would start the others again
        together(*(partial(detached.stop, name=name, home=self.home) for name in (MONITOR, HYPERPOD, AWS)))

    def node_failures(self, *, since_ns: int = 0) -> list[str]:
        """Return why instances failed, by default since the control plane started: a line for each reason."""
        try:
            text = (self.home / "log" / "hyperpod.log").read_text(errors="replace")
        except OSError:
            return []
        events = parse_events(match[1] for match in _OWN_EVENT.finditer(text)).events
        nodes: dict[str, list[str]] = {}
        for event in events:
            if event.kind == kinds.NODE_FAILED and event.time_ns >= since_ns:
                nodes.setdefault(event.evidence, []).append(event.node)
        return [f"{_instances(names)}: {evidence}" for evidence, names in nodes.items()]

    def remove(self) -> list[str]:
        """Remove everything, also after a crash; return what remains. Raise LocalCloudError if not our home."""
        from holdfast.localcloud.nodes import Fleet
        from holdfast.localcloud.planting import end_all

        if not self.home.exists():
            return []
        recognise(self.home)
        with removing(self.home):
            self.stop()
            fleet = Fleet(home=self.home)
            end_all(fleet)
            fleet.close()
            return release(self.home)


def _instances(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"instance {names[0]}{more}"


def from_environment() -> LocalCloud:
    """Return the local cloud of HOLDFAST_HOME and HOLDFAST_PORT. Default: /var/lib/holdfast, and its port."""
    named = os.environ.get("HOLDFAST_HOME", str(DEFAULT_HOME))
    if not named:
        raise LocalCloudError(f"HOLDFAST_HOME is empty; allowed: a folder, or unset it for {DEFAULT_HOME}")
    home = Path(named).absolute()
    port = os.environ.get("HOLDFAST_PORT")
    if port is None:
        return LocalCloud(home=home, port=_recorded_port(home) or DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise LocalCloudError(f"HOLDFAST_PORT is {port!r}; allowed: a number from 1 to 65535")
    return LocalCloud(home=home, port=int(port))


def _recorded_port(home: Path) -> int | None:
    try:
        process = detached.find(name=AWS, home=home)
    except PermissionError:  # whoever reads more of it is told
        return None
    return int(process.endpoint.rpartition(":")[2]) if process else None


def _port_is_taken(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
