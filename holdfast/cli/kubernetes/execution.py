"""
Run a command in a container, as ``kubectl exec`` does.

The API server uses WebSocket there, with a channel in the first byte of each message. Source: Kubernetes,
staging/src/k8s.io/apimachinery/pkg/util/remotecommand, "v4.channel.k8s.io", which all versions since 1.4 support.

Single-threaded: the threads of ``websockets.sync`` read and write one TLS session at the same time, which OpenSSL does
not allow: an answer can be lost or the process hang (python/cpython#151508).
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from holdfast_common import KubernetesClient, KubernetesError

PROTOCOL = "v4.channel.k8s.io"
STDOUT, STDERR, ENDED = 1, 2, 3
"""Channels that the server sends."""
TIMEOUT_S, CLOSE_S = 15.0, 1.0
"""Deadline for the closing handshake, after all output."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    exit_code: int
    stdout: str
    stderr: str


def execute(
    client: KubernetesClient,
    *,
    namespace: str,
    pod: str,
    container: str,
    argv: Sequence[str],
    timeout_s: float = TIMEOUT_S,
) -> Finished:
    """Run ``argv`` in a container. Raises: KubernetesError: refusal, no such program, or timeout."""
    from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

    query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in argv)]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec?{urlencode(query)}"
    try:
        output = asyncio.run(_output(client, path=path, timeout_s=timeout_s))
    except InvalidStatus as error:
        raise KubernetesError.from_body(error.response.status_code, bytes(error.response.body or b"")) from None
    except TimeoutError:
        raise KubernetesError(0, f"{argv[0]} in pod {pod} did not end within {timeout_s:g} s") from None
    except (OSError, InvalidHandshake) as error:
        raise KubernetesError(0, f"the API server at {client.endpoint} does not answer: {error}") from None
    except WebSocketException as error:
        raise KubernetesError(
            0, f"connection to the API server lost while {argv[0]} ran in pod {pod}: {error}"
        ) from None
    return Finished(
        exit_code=_exit_code(output[ENDED]),
        stdout=output[STDOUT].decode(errors="replace"),
        stderr=output[STDERR].decode(errors="replace"),
    )


async def _output(client: KubernetesClient, *, path: str, timeout_s: float) -> dict[int, bytes]:
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    output: dict[int, bytes] = {STDOUT: b"", STDERR: b"", ENDED: b""}
    async with (
        asyncio.timeout(timeout_s),
        connect(
            client.endpoint.replace("https://", "wss://", 1) + path,
            ssl=client.trust,
            subprotocols=[Subprotocol(PROTOCOL)],
            additional_headers=client.headers,
            compression=None,
            proxy=None,
            open_timeout=None,  # the time of the whole is limited
            close_timeout=CLOSE_S,
        ) as line,
    ):
        while not output[ENDED]:
            message = await line.recv(decode=False)
            if message:
                output[message[0]] = output.get(message[0], b"") + message[1:]
    return output


def _exit_code(status: bytes) -> int:
    """Return the exit code in a Status. Raises: KubernetesError: the command did not run."""
    report = json.loads(status)
    if report.get("status") == "Success":
        return 0
    causes = (report.get("details") or {}).get("causes") or ()
    code = next((cause["message"] for cause in causes if cause.get("reason") == "ExitCode"), "")
    if not code:
        raise KubernetesError.from_body(int(report.get("code") or 0), status)
    return int(code)
