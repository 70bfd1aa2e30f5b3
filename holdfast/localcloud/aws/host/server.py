"""The embedded AWS as a server: sockets, threads, services, start and stop."""

import contextlib
import errno
import functools
import importlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from moto.core.config import default_user_config
from werkzeug.wrappers import Request, Response

from holdfast.localcloud.aws.clients import Clients
from holdfast.localcloud.aws.common import Mishaps, Plane, ServiceError, reset_clock
from holdfast.localcloud.aws.guard import Authorizer, BoundedServer, Callers
from holdfast.localcloud.aws.host.direct import DirectTransport
from holdfast.localcloud.aws.host.front import Front, json_response
from holdfast.localcloud.aws.host.services import hosted
from holdfast.localcloud.aws.ssm import EnterNode, Sessions, enter_local_node
from holdfast.localcloud.aws.state import Gate, Persistence, forget
from holdfast.localcloud.home import claim, fresh_keys, made_keys
from holdfast.localcloud.processes import control_plane
from holdfast.localcloud.supervision import Pass, Passes, json_of_passes, passes_path

log = logging.getLogger(__name__)

HyperPod = Literal["controlled", "simulated"]
LONGEST_WATCH_S = 60.0
LATE_AFTER_S = 30.0


class PortBusyError(Exception): ...


class EmbeddedAws:
    """A running embedded AWS. moto's state is global, so there is one per process."""

    _running = threading.Lock()

    def __init__(
        self,
        *,
        home: Path,
        port: int = 0,
        hyperpod: HyperPod = "controlled",
        skip_waits: bool = False,
        mishaps: Mishaps | None = None,
        enter: EnterNode | None = None,
    ) -> None:
        """
        Start it; use it as a context manager or call ``stop``.

        `port` 0 picks a free one. `hyperpod` "simulated" runs nodes without a control plane. `skip_waits` deploys
        stacks in simulated time. `mishaps` are deliberate failures. `enter` finds the node of a session; by default
        that of a local HyperPod in `home`. Raises `PortBusyError`.
        """
        if not EmbeddedAws._running.acquire(blocking=False):
            raise RuntimeError("an embedded AWS already runs in this process; stop it first")
        with contextlib.ExitStack() as undo:
            undo.callback(EmbeddedAws._running.release)
            sockets = _listen(port)
            for one in sockets:
                undo.callback(one.close)
            self.port: int = sockets[0].getsockname()[1]
            self.endpoint = f"http://localhost:{self.port}"
            claim(home)
            self.home = home
            self.keys = made_keys(home)
            """Of the home's owner: what any client signs with."""
            self._own = fresh_keys()
            self._plane = Plane(simulated=hyperpod == "simulated")
            gate, self._skips = Gate(), skip_waits
            sessions = Sessions(port=self.port)
            self._services = hosted(
                port=self.port,
                plane=self._plane,
                keys=self._own,
                home=home,
                in_moto=partial(self._in_moto, gate),
                sessions=sessions,
                enter=enter or partial(enter_local_node, home),
                direct=self._at_once if skip_waits else None,
                skip=skip_waits,
                mishaps=mishaps,
            )
            self._persistence = Persistence(home=home, gate=gate, services=self._services)
            by_scope = {service.scope: service for service in self._services.values()}
            self._judge = Authorizer(functools.cache(self._client))
            self._front = Front(
                services=by_scope,
                private=self._private,
                sessions=sessions,
                gate=gate,
                callers=Callers(owner=self.keys, own=self._own),
                judge=self._judge,
            )
            self._front.refusal = self._persistence.refusal
            self._home = home
            self._servers = [_server(one, self._front) for one in sockets]
            self._threads = [
                threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
                for server in self._servers
            ]
            self._stopping = threading.Event()
            self._passes = Passes(path=passes_path(home, "aws"), reported=self._reported)
            self._start()
            undo.pop_all()

    @property
    def client_arguments(self) -> dict[str, str]:
        return {"endpoint_url": self.endpoint, **self.keys.boto}

    def _client(self, account: str, region: str) -> Clients:
        direct = DirectTransport(self._front)
        return Clients(endpoint=self.endpoint, account=account, region=region, keys=self._own, direct=direct)

    def _at_once(self, request: Any, **_: Any) -> Any:
        return DirectTransport(self._front)(request)

    def stop(self) -> None:
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._passes.stop()
        self._plane.close()
        for service in self._services.values():
            service.close()
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()
        self._persistence.close()
        forget()
        reset_clock()
        EmbeddedAws._running.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def health(self) -> dict[str, Any]:
        problem = self._persistence.problem or self._persistence.room.refusal(desired=0)
        return {
            "status": "degraded" if problem else "ok",
            "pid": os.getpid(),
            "ready": self._front.ready,
            "problem": problem,
            "unsaved": self._persistence.unsaved,
            "threads": json_of_passes(self._reported(), now=time.monotonic()),
            "control_plane": control_plane(self._home),
        }

    def _reported(self) -> list[Pass]:
        listeners = [
            Pass(name=f"listener-{number}", at=server.passed_at, late_after_s=LATE_AFTER_S)
            for number, server in enumerate(self._servers)
        ]
        return [*listeners, *([] if self._skips else [self._persistence.worker.reported()])]

    def _start(self) -> None:
        forget()
        # The CDK's bootstrap attaches AdministratorAccess; an account has AWS's managed policies from the start.
        default_user_config["iam"]["load_aws_managed_policies"] = True
        # Thousands of images that AWS does not have, of which each region's part would be in every snapshot.
        os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
        started = time.monotonic()
        for thread in self._threads:  # services may talk to each other while they are restored
            thread.start()
        restored = self._persistence.restore()
        if restored:
            log.info("restored %s in %.2f s", ", ".join(restored), time.monotonic() - started)
        self._front.changed = partial(self._persistence.changed, ours=True)
        self._front.changed_moto = partial(self._persistence.changed, ours=False)
        for name, service in self._services.items():
            service.on_change = partial(self._persistence.changed, name, ours=True)
        if not self._skips:  # what passes in no time is not for keeping
            self._persistence.start()
            self._passes.start()
        self._front.ready = True
        threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()

    @contextlib.contextmanager
    def _in_moto(self, gate: Gate, service: str) -> Iterator[None]:
        with gate.shared():
            yield
        self._front.changed_moto(service)

    def _private(self, request: Request) -> Response:
        where = (request.method, request.path)
        try:
            if where == ("GET", "/_holdfast/health"):
                return json_response(self.health(), status=200 if self._front.ready else 503)
            if not self._front.ready:
                return json_response({"code": "ServiceUnavailable", "message": "restoring"}, status=503)
            if where == ("GET", "/_holdfast/releases"):
                found = self._services["cloudformation"].instances()
                return json_response({"releases": [release for one in found for release in one.releases()]})
            if where == ("GET", "/_holdfast/hyperpod/watch"):
                version = request.args.get("version", type=int, default=-1)
                timeout_s = min(request.args.get("timeout_s", type=float, default=10.0), LONGEST_WATCH_S)
                kubernetes = request.args.get("kubernetes", default="")
                seen = self._plane.watch(version=version, timeout_s=timeout_s, kubernetes=kubernetes)
                return json_response(seen)
            if where == ("GET", "/_holdfast/hyperpod/requests"):
                return json_response(self._plane.requests())
            if where == ("POST", "/_holdfast/hyperpod/report"):
                return json_response(self._plane.report(_body(request)))
            if where == ("POST", "/_holdfast/hyperpod/kubernetes"):
                return json_response(self._plane.became(_body(request)))
        except ServiceError as error:
            return json_response({"code": error.code, "message": error.message}, status=error.status)
        return json_response({"code": "NotFound", "message": f"there is no {where[0]} {where[1]}"}, status=404)


