"""
Session documents of AWS, and what a session of one runs.

Source: Systems Manager user guide, "Start a session" and "Session document schema"; the agent's plugins. The parameters
that are not named there are assumed not to exist.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

RUN_SHELL = "SSM-SessionManagerRunShell"
INTERACTIVE_COMMAND = "AWS-StartInteractiveCommand"
NON_INTERACTIVE_COMMAND = "AWS-StartNonInteractiveCommand"
SSH = "AWS-StartSSHSession"
PORT_FORWARDING = "AWS-StartPortForwardingSession"
_PORT = re.compile(r"[1-9]\d{0,4}", re.ASCII)


class SessionType(StrEnum):
    """Plugins of the agent."""

    SHELL = "Standard_Stream"
    INTERACTIVE_COMMANDS = "InteractiveCommands"
    NON_INTERACTIVE_COMMANDS = "NonInteractiveCommands"
    PORT = "Port"


class DocumentError(Exception):
    """Has the code of the API's error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    session_type: SessionType
    command: str = ""
    port: int = 0
    local_port: str = ""
    forwards: bool = False
    """True of port forwarding; False of SSH, whose client has one connection."""

    @property
    def properties(self) -> dict[str, str] | None:
        """Properties of the handshake, as the agent sends them."""
        if self.session_type != SessionType.PORT:
            return None
        found = {"portNumber": str(self.port)}
        return found | {"type": "LocalPortForwarding", "localPortNumber": self.local_port} if self.forwards else found


def plan_of(document: str | None, parameters: Mapping[str, Sequence[str]] | None) -> SessionPlan:
    """Return what a session runs. Raises: DocumentError: unknown document, or parameters that it does not take."""
    name = (document or RUN_SHELL).rpartition("/")[2]
    known = _PARAMETERS.get(name)
    if known is None:
        raise DocumentError("InvalidDocument", f"Document with name {name} does not exist.")
    given = {key: _one(key, value) for key, value in (parameters or {}).items()}
    if unknown := sorted(given.keys() - known.keys()):
        raise DocumentError("InvalidParameters", f"Parameters {unknown} not defined in document {name}.")
    values = {**known, **given}
    if name in (INTERACTIVE_COMMAND, NON_INTERACTIVE_COMMAND):
        if not values["command"]:
            raise DocumentError("InvalidParameters", f"Parameter command of document {name} is required.")
        interactive = name == INTERACTIVE_COMMAND
        return SessionPlan(
            session_type=SessionType.INTERACTIVE_COMMANDS if interactive else SessionType.NON_INTERACTIVE_COMMANDS,
            command=values["command"],
        )
    if name in (SSH, PORT_FORWARDING):
        return SessionPlan(
            session_type=SessionType.PORT,
            port=_port("portNumber", values["portNumber"]),
            local_port=values.get("localPortNumber", ""),
            forwards=name == PORT_FORWARDING,
        )
    return SessionPlan(session_type=SessionType.SHELL)


_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    RUN_SHELL: {},
    INTERACTIVE_COMMAND: {"command": ""},
    NON_INTERACTIVE_COMMAND: {"command": ""},
    SSH: {"portNumber": "22"},
    PORT_FORWARDING: {"portNumber": "80", "localPortNumber": "0"},
}
"""Parameters with their defaults; "" is required."""


def _one(key: str, values: Sequence[str]) -> str:
    if len(values) != 1:
        raise DocumentError("InvalidParameters", f"Parameter {key} takes one value, got {len(values)}.")
    return values[0]


def _port(key: str, text: str) -> int:
    if not _PORT.fullmatch(text) or int(text) > 65535:
        raise DocumentError("InvalidParameters", f"Parameter {key} has to be a port from 1 to 65535, got {text!r}.")
    return int(text)
