"""A Slurm cluster on bad days: its database, its daemons, and the AMI's own configuration fail."""

import os
import signal

import pytest
from bad_days import Lab
from waiting import eventually

from holdfast.localcloud.nodes import Node

pytestmark = [pytest.mark.root, pytest.mark.slurm, pytest.mark.e2e]

SCRIPT = "#!/bin/bash\ntouch /etc/extended\n"
EXTENSION = "on_init_complete.sh"
CLUSTER = "slurm"


@pytest.fixture(scope="module")
def controller(lab: Lab) -> Node:
    """Of a cluster whose controller has no scripts and whose workers have an extension."""
    uri = lab.upload("extension", {EXTENSION: SCRIPT})
    lifecycle = {"SourceS3Uri": uri, "OnInitComplete": EXTENSION}
    lab.create(CLUSTER, lab.slurm_groups(workers=2, lifecycle=lifecycle))
    assert lab.settled(CLUSTER)["ClusterStatus"] == "InService", lab.failures(CLUSTER)
    return lab.node(CLUSTER, "controller")


def told(node: Node, *argv: str) -> str:
    done = node.run(argv, timeout_s=60)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()


def shown(node: Node, unit: str, name: str) -> str:
    return told(node, "systemctl", "show", "-p", name, "--value", unit)


def kill(node: Node, unit: str) -> int:
    """SIGKILL the unit's process; its number, which is nobody's afterwards."""
    pid = int(shown(node, unit, "MainPID"))
    assert pid > 1
    told(node, "kill", "-KILL", str(pid))
    eventually(lambda: shown(node, unit, "MainPID") != str(pid))
    return pid


def submit(node: Node, command: str = "true") -> str:
    return told(node, "sbatch", "--parsable", "-N1", "-o", "/dev/null", "--wrap", command)


def state(node: Node, job: str) -> str:
    """As the controller has it; it forgets jobs some minutes after their end."""
    line = told(node, "scontrol", "--oneliner", "show", "job", job)
    return line.partition("JobState=")[2].split()[0]


def recorded(node: Node, job: str) -> str:
    """As accounting has it; empty where it has none or does not answer."""
    done = node.run(["sacct", "-n", "-X", "-P", "-j", job, "-o", "state"], timeout_s=60)
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture(scope="module")
def long_job(controller: Node) -> str:
    """A job that runs through it all, until somebody ends it."""
    return submit(controller, "until [ -e /fsx/end ]; do sleep 0.2; done")


def nothing_was_repaired(lab: Lab, before: dict[str, str]) -> bool:
    return lab.instances(CLUSTER) == before and lab.described(CLUSTER)["ClusterStatus"] == "InService"


def test_a_killed_mariadb_is_started_again_and_no_job_is_lost(lab: Lab, controller: Node, long_job: str) -> None:
    before, earlier = lab.instances(CLUSTER), submit(controller)
    eventually(lambda: recorded(controller, earlier) == "COMPLETED")

    old = kill(controller, "mariadb")
    during = submit(controller)
    eventually(lambda: state(controller, during) == "COMPLETED")

    eventually(lambda: shown(controller, "mariadb", "ActiveState") == "active")
    assert shown(controller, "mariadb", "MainPID") != str(old)
    assert shown(controller, "mariadb", "NRestarts") == "1"
    eventually(lambda: recorded(controller, during) == "COMPLETED")
    assert recorded(controller, earlier) == "COMPLETED"
    assert state(controller, long_job) == "RUNNING"
    assert nothing_was_repaired(lab, before)


def test_without_slurmdbd_jobs_run_and_their_records_wait(lab: Lab, controller: Node) -> None:
    before = lab.instances(CLUSTER)
    told(controller, "systemctl", "stop", "slurmdbd")

    during = submit(controller)
    eventually(lambda: state(controller, during) == "COMPLETED")
    assert recorded(controller, during) == ""
    told(controller, "systemctl", "start", "slurmdbd")

    eventually(lambda: recorded(controller, during) == "COMPLETED")
    assert nothing_was_repaired(lab, before)


def daemon_events(lab: Lab, kind: str) -> list[tuple[str, str]]:
    return [(one["node"], one["detail"]["program"]) for one in lab.events(CLUSTER, kind)]


@pytest.mark.documented("HP-105", "HP-107")
def test_a_killed_slurmctld_is_told_and_started_again_while_jobs_go_on_and_no_node_is_taken(
    lab: Lab, controller: Node, long_job: str
) -> None:
    before, name = lab.instances(CLUSTER), controller.spec.instance_id
    eventually(lambda: state(controller, long_job) == "RUNNING")
    # slurmctld saves its state a few seconds after a change; what it had not saved it could not know again. A time of
    # the file says too little: a save that began before the job was submitted may end after it.
    told(controller, "scontrol", "update", f"JobId={long_job}", "Comment=saved-while-running")
    eventually(lambda: b"saved-while-running" in (controller.root / "var/spool/slurmctld/job_state").read_bytes())
    kill(controller, "slurmctld")
    assert shown(controller, "slurmctld", "ActiveState") == "failed"
    eventually(lambda: (name, "slurmctld") in daemon_events(lab, "daemon_lost"))
    eventually(lambda: (name, "slurmctld") in daemon_events(lab, "daemon_restored"))
    assert shown(controller, "slurmctld", "ActiveState") == "active"
    assert (name, "slurmdbd") not in daemon_events(lab, "daemon_lost")  # somebody had asked for it to stop
    (lab.node(CLUSTER, "workers").root / "fsx/end").touch()

    eventually(lambda: state(controller, long_job) == "COMPLETED")
    assert " Restarts=0 " in told(controller, "scontrol", "--oneliner", "show", "job", long_job)
    assert nothing_was_repaired(lab, before)


