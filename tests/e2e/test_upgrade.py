"""AMI upgrades of six nodes in three groups, under a job that trains on four of them with one spare."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from healing import Cluster

from holdfast_common import parse_events, timeline

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(3600)]

GROUPS = ("first", "second", "third")
UPGRADE_S = 1500.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    made = Cluster(new_product(tmp_path_factory.mktemp("upgrade")))
    try:
        made.up(three_groups(made.product), steps=1_000_000)
        yield made
    finally:
        made.product.run("down")
    assert not made.product.home.exists()


def three_groups(product: Any) -> Path:
    """environments/local.yaml with two workers in each of three groups."""
    path: Path = product.environment()
    document = yaml.safe_load(path.read_text())
    head, workers = document["cluster"]["instance_groups"]
    del workers["spare_count"]
    document["cluster"]["instance_groups"] = [
        head,
        *({**copy.deepcopy(workers), "name": name, "instance_count": 2} for name in GROUPS),
    ]
    path.write_text(yaml.safe_dump(document))
    return path


def upgrade(cluster: Cluster, *options: str) -> tuple[int, str]:
    child = cluster.product.popen("upgrade", "--yes", *options)
    out, err = child.communicate(timeout=UPGRADE_S)
    print(out, err)
    return child.returncode, out + err


def redone(cluster: Cluster) -> int:
    lines = [line for line in cluster.run("events", "--json").splitlines() if line.startswith("{")]
    (book,) = timeline(parse_events(lines).events).jobs
    return int(book.steps_redone)


def workers(cluster: Cluster) -> dict[str, dict[str, Any]]:
    client = cluster.product.client("sagemaker")
    found = client.list_cluster_nodes(ClusterName="local")["ClusterNodeSummaries"]
    return {one["InstanceId"]: one for one in found if one["InstanceGroupName"] in GROUPS}


def test_every_node_is_upgraded_once_and_the_job_loses_no_step(cluster: Cluster) -> None:
    before = workers(cluster)
    code, words = upgrade(cluster, "--release", "2.0.0")
    assert code == 0, words
    assert "upgraded: first (2), second (2), third (2)" in words
    assert workers(cluster).keys() == before.keys()
    assert Counter(one["node"] for one in cluster.kinds("node_updated")) == dict.fromkeys(before, 1)
    handed = cluster.kinds("handed_over")
    assert handed, "no rank left its node, so nothing was tested"
    assert [one["detail"]["steps_lost"] for one in handed] == [0] * len(handed)
    assert redone(cluster) == 0
    assert [one for one in cluster.kinds("node_lost") if one["node"] in before] == []


def test_a_second_node_that_fails_stops_the_upgrade_with_one_message_and_the_job_goes_on(cluster: Cluster) -> None:
    bad = sorted(one["PrivateDnsHostname"].partition(".")[0] for one in workers(cluster).values())[1]
    group = next(
        one["InstanceGroupName"] for one in workers(cluster).values() if one["PrivateDnsHostname"].startswith(bad)
    )
    break_script(cluster, host=bad, group=group)
    code, words = upgrade(cluster, "--release", "3.0.0")
    assert code == 1, words
    (message,) = [line for line in words.splitlines() if line.startswith("holdfast: ")]
    assert f"group {group} is Failed: The software update of instance i-" in message
    assert f"nodes not in service: {bad} Failure" in message
    assert f"then run: holdfast upgrade local --release 3.0.0 --group {group}" in message
    since = max(int(one["time_ns"]) for one in cluster.events())
    cluster.until(lambda: cluster.kinds("job_progress", since_ns=since), what="a step afterwards", within_s=120)
    assert redone(cluster) == 0


def break_script(cluster: Cluster, *, host: str, group: str) -> None:
    """Let the lifecycle script of a group, as it lies in the bucket, fail on one node."""
    client = cluster.product.client("sagemaker")
    described = client.describe_cluster(ClusterName="local")["InstanceGroups"]
    config = next(one["LifeCycleConfig"] for one in described if one["InstanceGroupName"] == group)
    bucket, _, prefix = config["SourceS3Uri"].removeprefix("s3://").partition("/")
    key = f"{prefix.rstrip('/')}/{config.get('OnCreate') or config['OnInitComplete']}"
    s3 = cluster.product.client("s3")
    first, _, rest = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode().partition("\n")
    fails = f'[ "$(hostname)" != {host} ] || exit 7'
    s3.put_object(Bucket=bucket, Key=key, Body=f"{first}\n{fails}\n{rest}".encode())
