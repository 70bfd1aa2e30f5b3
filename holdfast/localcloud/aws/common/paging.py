import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from holdfast.localcloud.aws.common.errors import ServiceError

Item = TypeVar("Item")


def page(
    items: Sequence[Item], *, size: int | None, token: str | None, default: int = 100
) -> tuple[list[Item], dict[str, str]]:
    start = 0
    if token:
        try:
            start = int(base64.b64decode(token.encode()).decode())
        except (ValueError, binascii.Error, UnicodeDecodeError):
            raise ServiceError(
                "ValidationException", "The NextToken is not one that this operation returned."
            ) from None
    end = start + (size or default)
    more = {"NextToken": base64.b64encode(str(end).encode()).decode()} if end < len(items) else {}
    return list(items[start:end]), more


def paged(key: str, items: Sequence[Any], size: int | None, token: str | None) -> dict[str, Any]:
    """Return all pages of a list operation whose members are spelled as in REST services."""
    shown, more = page(items, size=size, token=token)
    return {key: shown, **({"nextToken": more["NextToken"]} if more else {})}


def between(moment: datetime, after: datetime | None, before: datetime | None) -> bool:
    """Return True if a moment is between two optional ones; parsed requests carry naive UTC times."""
    return (after is None or moment > aware(after)) and (before is None or moment < aware(before))


def aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def tag_list(tags: dict[str, str]) -> list[dict[str, Any]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tag_dict(tags: Sequence[dict[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags or ()}
