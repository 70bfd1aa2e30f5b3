"""
Sessions with their tokens.

A token is for one connection, within ``TOKEN_S``. A session ends with its program, by TerminateSession, after
``IDLE_S`` without input or output, or when it was not resumed for ``RESUME_S``.
"""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.ssm.agent import RESUME_S, Agent
from holdfast.localcloud.aws.ssm.machine import Machine
from holdfast.session_manager import SessionPlan

TOKEN_S = 60.0
IDLE_S = 20 * 60.0
"""Default of Session Manager's preferences."""
MOST_SESSIONS = 64
BETWEEN_LOOKS_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Opened:
    session_id: str
    token: str = field(repr=False)
    url: str


@dataclass(kw_only=True)
class Session:
    session_id: str
    principal: str
    agent: Agent
    token: str = field(default="", repr=False)
    token_until_s: float = 0.0


class Sessions:
    def __init__(self, *, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._port = port
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._is_watched = False

    def start(self, *, target: str, machine: Machine, plan: SessionPlan, principal: str) -> Opened:
        """Create a session. Raises: ServiceError: too many."""
        name = principal.rpartition("/")[2].rpartition(":")[2]
        session_id = f"{name}-{secrets.token_hex(9)[:17]}"
        agent = Agent(session_id=session_id, target=target, machine=machine, plan=plan)
        session = Session(session_id=session_id, principal=principal, agent=agent)
        with self._lock:
            self._forget_ended()
            if len(self._sessions) >= MOST_SESSIONS:
                raise ServiceError("InternalServerError", f"{MOST_SESSIONS} sessions are open; end one of them", 500)
            self._sessions[session_id] = session
            opened = self._opened(session)
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name="sessions", daemon=True).start()
        return opened

    def resume(self, session_id: str, *, principal: str) -> Opened:
        """Return a new token. Raises: ServiceError: no such session of this caller, or it has ended."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None or session.principal != principal or session.agent.has_ended:
                raise ServiceError("DoesNotExistException", f"Session {session_id} does not exist.")
            return self._opened(session)

    def terminate(self, session_id: str, *, principal: str) -> None:
        with self._lock:
            session = self._sessions.get(session_id)
        if session is not None and session.principal == principal:
            session.agent.terminate()

    def admit(self, session_id: str, token: str) -> Agent | None:
        """Return the agent of a session, once per token; None if the token is not valid."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None or not session.token or self._clock() > session.token_until_s:
                return None
            if not secrets.compare_digest(session.token.encode(), token.encode()):
                return None
            session.token = ""
            return None if session.agent.has_ended else session.agent

    def close(self) -> None:
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for one in sessions:
            one.agent.terminate()

    def _opened(self, session: Session) -> Opened:
        session.token = secrets.token_urlsafe(96)
        session.token_until_s = self._clock() + TOKEN_S
        url = f"ws://localhost:{self._port}/v1/data-channel/{session.session_id}?role=publish_subscribe"
        return Opened(session_id=session.session_id, token=session.token, url=url)

    def _watch(self) -> None:
        while True:
            time.sleep(BETWEEN_LOOKS_S)
            now = self._clock()
            with self._lock:
                self._forget_ended()
                sessions = list(self._sessions.values())
                self._is_watched = bool(sessions)
                if not sessions:
                    return
            for one in sessions:
                if one.agent.idle_since(now) > IDLE_S:
                    one.agent.terminate("session timed out: no input and no output for 20 minutes")
                elif one.agent.detached_since(now) > RESUME_S:
                    one.agent.terminate()

    def _forget_ended(self) -> None:
        self._sessions = {key: one for key, one in self._sessions.items() if not one.agent.has_ended}
