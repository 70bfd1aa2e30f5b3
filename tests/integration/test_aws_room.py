"""The embedded AWS refuses what it cannot keep, and goes on with the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import EmbeddedAws, serve


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the disk has; tests change it."""
    found = {"bytes": 10 << 30}
    monkeypatch.setattr("holdfast.localcloud.aws.state.disk_space.free_bytes", lambda _: found["bytes"])
    return found


@pytest.fixture
def aws(tmp_path: Path, free: dict[str, int]) -> Iterator[EmbeddedAws]:
    assert free
    with serve(home=tmp_path, hyperpod="simulated") as running:
        yield running


def client(aws: EmbeddedAws, service: str) -> Any:
    return boto3.client(
        service,
        region_name="us-west-2",
        **aws.client_arguments,
        config=Config(s3={"addressing_style": "path"}),
    )


def test_on_a_full_disk_changes_are_refused_in_words_and_what_makes_room_is_done(
    aws: EmbeddedAws, free: dict[str, int]
) -> None:
    s3, ssm = client(aws, "s3"), client(aws, "ssm")
    s3.create_bucket(Bucket="data", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="data", Key="a", Body=b"1")
    free["bytes"] = 12 << 20

    for change in (
        lambda: s3.put_object(Bucket="data", Key="b", Body=b"2"),
        lambda: ssm.put_parameter(Name="/a", Value="1", Type="String"),
        lambda: client(aws, "logs").create_log_group(logGroupName="g"),
    ):
        with pytest.raises(ClientError, match=r"has 12 MiB free, and 64 MiB are .*; nothing was changed") as refused:
            change()
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 507
        assert refused.value.response["Error"]["Code"] == "InsufficientStorage"
    assert aws.health()["status"] == "degraded"
    assert "12 MiB free" in aws.health()["problem"]
    assert s3.get_object(Bucket="data", Key="a")["Body"].read() == b"1"
    s3.delete_objects(Bucket="data", Delete={"Objects": [{"Key": "a"}]})

    free["bytes"] = 10 << 30
    s3.put_object(Bucket="data", Key="b", Body=b"2")
    assert [item["Key"] for item in s3.list_objects_v2(Bucket="data")["Contents"]] == ["b"]
    assert aws.health()["status"] == "ok"


def test_the_health_page_says_how_long_ago_each_thread_did_its_pass(aws: EmbeddedAws) -> None:
    threads = aws.health()["threads"]
    assert {"listener-0", "snapshots"} <= threads.keys()
    assert all(one["problems"] == [] for one in threads.values())
    assert aws.health()["control_plane"]["state"] == "gone"
