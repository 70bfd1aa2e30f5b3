"""
Protocol of AWS Session Manager's data channel: messages, payloads, and a stream that survives cuts. Pure.

Sources: aws/session-manager-plugin, commit 61cf1288 (``src/message``, ``src/datachannel``, ``src/config``), and
aws/amazon-ssm-agent, commit 1c217c89 (``agent/session``); both Apache-2.0.
"""

from holdfast.session_manager.documents import (
    INTERACTIVE_COMMAND,
    NON_INTERACTIVE_COMMAND,
    RUN_SHELL,
    SSH,
    DocumentError,
    SessionPlan,
    SessionType,
    plan_of,
)
from holdfast.session_manager.messages import MOST_BYTES, ClientMessage, MessageError, MessageType, PayloadType
from holdfast.session_manager.payloads import (
    Acknowledgement,
    ChannelClosed,
    Flag,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
    OpenDataChannel,
    ProcessedAction,
    RequestedAction,
    TerminalSize,
    flag_of,
)
from holdfast.session_manager.stream import (
    GIVE_UP_S,
    LONGEST_TIMEOUT_S,
    MOST_WAITING,
    PAYLOAD_BYTES,
    WINDOW,
    DataStream,
)
from holdfast.session_manager.targets import ClusterTarget

__all__ = [
    "GIVE_UP_S",
    "INTERACTIVE_COMMAND",
    "LONGEST_TIMEOUT_S",
    "MOST_BYTES",
    "MOST_WAITING",
    "NON_INTERACTIVE_COMMAND",
    "PAYLOAD_BYTES",
    "RUN_SHELL",
    "SSH",
    "WINDOW",
    "Acknowledgement",
    "ChannelClosed",
    "ClientMessage",
    "ClusterTarget",
    "DataStream",
    "DocumentError",
    "Flag",
    "HandshakeComplete",
    "HandshakeRequest",
    "HandshakeResponse",
    "MessageError",
    "MessageType",
    "OpenDataChannel",
    "PayloadType",
    "ProcessedAction",
    "RequestedAction",
    "SessionPlan",
    "SessionType",
    "TerminalSize",
    "flag_of",
    "plan_of",
]
