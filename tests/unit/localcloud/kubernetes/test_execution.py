"""A command in a container: what is asked of the API server, and what its answers mean."""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from kubernetes_pki import Pki
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from holdfast.cli.kubernetes import Finished, execute
from holdfast_common import KubernetesClient, KubernetesError

BEGINS = [(channel, b"") for channel in range(4)]
"""What a kubelet sends first."""
CODE_7 = {
    "status": "Failure",
    "reason": "NonZeroExitCode",
    "message": "command terminated with exit code 7",
    "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
}
NO_PROGRAM = {"status": "Failure", "reason": "InternalError", "message": "executable file not found", "code": 500}


class Server:
    """One API server that answers every command with the messages that a test gives it."""

    def __init__(self, folder: Path) -> None:
        pki = Pki(folder)
        certificate, key = pki.sign("server")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self.messages: list[tuple[int, bytes]] = []
        self.stays = False
        self.refusal: Response | None = None
        self.request: Request | None = None
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(ready),))
        self._thread.start()
        port = ready.result(timeout=10.0)
        self.authority = pki.authority.read_text()
        self.client = KubernetesClient(
            endpoint=f"https://127.0.0.1:{port}", authority=self.authority, token="of somebody"
        )

    async def _serve(self, ready: "Future[int]") -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        async with serve(
            self._answer,
            "127.0.0.1",
            0,
            ssl=self._context,
            subprotocols=[Subprotocol("v4.channel.k8s.io")],
            process_request=self._asked,
        ) as server:
            ready.set_result(next(iter(server.sockets)).getsockname()[1])
            await self._stopped.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=10.0)

    def ends(self, status: dict[str, Any]) -> None:
        self.messages.append((3, json.dumps(status).encode()))

    def refuse(self, code: HTTPStatus, message: str) -> None:
        body = json.dumps({"kind": "Status", "message": message}).encode()
        self.refusal = Response(code, code.phrase, Headers({"Content-Length": str(len(body))}), body)

    def _asked(self, _connection: ServerConnection, request: Request) -> Response | None:
        self.request = request
        return self.refusal

    async def _answer(self, connection: ServerConnection) -> None:
        for channel, data in self.messages:
            await connection.send(bytes([channel]) + data)
        if self.stays:
            await connection.wait_closed()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.stop()


def run(server: Server, *argv: str) -> Finished:
    return execute(server.client, namespace="team", pod="job-0", container="train", argv=argv)


def test_words_arrive_as_they_are_and_what_was_printed_comes_back(server: Server) -> None:
    server.messages = [*BEGINS, (1, b"out "), (2, b"err"), (1, "ü".encode()[:1]), (1, "ü".encode()[1:])]
    server.ends({"status": "Success"})

    assert run(server, "echo", "a b", "$(c)", "&d=e") == Finished(exit_code=0, stdout="out ü", stderr="err")
    assert server.request is not None
    asked = urlsplit(server.request.path)
    assert asked.path == "/api/v1/namespaces/team/pods/job-0/exec"
    words = [("command", word) for word in ("echo", "a b", "$(c)", "&d=e")]
    assert parse_qsl(asked.query) == [("container", "train"), ("stdout", "true"), ("stderr", "true"), *words]
    assert server.request.headers["Authorization"] == "Bearer of somebody"
    assert server.request.headers["Sec-WebSocket-Protocol"] == "v4.channel.k8s.io"


def test_a_command_that_fails_has_its_own_exit_code(server: Server) -> None:
    server.messages = [*BEGINS, (2, b"told")]
    server.ends(CODE_7)

    assert run(server, "false") == Finished(exit_code=7, stdout="", stderr="told")


@pytest.mark.parametrize("code", [HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND])
def test_what_the_server_refuses_has_its_code_and_its_words(server: Server, code: HTTPStatus) -> None:
    server.refuse(code, "pods/exec: no")

    with pytest.raises(KubernetesError, match=r"^pods/exec: no$") as caught:
        run(server, "true")
    assert caught.value.code == code


def test_a_command_that_cannot_begin_is_an_error_and_no_exit_code(server: Server) -> None:
    server.ends(NO_PROGRAM)

    with pytest.raises(KubernetesError, match="executable file not found") as caught:
        run(server, "nothing")
    assert caught.value.code == 500


def test_a_server_that_leaves_before_the_end_is_an_error(server: Server) -> None:
    server.messages = [*BEGINS, (1, b"some of it")]

    with pytest.raises(KubernetesError, match="connection to the API server lost while sleep ran in pod job-0"):
        run(server, "sleep")


def test_a_command_that_does_not_end_is_left_in_time(server: Server) -> None:
    server.messages, server.stays = BEGINS, True

    with pytest.raises(KubernetesError, match=r"sleep in pod job-0 did not end within 0\.5 s"):
        execute(server.client, namespace="team", pod="job-0", container="train", argv=["sleep"], timeout_s=0.5)


def test_nobody_at_the_endpoint_is_an_error(server: Server) -> None:
    nobody = KubernetesClient(endpoint="https://127.0.0.1:9", authority=server.authority, token="")

    with pytest.raises(KubernetesError, match=r"the API server at https://127\.0\.0\.1:9 does not answer"):
        execute(nobody, namespace="team", pod="job-0", container="train", argv=["true"])


def test_another_authority_is_not_believed(server: Server, tmp_path: Path) -> None:
    other = KubernetesClient(
        endpoint=server.client.endpoint, authority=Pki(tmp_path / "other").authority.read_text(), token="secret"
    )

    with pytest.raises(KubernetesError, match="CERTIFICATE_VERIFY_FAILED"):
        execute(other, namespace="team", pod="job-0", container="train", argv=["true"])
    assert server.request is None