def test_with_a_full_disk_under_mariadb_jobs_run_and_records_come_when_there_is_room(
    lab: Lab, controller: Node
) -> None:
    before, earlier = lab.instances(CLUSTER), submit(controller)
    eventually(lambda: recorded(controller, earlier) == "COMPLETED")
    put_on_a_full_disk = """set -eu
    systemctl stop mariadb
    cp -a /var/lib/mysql /run/kept
    mount -t tmpfs -o size=$(($(du -sk /run/kept | cut -f1) + 2048))k full /var/lib/mysql
    cp -a /run/kept/. /var/lib/mysql
    chown --reference=/run/kept /var/lib/mysql
    dd if=/dev/zero of=/var/lib/mysql/somebodys-file bs=64k 2>/dev/null || true
    ! systemctl start mariadb
    """
    told(controller, "sh", "-c", put_on_a_full_disk)
    assert shown(controller, "mariadb", "ActiveState") == "failed"
    assert told(controller, "df", "--output=avail", "/var/lib/mysql").split()[-1] == "0"

    during = submit(controller)
    eventually(lambda: state(controller, during) == "COMPLETED")
    assert recorded(controller, during) == ""
    told(controller, "sh", "-c", "rm /var/lib/mysql/somebodys-file; mount -o remount,size=1g /var/lib/mysql")
    told(controller, "systemctl", "start", "mariadb")

    eventually(lambda: recorded(controller, during) == "COMPLETED")
    assert recorded(controller, earlier) == "COMPLETED"
    assert nothing_was_repaired(lab, before)


@pytest.mark.documented("HP-05", "HP-101")
def test_where_the_amis_own_configuration_fails_no_extension_runs_and_the_replacement_is_tried_again(
    lab: Lab, controller: Node
) -> None:
    key = lab.home / "hyperpod" / "keys" / f"{lab.described(CLUSTER)['ClusterArn'].rpartition('/')[2]}.munge"
    good = key.read_bytes()
    key.chmod(0o600)
    key.write_bytes(b"too short")
    os.kill(lab.node(CLUSTER, "workers").pid, signal.SIGKILL)

    eventually(lambda: len(lab.failures(CLUSTER)) == 3 and "Failure" in lab.instances(CLUSTER).values())
    (name,) = (name for name, status in lab.instances(CLUSTER).items() if status == "Failure")
    evidence = lab.failures(CLUSTER)[name]

    node = lab.fleet.node(name)
    assert not (node.root / "etc/extended").exists()
    assert evidence.startswith(f"AMI-based configuration of {node.spec.hostname} failed")
    assert "munge" in evidence.lower()
    assert lab.message(CLUSTER, name) == evidence
    assert lab.described(CLUSTER)["ClusterStatus"] == "InService"
    key.write_bytes(good)
    lab.sagemaker.batch_replace_cluster_nodes(ClusterName=CLUSTER, NodeIds=[name])
    eventually(lambda: name not in lab.instances(CLUSTER) and lab.all_run(CLUSTER))


@pytest.mark.documented("HP-53", "HP-101")
def test_where_the_controllers_database_is_corrupt_the_creation_fails_and_no_extension_runs(lab: Lab) -> None:
    template = lab.home / "hyperpod" / "accounting" / "template"
    good = (template / "ibdata1").read_bytes()
    (template / "ibdata1").write_bytes(b"x" * len(good))
    uri = lab.upload("extension", {EXTENSION: SCRIPT})
    lifecycle = {"SourceS3Uri": uri, "OnInitComplete": EXTENSION}
    groups = [
        lab.group("controller", lifecycle=lifecycle, NodeType="Controller"),
        lab.group("workers", lifecycle=lifecycle, NodeType="Compute", PartitionNames=["batch"]),
    ]
    lab.halt()
    lab.start(form_timeout_s=4.0)
    try:
        lab.create("corrupt", groups)
        described = lab.settled("corrupt")
    finally:
        (template / "ibdata1").write_bytes(good)
    failures = eventually(lambda: len(lab.failures("corrupt")) == 2 and lab.failures("corrupt"))

    assert described["ClusterStatus"] == "Failed"
    assert described["FailureMessage"] == (
        "Cluster creation failed: controller and login nodes did not become ready within the expected time"
    )
    for name, evidence in failures.items():
        assert evidence.startswith("Slurm's controller was not ready for this node within 4 s: ")
        assert "Slurm's accounting did not start: " in evidence
        assert "mariadb did not start" in evidence, "of two daemons"
        assert not (lab.fleet.node(name).root / "etc/extended").exists()
    assert lab.events("corrupt", "node_replacing") == []
    lab.delete("corrupt")
