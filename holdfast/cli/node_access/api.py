"""Operations of Session Manager."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CLIENT_VERSION = "1.0.0.0"
"""Of this client. Agents multiplex port forwarding from 1.1.70 on, which this client does not use."""


Ask = Callable[..., dict[str, Any]]
"""Of a service and an operation with its parameters: ``Context.ask``."""


@dataclass(frozen=True, kw_only=True)
class StartedSession:
    session_id: str
    token: str = field(repr=False)
    url: str


class SessionApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def start(self, *, target: str, document: str, parameters: dict[str, list[str]]) -> StartedSession:
        answer = self._ask(
            "ssm", "StartSession", Target=target, DocumentName=document, Parameters=parameters, Reason="holdfast"
        )
        return StartedSession(session_id=answer["SessionId"], token=answer["TokenValue"], url=answer["StreamUrl"])

    def resume(self, session_id: str) -> str:
        """Return a new token; empty if the session has ended."""
        return str(self._ask("ssm", "ResumeSession", SessionId=session_id).get("TokenValue") or "")

    def terminate(self, session_id: str) -> None:
        self._ask("ssm", "TerminateSession", SessionId=session_id)
