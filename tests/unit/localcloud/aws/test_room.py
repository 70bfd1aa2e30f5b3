"""Whether the disk takes what a caller wants to have kept."""

from pathlib import Path

import pytest

from holdfast.localcloud.aws.state import RESERVE_BYTES, DiskSpace, is_change


def test_a_change_needs_its_own_bytes_beside_the_reserve() -> None:
    room = DiskSpace(folder=Path("/home"), free=lambda _: RESERVE_BYTES + (10 << 20))
    assert room.refusal(desired=10 << 20) == ""
    assert room.refusal(desired=11 << 20) == (
        "the disk of /home has 74 MiB free, and 64 MiB beside the 11 MiB of the request are needed to save a change; "
        "free some space"
    )


@pytest.mark.parametrize(
    ("method", "operation", "query", "changes"),
    [
        ("POST", "CreateCluster", (), True),
        ("POST", "PutLogEvents", (), True),
        ("POST", "DescribeCluster", (), False),
        ("POST", "DeleteStack", (), False),
        ("POST", "BatchDeleteClusterNodes", (), False),
        ("PUT", "", (), True),
        ("POST", "", ("uploads",), True),
        ("POST", "", ("delete",), False),
        ("GET", "", (), False),
        ("DELETE", "", (), False),
    ],
)
def test_reading_and_deleting_need_no_room(method: str, operation: str, query: tuple[str, ...], changes: bool) -> None:
    assert is_change(method=method, operation=operation, query=query) == changes
