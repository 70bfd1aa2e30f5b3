from typing import Protocol

from holdfast.session_manager import PayloadType


class Channel(Protocol):
    """The agent, as its plugins see it."""

    def output(self, data: bytes, payload_type: PayloadType = PayloadType.OUTPUT) -> bool:
        """Send data; False if the session has ended."""

    def finish(self, reason: str = "") -> None:
        """End the session, whose program has ended."""
