"""boto3 clients of the embedded AWS's own endpoint, for services that read resources of others."""

from holdfast.localcloud.aws.clients.factory import DEFAULT_ACCOUNT, ClientFactory, Clients, SendHandler

__all__ = ["DEFAULT_ACCOUNT", "ClientFactory", "Clients", "SendHandler"]
