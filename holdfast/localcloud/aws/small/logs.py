"""What moto lacks of CloudWatch Logs: a log group's key is changed, and a filter needs the group it is for."""

# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Callable
from contextlib import AbstractContextManager

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError


class LogKeys:
    """These operations in one account and region; the rest of CloudWatch Logs is moto's."""

    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """``in_moto`` is held while moto's state of a service is changed."""
        self._client, self._account, self._region, self._in_moto = client, account, region, in_moto

    def associate_kms_key(self, *, kmsKeyId: str, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, kmsKeyId)

    def disassociate_kms_key(self, *, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, None)

    def put_metric_filter(self, *, logGroupName: str, **_: object) -> None:
        found = self._client("logs").describe_log_groups(logGroupNamePrefix=logGroupName)["logGroups"]
        if all(group["logGroupName"] != logGroupName for group in found):
            raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
        raise NotOurs

    def state(self) -> None:
        return None

    def restore(self, state: None) -> None: ...

    def _set(self, name: str, resource: str, key: str | None) -> None:
        from moto.logs.models import logs_backends  # late, for start-up's sake

        if not name:
            raise ServiceError("InvalidParameterException", f"logGroupName must be given; {resource} is not supported.")
        with self._in_moto("logs"):
            group = logs_backends[self._account][self._region].groups.get(name)
            if group is None:
                raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
            group.kms_key_id = key
