"""Access to nodes from outside: namespaces of this machine, or sessions of AWS Systems Manager."""

from holdfast.cli.node_access.access import NodeAccess, NodeAccessError
from holdfast.cli.node_access.api import SessionApi
from holdfast.cli.node_access.command_lines import OutputError, exit_code_of, framed, parse_framed
from holdfast.cli.node_access.forwarding import ForwardedPort, forwarded
from holdfast.cli.node_access.namespaces import NamespaceNodeAccess
from holdfast.cli.node_access.ssm import SsmNodeAccess

__all__ = [
    "ForwardedPort",
    "NamespaceNodeAccess",
    "NodeAccess",
    "NodeAccessError",
    "OutputError",
    "SessionApi",
    "SsmNodeAccess",
    "exit_code_of",
    "forwarded",
    "framed",
    "parse_framed",
]
