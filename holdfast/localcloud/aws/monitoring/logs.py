"""What moto lacks of CloudWatch Logs: keys of groups are changed, and filters have a meaning."""

# ruff: noqa: N803 - arguments bear the names of the API members

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError
from holdfast.localcloud.aws.monitoring.evaluation import Evaluation
from holdfast.localcloud.aws.monitoring.filter_patterns import FilterPatternError, LogEvent, parse_pattern

MOST_FOUND = 10_000
"""Of FilterLogEvents (API reference)."""


class Logs:
    """These operations in one account and region; the rest of CloudWatch Logs is moto's."""

    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
        evaluation: Evaluation,
    ) -> None:
        """``in_moto`` is held while moto's state is changed; ``evaluation`` publishes what metric filters find."""
        self._client, self._account, self._region, self._in_moto = client, account, region, in_moto
        self._evaluation = evaluation

    def associate_kms_key(self, *, kmsKeyId: str, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, kmsKeyId)

    def disassociate_kms_key(self, *, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, None)

    def put_metric_filter(self, *, logGroupName: str, filterName: str, filterPattern: str, **_: object) -> None:
        if self._backend().groups.get(logGroupName) is None:
            raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
        _check(filterPattern)
        with self._in_moto("logs"):
            self._backend().filters.delete_filter(filterName, logGroupName)  # moto would keep both
        raise NotOurs

    def put_log_events(
        self, *, logGroupName: str, logStreamName: str, logEvents: Sequence[Mapping[str, Any]], **_: object
    ) -> None:
        """moto's; what metric filters of the group find in them is counted."""
        backend = self._backend()
        group = backend.groups.get(logGroupName)
        times = [event["timestamp"] for event in logEvents]
        if group is not None and logStreamName in group.streams and times == sorted(times):
            filters = backend.filters.get_matching_filters(log_group_name=logGroupName)
            self._evaluation.log_metrics.read(filters, logEvents)
        raise NotOurs

    def filter_log_events(self, *, filterPattern: str = "", limit: int = MOST_FOUND, **given: Any) -> dict[str, Any]:
        """With a pattern; moto knows words and phrases only."""
        if not filterPattern:
            raise NotOurs
        pattern = _check(filterPattern)
        found: list[dict[str, Any]] = []
        answer: dict[str, Any] = {}
        while len(found) < limit:
            answer = self._page(given)
            found += [event for event in answer["events"] if pattern.matches(LogEvent(event["message"]))]
            if "nextToken" not in answer or answer["nextToken"] == given.get("nextToken"):
                break
            given["nextToken"] = answer["nextToken"]
        return {"events": found[:limit], "searchedLogStreams": answer.get("searchedLogStreams", [])}

    def _page(self, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._client("logs").filter_log_events(**given)
        except ClientError as error:
            raise ServiceError(error.response["Error"]["Code"], error.response["Error"]["Message"]) from None
        return found

    def state(self) -> None:
        return None

    def restore(self, state: None) -> None: ...

    def _backend(self) -> Any:
        from moto.logs.models import logs_backends  # late, for start-up's sake

        return logs_backends[self._account][self._region]

    def _set(self, name: str, resource: str, key: str | None) -> None:
        if not name:
            raise ServiceError("InvalidParameterException", f"logGroupName must be given; {resource} is not supported.")
        with self._in_moto("logs"):
            group = self._backend().groups.get(name)
            if group is None:
                raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
            group.kms_key_id = key


def _check(pattern: str) -> Any:
    try:
        return parse_pattern(pattern)
    except FilterPatternError as error:
        raise ServiceError("InvalidParameterException", f"Invalid filter pattern: {error}") from None
