import threading
from typing import Any, Protocol

import boto3
import botocore.loaders
import botocore.session
from botocore.config import Config

from holdfast.localcloud.aws.common import PRINCIPAL_HEADER, named_principal
from holdfast.localcloud.home import Keys

DEFAULT_ACCOUNT = "123456789012"
_loader = botocore.loaders.create_loader()
"""Of service models and endpoints, which it keeps: every session of its own would read them again."""


class SendHandler(Protocol):
    """Handler of botocore's ``before-send`` event that answers without a socket."""

    def __call__(self, request: Any, **_: Any) -> Any: ...


class ClientFactory(Protocol):
    """Factory of boto3 clients that act for the account and region of the caller."""

    def __call__(self, service: str, /) -> Any: ...


class Clients:
    """Clients of one account and region, created on first use and shared by all threads."""

    def __init__(
        self, *, endpoint: str, account: str, region: str, keys: Keys, direct: SendHandler | None = None
    ) -> None:
        self._direct = direct
        self._endpoint = endpoint
        self._account = account
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}
        session = botocore.session.Session()
        session.register_component("data_loader", _loader)
        self._session = boto3.session.Session(
            botocore_session=session,
            region_name=region,
            **keys.boto,
        )

    def __call__(self, service: str, /) -> Any:
        with self._lock:
            if service not in self._made:
                self._made[service] = self._make(service)
            return self._made[service]

    def _make(self, service: str) -> Any:
        config = Config(
            retries={"total_max_attempts": 2},
            connect_timeout=5,
            read_timeout=60,
            proxies={},
            s3={"addressing_style": "path"},
            parameter_validation=False,  # the embedded services validate; their words are the ones to pass on
        )
        client = self._session.client(service, endpoint_url=self._endpoint, config=config)
        if self._account != DEFAULT_ACCOUNT:
            client.meta.events.register("before-call", self._name_account)
        client.meta.events.register("before-call", _name_principal)
        if self._direct is not None:
            client.meta.events.register("before-send", self._direct)
        return client

    def _name_account(self, *, params: dict[str, Any], **_: Any) -> None:
        params["headers"]["x-moto-account-id"] = self._account


def _name_principal(*, params: dict[str, Any], **_: Any) -> None:
    principal = named_principal()
    if principal:
        params["headers"][PRINCIPAL_HEADER] = principal
