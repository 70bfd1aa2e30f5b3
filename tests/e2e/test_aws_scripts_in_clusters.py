"""AWS's own lifecycle scripts, byte for byte, as the scripts of clusters that the API made."""

from collections.abc import Iterator
from pathlib import Path

import aws_nodes
import pytest
from hyperpod_lab import BUCKET, HyperPodLab, hyperpod_lab, ok
from waiting import eventually

pytestmark = [pytest.mark.root, pytest.mark.slurm, pytest.mark.e2e, pytest.mark.timeout(500)]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[HyperPodLab]:
    aws_nodes.require_cases("extensions")
    with hyperpod_lab(tmp_path / "home") as found:
        yield found


def upload(lab: HyperPodLab, case: Path, *, changed: dict[str, str]) -> str:
    """The scripts as they are, but for the settings that are for their users."""
    for path in (one for one in sorted(case.rglob("*")) if one.is_file()):
        name = path.relative_to(case).as_posix()
        lab.s3.put_object(Bucket=BUCKET, Key=f"{case.name}/{name}", Body=path.read_bytes())
    for name, text in changed.items():
        lab.s3.put_object(Bucket=BUCKET, Key=f"{case.name}/{name}", Body=text.encode())
    return f"s3://{BUCKET}/{case.name}"


def groups(lab: HyperPodLab, *, head: dict[str, str] | None, workers: dict[str, str] | None) -> list[object]:
    return [
        lab.group("controller", lifecycle=head, NodeType="Controller"),
        lab.group("workers", lifecycle=workers, NodeType="Compute", PartitionNames=["dev"]),
    ]


def in_service(lab: HyperPodLab, made: list[object]) -> None:
    lab.sagemaker.create_cluster(
        ClusterName="lab", InstanceGroups=made, VpcConfig=lab.network, Orchestrator={"Slurm": {}}
    )
    described = eventually(
        lambda: found if (found := lab.described("lab"))["ClusterStatus"] in ("InService", "Failed") else None,
        within_s=300,
    )
    assert described["ClusterStatus"] == "InService", described.get("FailureMessage")


def check_jobs_and_accounting(lab: HyperPodLab) -> None:
    """Slurm is up, users are there, accounting knows them, a job of one runs, and sacct knows it."""
    controller, worker = lab.node("lab", "controller"), lab.node("lab", "workers")
    for node in (controller, worker):
        assert ok(node, "id", "-u", "user1") == "2001"
    associations = ok(controller, "sacctmgr", "-nP", "show", "assoc", "format=user,account")
    assert "user1|root" in associations.splitlines()
    assert ok(controller, "srun", "-N1", "hostname", user="user1") == worker.spec.hostname
    query = ("sacct", "--allusers", "-nPX", "-o", "user,state")
    eventually(lambda: "user1|COMPLETED" in ok(controller, *query).splitlines(), within_s=30)


def test_run_extensions_brings_a_cluster_into_service(lab: HyperPodLab):
    case = aws_nodes.require_cases("extensions")
    users = (case / "add-users/shared_users_sample.yaml").read_text()
    uri = upload(lab, case, changed={"add-users/shared_users.yaml": users})
    lifecycle = {"SourceS3Uri": uri, "OnInitComplete": "run_extensions.sh"}
    in_service(lab, groups(lab, head=lifecycle, workers=lifecycle))
    check_jobs_and_accounting(lab)
    instance = next(iter(lab.instances("lab", "workers")))
    told = eventually(lambda: lab.lifecycle_log("lab", "workers", instance))
    assert "[stop] run_extensions.sh" in told
    assert told[-1] == "[SageMaker] The lifecycle scripts succeeded."


def test_a_cluster_may_have_the_ami_on_its_controller_and_extensions_on_its_workers(lab: HyperPodLab):
    case = aws_nodes.require_cases("extensions")
    users = (case / "add-users/shared_users_sample.yaml").read_text()
    uri = upload(lab, case, changed={"add-users/shared_users.yaml": users})
    in_service(lab, groups(lab, head=None, workers={"SourceS3Uri": uri, "OnInitComplete": "run_extensions.sh"}))
    controller, worker = lab.node("lab", "controller"), lab.node("lab", "workers")
    assert controller.run(["id", "user1"], timeout_s=10).returncode == 1
    assert ok(worker, "id", "-u", "user1") == "2001"
    assert ok(controller, "srun", "-N1", "hostname", user="ubuntu") == worker.spec.hostname


def test_base_config_brings_a_cluster_into_service_that_hyperpod_does_not_start(lab: HyperPodLab):
    case = aws_nodes.require_cases("slurm-base-config")
    users = (case / "shared_users_sample.txt").read_text()
    uri = upload(lab, case, changed={"shared_users.txt": users})
    lifecycle = {"SourceS3Uri": uri, "OnCreate": "on_create.sh"}
    in_service(lab, groups(lab, head=lifecycle, workers=lifecycle))
    check_jobs_and_accounting(lab)
