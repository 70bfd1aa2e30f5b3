"""CloudWatch Logs beyond moto: keys of log groups, metric filters, FilterLogEvents by pattern."""

# ruff: noqa: N803 - arguments bear the names of the API members

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.clients import ClientFactory
from holdfast.localcloud.aws.common import NotOurs, ServiceError
from holdfast.localcloud.aws.monitoring.evaluation import Evaluation
from holdfast.localcloud.aws.monitoring.filter_patterns import FilterPatternError, LogEvent, parse_pattern
from holdfast.localcloud.aws.monitoring.log_bound import bound
from holdfast.localcloud.aws.monitoring.not_evaluated import filter_remark

log = logging.getLogger(__name__)

MOST_FOUND = 10_000
"""Of FilterLogEvents (API reference)."""


class Logs:
    def __init__(
        self,
        *,
        client: ClientFactory,
        account: str,
        region: str,
        in_moto: Callable[[str], AbstractContextManager[None]],
        evaluation: Evaluation,
    ) -> None:
        self._client, self._account, self._region, self._in_moto = client, account, region, in_moto
        self._evaluation = evaluation

    def associate_kms_key(self, *, kmsKeyId: str, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, kmsKeyId)

    def disassociate_kms_key(self, *, logGroupName: str = "", resourceIdentifier: str = "") -> None:
        self._set(logGroupName, resourceIdentifier, None)

    def put_metric_filter(
        self,
        *,
        logGroupName: str,
        filterName: str,
        filterPattern: str,
        metricTransformations: Sequence[Mapping[str, Any]],
        **_: object,
    ) -> None:
        if self._backend().groups.get(logGroupName) is None:
            raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")
        values = [one["metricValue"] for one in metricTransformations]
        dimensions = [value for one in metricTransformations for value in (one.get("dimensions") or {}).values()]
        if remark := filter_remark(filterPattern, values=values, dimensions=dimensions):
            log.warning("log group %s: metric filter %s: %s", logGroupName, filterName, remark)
        with self._in_moto("logs"):
            self._backend().filters.delete_filter(filterName, logGroupName)  # moto would keep both
        raise NotOurs

    def put_log_events(
        self, *, logGroupName: str, logStreamName: str, logEvents: Sequence[Mapping[str, Any]], **_: object
    ) -> None:
        backend = self._backend()
        group = backend.groups.get(logGroupName)
        times = [event["timestamp"] for event in logEvents]
        if group is not None and logStreamName in group.streams and times == sorted(times):
            filters = backend.filters.get_matching_filters(log_group_name=logGroupName)
            self._evaluation.log_metrics.read(filters, logEvents)
            bound(group.streams[logStreamName], group=logGroupName)
        raise NotOurs

    def filter_log_events(self, *, filterPattern: str = "", limit: int = MOST_FOUND, **given: Any) -> dict[str, Any]:
        if not filterPattern:
            raise NotOurs
        try:
            matches = parse_pattern(filterPattern)
        except FilterPatternError as error:
            message = f"Invalid filter pattern for the embedded CloudWatch Logs: {error}"
            raise ServiceError("InvalidParameterException", message) from None
        found: list[dict[str, Any]] = []
        answer: dict[str, Any] = {}
        while len(found) < limit:
            answer = self._page(given)
            found += [event for event in answer["events"] if matches(LogEvent(event["message"]))]
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
