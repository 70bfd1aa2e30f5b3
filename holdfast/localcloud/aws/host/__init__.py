"""
The embedded AWS as a server: its sockets, the way of a request to one of our services or to moto, and which services
there are. What a service does is in its own room; who may call is `guard`'s; what outlives the process is `state`'s.
"""

from holdfast.localcloud.aws.host.bucket_policies import for_caller, for_moto
from holdfast.localcloud.aws.host.routes import Routes
from holdfast.localcloud.aws.host.server import EmbeddedAws, PortBusyError, serve
from holdfast.localcloud.aws.host.validation import violations

__all__ = ["EmbeddedAws", "PortBusyError", "Routes", "for_caller", "for_moto", "serve", "violations"]
