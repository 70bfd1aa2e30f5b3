"""The embedded AWS as a server: sockets, routing, services. Access control is in `guard`, persistence in `state`."""

from holdfast.localcloud.aws.host.bucket_policies import for_caller, for_moto
from holdfast.localcloud.aws.host.routes import Routes
from holdfast.localcloud.aws.host.server import EmbeddedAws, PortBusyError, serve
from holdfast.localcloud.aws.host.validation import violations

__all__ = ["EmbeddedAws", "PortBusyError", "Routes", "for_caller", "for_moto", "serve", "violations"]
