"""Notifications to systemd (sd_notify), without its library."""

import os
import socket
from collections.abc import Mapping


def notify(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send it, if systemd requires it."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as outgoing:
        try:
            outgoing.sendto(text.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return


def watchdog_s(environment: Mapping[str, str] = os.environ) -> float:
    """Interval of keep-alive notifications; 0: none."""
    given = environment.get("WATCHDOG_USEC", "")
    return int(given) / 2e6 if given.isdigit() else 0.0
