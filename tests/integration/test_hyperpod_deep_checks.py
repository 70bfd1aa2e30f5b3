"""Deep health checks on nodes of a real Slurm: asked for, and on start; passed, failed, not to be had."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hyperpod_lab import BUCKET, HyperPodLab, hyperpod_lab, ok
from waiting import eventually

from holdfast.localcloud.hyperpod.instances import AGENT
from holdfast_agent.burn_in import TURNS

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm]

NODE_LOG = "/var/log/aws/clusters/sagemaker-deep-health-check.log"
CHECKED = ["InstanceStress", "InstanceConnectivity"]
INSTALL = "#!/bin/bash\nmkdir -p /opt/holdfast/agent/bin\nprintf '%s' > {agent}\nchmod 755 {agent}\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HyperPodLab]:
    """Cluster ``lab`` with two workers that are checked on start, and one worker of another group that is not."""
    with hyperpod_lab(tmp_path_factory.mktemp("checks") / "home") as made:
        workers = made.group("workers", count=2, NodeType="Compute", PartitionNames=["dev"])
        described = made.create(
            "lab",
            [
                made.group("head", NodeType="Controller"),
                {**workers, "OnStartDeepHealthChecks": CHECKED},
                made.group("others", NodeType="Compute", PartitionNames=["other"]),
            ],
        )
        assert described["ClusterStatus"] == "InService", described.get("FailureMessage")
        yield made


def check(lab: HyperPodLab, group: str, *ids: str, checks: tuple[str, ...] = ("InstanceStress",)) -> None:
    wanted = {"InstanceGroupName": group, "DeepHealthChecks": list(checks), "InstanceIds": list(ids)}
    lab.sagemaker.start_cluster_health_check(ClusterName="lab", DeepHealthCheckConfigurations=[wanted])


def results(lab: HyperPodLab, instance_id: str) -> list[dict[str, Any]]:
    stream = f"DeepHealthCheckResults/{instance_id}"
    try:
        found = lab.logs.get_log_events(logGroupName=lab.log_group("lab"), logStreamName=stream, startFromHead=True)
    except lab.logs.exceptions.ResourceNotFoundException:
        return []
    return [json.loads(event["message"]) for event in found["events"]]


def reservations(lab: HyperPodLab) -> str:
    return ok(lab.node("lab", "head"), "scontrol", "--oneliner", "show", "reservation")


def events(lab: HyperPodLab, instance_id: str) -> str:
    told = lab.sagemaker.list_cluster_events(ClusterName="lab", NodeId=instance_id)["Events"]
    return "\n".join(event["Description"] for event in told)


def install(lab: HyperPodLab, instance_id: str, *, ends_with: int) -> None:
    script = f'#!/bin/sh\necho "$@" > /root/asked\necho \'{{"seen": "a sick disk"}}\'\nexit {ends_with}\n'
    lab.fleet.node(instance_id).write_file(AGENT, script.encode(), mode=0o755)


@pytest.mark.documented("HP-113")
def test_instances_of_a_group_with_checks_on_start_are_in_service_once_they_have_passed(lab: HyperPodLab):
    for name in lab.instances("lab", "workers"):
        found = eventually(lambda name=name: results(lab, name))
        assert [(one["check"], one["result"]) for one in found if one["check"] == "InstanceStress"] == [
            ("InstanceStress", "Passed")
        ]
        assert "Instance deep health check" in events(lab, name)
        assert b"InstanceStress" in lab.fleet.node(name).read_file(
            "/var/log/aws/clusters/sagemaker-deep-health-check.log"
        )
    for name in lab.instances("lab", "others"):
        assert results(lab, name) == []
    turns = {ok(lab.fleet.node(name), "stat", "-c", "%i", f"{TURNS}/joining/0") for name in lab.instances("lab")}
    assert len(turns) == 1, "nodes of one machine do not share its turns"
    assert "hyperpod-deep-health-check" not in reservations(lab)


@pytest.mark.documented("HP-114")
def test_a_check_waits_for_the_jobs_of_its_node_and_lets_no_other_begin(lab: HyperPodLab):
    head, (name,) = lab.node("lab", "head"), lab.instances("lab", "others")
    host = lab.fleet.node(name).spec.hostname

    def submit(seconds: int) -> str:
        there = ("-p", "other", "-D", "/tmp", "-o", "/dev/null")
        return ok(head, "sbatch", "--parsable", *there, "--wrap", f"sleep {seconds}", user="ubuntu")

    def state(job: str) -> str:
        return ok(head, "squeue", "-h", "-j", job, "-o", "%T", "--states=all")

    running = submit(1000)
    eventually(lambda: state(running) == "RUNNING")
    check(lab, "others", name)
    eventually(lambda: lab.instances("lab")[name] == "DeepHealthCheckInProgress")
    eventually(lambda: f"Nodes={host}" in reservations(lab))
    assert "MAINT" in reservations(lab)
    waiting = submit(0)
    assert results(lab, name) == []
    assert (state(running), state(waiting)) == ("RUNNING", "PENDING")
    ok(head, "scancel", running)
    eventually(lambda: lab.instances("lab")[name] == "Running")
    assert [one["result"] for one in eventually(lambda: results(lab, name))] == ["Passed"]
    eventually(lambda: state(waiting) == "COMPLETED")
    assert host not in reservations(lab)


@pytest.mark.documented("HP-115")
def test_a_check_that_could_not_be_run_is_told_and_costs_no_node(lab: HyperPodLab):
    (name,) = lab.instances("lab", "others")
    install(lab, name, ends_with=2)
    before = len(results(lab, name))
    check(lab, "others", name)
    found = eventually(lambda: results(lab, name)[before:])
    assert found[0]["result"] == "NotRun"
    assert lab.fleet.node(name).read_file("/root/asked") == b"check --deep --json\n"
    eventually(lambda: lab.instances("lab")[name] == "Running")


@pytest.mark.documented("HP-115")
def test_an_instance_that_fails_is_replaced_and_the_agents_evidence_is_told(lab: HyperPodLab):
    (name,) = lab.instances("lab", "others")
    before = lab.fleet.node(name).spec
    install(lab, name, ends_with=1)
    check(lab, "others", name)
    eventually(lambda: name not in lab.instances("lab", "others"))
    eventually(lambda: list(lab.instances("lab", "others").values()) == ["Running"])
    (new,) = lab.instances("lab", "others")
    assert lab.fleet.node(new).spec.hostname == before.hostname
    assert "a sick disk" in eventually(lambda: results(lab, name)[-1:] and results(lab, name)[-1]["details"])
    assert f"Instance deep health check {name} in Cluster lab and IG others failed" in events(lab, name)
    assert ok(lab.node("lab", "head"), "sinfo", "-h", "-p", "other", "-o", "%T") == "idle"
    assert reservations(lab).count(before.hostname) == 0


@pytest.mark.e2e
@pytest.mark.documented("HP-115")
def test_a_place_whose_instances_fail_again_and_again_is_left_after_three(lab: HyperPodLab):
    agent = INSTALL.format(agent=AGENT) % "#!/bin/sh\\necho always; exit 1\\n"
    lab.scripts("sick", run_sh=agent)
    script = {"SourceS3Uri": f"s3://{BUCKET}/sick", "OnInitComplete": "run.sh"}
    group = lab.group("sick", lifecycle=script, NodeType="Compute", PartitionNames=["sick"])
    lab.sagemaker.update_cluster(
        ClusterName="lab", InstanceGroups=[{**group, "OnStartDeepHealthChecks": ["InstanceStress"]}]
    )
    eventually(lambda: lab.described("lab")["ClusterStatus"] == "InService")
    assert "deep health check failed" in lab.described("lab")["FailureMessage"]
    assert lab.instances("lab", "sick") == {}
