"""
A command in a container, as ``kubectl exec`` runs it: words and no text of a shell in, what it printed and a code out.

The API server speaks WebSocket there, with a channel in the first byte of each message. Source: Kubernetes,
staging/src/k8s.io/apimachinery/pkg/util/remotecommand, "v4.channel.k8s.io", which all versions since 1.4 take.

One thread does all of it: the threads of ``websockets.sync`` read and write one TLS session at the same time, which
OpenSSL does not allow, and now and then an answer is lost or the process hangs (python/cpython#151508).
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
"""For a server to say goodbye; what the command printed has arrived by then."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A command that has ended."""

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
    """
    Run ``argv`` in a container, as its user.

    Raises:
        KubernetesError: also 403, where this user may not; the container does not run, or has no such program; the
            command has not ended in time.
    """
    from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

    asked = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", word) for word in argv)]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec?{urlencode(asked)}"
    try:
        said = asyncio.run(_said(client, path=path, timeout_s=timeout_s))
    except InvalidStatus as error:
        raise KubernetesError.from_body(error.response.status_code, bytes(error.response.body or b"")) from None
    except TimeoutError:
        raise KubernetesError(0, f"{argv[0]} in pod {pod} did not end within {timeout_s:g} s") from None
    except (OSError, InvalidHandshake) as error:
        raise KubernetesError(0, f"the API server at {client.endpoint} does not answer: {error}") from None
    except WebSocketException as error:
        raise KubernetesError(0, f"the API server left while {argv[0]} ran in pod {pod}: {error}") from None
    return Finished(
        exit_code=_exit_code(said[ENDED]),
        stdout=said[STDOUT].decode(errors="replace"),
        stderr=said[STDERR].decode(errors="replace"),
    )


async def _said(client: KubernetesClient, *, path: str, timeout_s: float) -> dict[int, bytes]:
    """What came in each channel, once the last one has told the end."""
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    said: dict[int, bytes] = {STDOUT: b"", STDERR: b"", ENDED: b""}
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
        while not said[ENDED]:
            message = await line.recv(decode=False)
            if message:
                said[message[0]] = said.get(message[0], b"") + message[1:]
    return said


def _exit_code(status: bytes) -> int:
    """
    Of the Status that the last message is.

    Raises:
        KubernetesError: the command did not run.
    """
    told = json.loads(status)
    if told.get("status") == "Success":
        return 0
    causes = (told.get("details") or {}).get("causes") or ()
    code = next((cause["message"] for cause in causes if cause.get("reason") == "ExitCode"), "")
    if not code:
        raise KubernetesError.from_body(int(told.get("code") or 0), status)
    return int(code)