serve = EmbeddedAws


class _Server(BoundedServer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.passed_at = time.monotonic()
        super().__init__(*args, **kwargs)

    def service_actions(self) -> None:
        super().service_actions()
        self.passed_at = time.monotonic()


def _server(listening: socket.socket, front: Front) -> _Server:
    host, port = listening.getsockname()[:2]
    server = _Server(host, port, front, fd=listening.fileno())
    listening.close()  # the server has its own duplicate
    return server


def _listen(port: int) -> list[socket.socket]:
    first = _bound(socket.AF_INET, "127.0.0.1", port)
    sockets = [first]
    with contextlib.suppress(OSError, PortBusyError):
        sockets.append(_bound(socket.AF_INET6, "::1", first.getsockname()[1]))
    return sockets


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise PortBusyError(
                f"port {port} of {host} cannot be used: {os.strerror(error.errno).lower()}; "
                "stop the program that listens there, or choose another port with --port"
            ) from error
        raise
    return made


def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.get_data())
    except ValueError as error:
        raise ServiceError("ValidationException", f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ServiceError("ValidationException", "the body is not a JSON object")
    return body


def _warm_up() -> None:
    for name in ("jsonschema", "moto.iam.models", "moto.s3.models", "moto.ec2.models"):
        importlib.import_module(name)
