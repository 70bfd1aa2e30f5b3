"""
boto3 clients of the embedded AWS's own endpoint, for services that look up what others hold. Whom they act for, the
host says.
"""

from holdfast.localcloud.aws.clients.factory import DEFAULT_ACCOUNT, ClientFactory, Clients, Direct

__all__ = ["DEFAULT_ACCOUNT", "ClientFactory", "Clients", "Direct"]
