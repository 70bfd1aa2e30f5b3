"""CloudWatch Logs stream: count events, and put lines as one event each."""

from typing import Any, Optional

from holdfast_agent.aws import Api, AwsError
from holdfast_agent.shipping.batches import Batch, Entry
from holdfast_agent.shipping.lines import Line
from holdfast_common import events_counted

_REFUSED = ("InvalidParameterException", "ValidationException", "SerializationException")
"""Errors after which a retry cannot help."""
_MOST_PAGES = 10_000


class LogStream:
    def __init__(self, *, api: Api, group: str, stream: str) -> None:
        self._api = api
        self._names = {"logGroupName": group, "logStreamName": stream}

    def now_ms(self) -> int:
        return int(self._api.now_s() * 1000)

    def count(self) -> int:
        """Number of events; 0 without a stream or group. Raises AwsError."""
        counted, token = 0, ""
        for _ in range(_MOST_PAGES):
            more = {"nextToken": token} if token else {}
            try:
                answer = self._api.call("GetLogEvents", **self._names, startFromHead=True, **more)
            except AwsError as error:
                if error.code == "ResourceNotFoundException":
                    return 0
                raise
            counted += sum(events_counted(str(one.get("message"))) for one in answer.get("events") or ())
            following = str(answer.get("nextForwardToken") or "")
            if following in ("", token):
                break
            token = following
        return counted

    def put(self, batch: Batch) -> None:
        """Put all lines, one event each; raises AwsError where not all were accepted."""
        try:
            rejected = self._put(batch)
        except AwsError as error:
            if error.code == "DataAlreadyAcceptedException":
                return
            if error.code not in _REFUSED:
                raise
            if len(batch.entries) > 1:
                self._put_halves(batch)
                return
            if _is_stand_in(batch.entries[0].line):
                raise
            self.put(_stand_in(batch, why=error.message))
            return
        if rejected is not None:
            self.put(rejected)

    def _put_halves(self, batch: Batch) -> None:
        first, second = batch.halves()
        self.put(first)
        try:
            self.put(second)
        except AwsError as error:
            # Part of the batch is in the stream, whatever this refusal was.
            raise AwsError(error.code, error.message) from None

    def _put(self, batch: Batch) -> Optional[Batch]:
        """Put lines that were rejected for their time with the current time."""
        answer = self._request(batch)
        info = answer.get("rejectedLogEventsInfo") or {}
        if not info:
            return None
        ordered = sorted(batch.entries, key=lambda entry: entry.time_ms)
        first = max(int(info.get("tooOldLogEventEndIndex", -1)), int(info.get("expiredLogEventEndIndex", -1)))
        # Of AWS's indices those of the old are exclusive, and that of the new is inclusive.
        late = int(info.get("tooNewLogEventStartIndex", len(ordered)))
        out = [*ordered[: max(first, 0)], *ordered[late:]]
        if not out:
            return None
        if len(out) == len(ordered) and all(abs(one.time_ms - self.now_ms()) < 60_000 for one in out):
            raise AwsError("Rejected", "the current time is rejected, too; check the clock of this node")
        return Batch(tuple(Entry(time_ms=self.now_ms(), line=entry.line) for entry in out))

    def _request(self, batch: Batch) -> "dict[str, Any]":
        try:
            return self._api.call("PutLogEvents", **self._names, logEvents=batch.events())
        except AwsError as error:
            if error.code != "ResourceNotFoundException":
                raise
        try:
            self._api.call("CreateLogStream", **self._names)
        except AwsError as error:
            if error.code != "ResourceAlreadyExistsException":
                raise
        return self._api.call("PutLogEvents", **self._names, logEvents=batch.events())


_STAND_IN = "[holdfast] CloudWatch Logs rejected a line"


def _is_stand_in(line: Line) -> bool:
    return line.text.startswith(_STAND_IN)


def _stand_in(batch: Batch, *, why: str) -> Batch:
    """Replacement of a rejected line: the counts of lines and events must match."""
    entry = batch.entries[0]
    text = f"{_STAND_IN}: {why[:200]}"
    return Batch((Entry(time_ms=entry.time_ms, line=Line(text=text, inode=entry.line.inode, end=entry.line.end)),))
