"""A listening socket that processes of other nodes find, whether their network speaks IPv4 or IPv6."""

import contextlib
import socket


def listen(host: str = "", *, port: int = 0) -> socket.socket:
    """One socket, and so one port, for both families; a server that binds each by itself gets two free ports.

    Args:
        host: address to listen at. Default: all
        port: Default: any that is free

    Raises:
        OSError: the port or the address cannot be had.
    """
    if not host and socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # a kernel may know IPv6 and have it switched off; a taken port fails below
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
    return socket.create_server((host, port), backlog=128)
