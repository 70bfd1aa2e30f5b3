"""What systemd wants to hear of a service (sd_notify), without its library."""

import os
import socket
from collections.abc import Mapping


def notify(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send it, if systemd asked for it."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as outgoing:
        try:
            outgoing.sendto(text.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return


def watchdog_s(environment: Mapping[str, str] = os.environ) -> float:
    """How often to say that the agent is alive; 0: nobody asks."""
    given = environment.get("WATCHDOG_USEC", "")
    return int(given) / 2e6 if given.isdigit() else 0.0
