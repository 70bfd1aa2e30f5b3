"""The product as a user has it: up, train, break a node, look around, change it, take it down."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(600)]

JOB = "examples/bytelm/bytelm.sbatch"
PREPARE = "examples/bytelm/prepare.py"


def test_the_main_job(product: Any) -> None:
    """up, train, destroy a node, recover; then AWS, Slurm and status tell one story."""
    shown = product.run("up", "local", "--rehearse", JOB, "--prepare", PREPARE).stdout

    assert "noticed" in shown
    assert "resumed" in shown
    events = [json.loads(line) for line in product.run("events", "--json").stdout.splitlines()]
    losses = [event["detail"]["loss"] for event in events if event["kind"] == "job_progress"]
    assert losses[0] > 5.0
    assert losses[-1] < 3.0
    injected = [event for event in events if event["kind"] == "fault_injected"]
    assert len(injected) == 1
    assert_one_story(product)
    outputs = product.status()["stack_outputs"]
    keys = [
        entry["Key"]
        for entry in product.client("s3").list_objects_v2(Bucket=outputs["DataBucketName"], Prefix="checkpoints/")[
            "Contents"
        ]
    ]
    assert any(key.endswith(".pt") for key in keys)
    ids = {node["instance_id"] for node in product.status()["nodes"]}
    assert injected[0]["node"] not in ids


def assert_one_story(product: Any) -> None:
    """boto3 against the endpoint, sinfo on the controller, and status agree."""
    view = product.status()
    sagemaker, fsx, ec2 = (product.client(name) for name in ("sagemaker", "fsx", "ec2"))
    cluster = sagemaker.describe_cluster(ClusterName=view["cluster_name"])
    assert cluster["ClusterStatus"] == view["cluster_status"] == "InService"
    nodes = sagemaker.list_cluster_nodes(ClusterName=view["cluster_name"])["ClusterNodeSummaries"]
    assert {n["InstanceId"] for n in nodes} == {n["instance_id"] for n in view["nodes"]}
    file_system = fsx.describe_file_systems()["FileSystems"][0]
    assert file_system["FileSystemId"] == view["file_system"]["file_system_id"]
    links = fsx.describe_data_repository_associations()["Associations"]
    assert {a["FileSystemPath"]: a["DataRepositoryPath"] for a in links} == view["file_system"]["data_repositories"]
    group = cluster["VpcConfig"]["SecurityGroupIds"][0]
    described = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    for direction in ("IpPermissions", "IpPermissionsEgress"):
        assert any(pair["GroupId"] == group for rule in described[direction] for pair in rule["UserIdGroupPairs"])
    controller = next(n["hostname"] for n in view["nodes"] if n["instance_group"] == "controller")
    hosts = product.run("ssh", controller, "--", "sinfo", "-h", "-N", "-o", "%N %P").stdout.splitlines()
    workers = {n["hostname"] for n in view["nodes"] if n["instance_group"] == "workers"}
    assert {line.split()[0] for line in hosts} == workers
    assert {line.split()[1] for line in hosts} == {"dev*"}


def test_a_changed_worker_count_keeps_the_nodes_that_stay(product: Any) -> None:
    product.run("up", str(product.environment(workers=2, spares=0)))
    first = workers_of(product)

    product.run("up", str(product.environment(workers=3, spares=0)))
    grown = workers_of(product)
    product.run("up", str(product.environment(workers=1, spares=0)))
    shrunk = workers_of(product)

    assert len(first) == 2
    assert len(grown) == 3
    assert first < grown
    assert len(shrunk) == 1
    assert shrunk < first


def test_a_deploy_that_fails_is_rolled_back_and_the_retry_works(product: Any) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))
    before = workers_of(product)
    (product.work / "fail.sh").write_text("#!/bin/sh\necho no such kernel module >&2\nexit 7\n")
    lifecycle = {"users": [{"name": "trainer", "uid": 2000}], "scripts": ["fail.sh"]}
    broken = product.environment(workers=2, spares=0, lifecycle=lifecycle)

    refused = product.run("up", str(broken), check=False)

    assert refused.returncode == 1
    assert "was rolled back" in refused.stderr
    assert "fail.sh" in refused.stderr
    assert "exit code 7" in refused.stderr
    assert product.status()["stack_status"] == "UPDATE_ROLLBACK_COMPLETE"
    assert workers_of(product) == before
    product.run("up", str(product.environment(workers=2, spares=0)))
    assert len(workers_of(product)) == 2


def test_everything_comes_back_after_the_embedded_aws_was_killed(product: Any) -> None:
    environment = str(product.environment(workers=1, spares=0))
    product.run("up", environment)
    before = product.status()
    worker = next(n["hostname"] for n in before["nodes"] if n["instance_group"] == "workers")
    product.run("ssh", worker, "--", "touch", "/opt/the-same-node")

    os.kill(pid_of(product, "aws"), signal.SIGKILL)
    time.sleep(0.2)
    assert product.run("status", check=False).returncode == 2

    product.run("up", environment)

    after = product.status()
    assert after["nodes"] == before["nodes"]
    assert after["stack_outputs"] == before["stack_outputs"]
    product.run("ssh", worker, "--", "test", "-e", "/opt/the-same-node")


def test_a_deployment_survives_the_death_of_the_embedded_aws_in_its_middle(product: Any) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))
    before = workers_of(product)
    child = product.popen("up", str(product.environment(workers=2, spares=0)))
    wait_until(lambda: stack_status(product) == "UPDATE_IN_PROGRESS", child=child)
    os.kill(pid_of(product, "aws"), signal.SIGKILL)

    _, err = child.communicate(timeout=120)

    assert child.returncode not in (0, None)
    assert err.startswith("holdfast: ")
    assert "Traceback" not in err
    product.run("up", str(product.environment(workers=2, spares=0)))
    assert len(workers_of(product)) == 2
    assert before < workers_of(product)


def test_the_cdk_cli_by_hand_sees_no_difference_and_destroys_everything(product: Any) -> None:
    path = product.environment(workers=1, spares=0)
    product.run("up", str(path))

    difference = product.cdk("diff", "-c", f"environment={path}", "--fail")
    destroyed = product.cdk("destroy", "-c", f"environment={path}", "--all", "--force")

    assert difference.returncode == 0, difference.stdout + difference.stderr
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr
    assert product.client("sagemaker").list_clusters()["ClusterSummaries"] == []
    assert product.client("fsx").describe_file_systems()["FileSystems"] == []
    assert all(vpc["IsDefault"] for vpc in product.client("ec2").describe_vpcs()["Vpcs"])
    buckets = [bucket["Name"] for bucket in product.client("s3").list_buckets()["Buckets"]]
    assert [name for name in buckets if not name.startswith("cdk-")] == []
    view = product.status()
    assert view["stack_status"] == "absent"
    assert view["nodes"] == []
    # The data goes only when the file system was missing at two looks, a second or two apart.
    wait_until(lambda: not list((product.home / "fsx").glob("*")), within_s=10.0)


@pytest.mark.parametrize("after_s", [0.5, 3.0, 8.0, 14.0])
def test_ctrl_c_during_up_leaves_nothing(product: Any, after_s: float) -> None:
    child = product.popen("up", str(product.environment(workers=1, spares=0)))
    time.sleep(after_s)
    assert child.poll() is None, "the command ended before it was interrupted"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)

    assert child.returncode == 130
    assert "interrupted" in err
    assert not product.home.exists()


def test_down_cleans_up_after_everything_was_killed(product: Any) -> None:
    product.run("up", str(product.environment(workers=1, spares=0)))

    for name in ("aws", "hyperpod"):
        os.kill(pid_of(product, name), signal.SIGKILL)

    product.run("down")

    assert not product.home.exists()


def wait_until(
    holds: Callable[[], bool], *, child: "subprocess.Popen[str] | None" = None, within_s: float = 120.0
) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert child is None or child.poll() is None, "the command ended first"
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def stack_status(product: Any) -> str:
    status: str = product.client("cloudformation").describe_stacks(StackName="holdfast-local")["Stacks"][0][
        "StackStatus"
    ]
    return status


def pid_of(product: Any, name: str) -> int:
    return int(json.loads((product.home / "run" / f"{name}.json").read_text())["pid"])


def workers_of(product: Any) -> set[str]:
    return {n["instance_id"] for n in product.status()["nodes"] if n["instance_group"] == "workers"}
