"""Lifecycle scripts on bad days: what each fault becomes in AWS's words and in ours. Real nodes under EKS."""

import resource
from typing import Any

import pytest
from bad_days import BUCKET, MISSING, Lab
from waiting import eventually

pytestmark = [pytest.mark.root, pytest.mark.e2e]

SETTINGS = {"lifecycle_timeout_s": 3.0}
HEAD = "#!/bin/bash\ntouch /etc/began\n"
FAILING = {
    "hangs": ("sleep 600", "timed out after 3 s"),
    "hangs-deaf": ("trap '' TERM INT HUP; echo waiting; sleep 600", "timed out after 3 s: waiting"),
    "exits-1": ("echo 'no such user: trainer' >&2; exit 1", "failed with exit code 1: no such user: trainer"),
    "exits-2": ("exit 2", "failed with exit code 2"),
    "exits-126": ("/etc/passwd", "failed with exit code 126: "),
    "exits-127": ("no-such-program", "failed with exit code 127: "),
    "exits-130": ("exit 130", "failed with exit code 130 (SIGINT)"),
    "exits-255": ("exit 255", "failed with exit code 255"),
    "is-terminated": ("kill -TERM $$; sleep 5", "was killed by SIGTERM"),
    "is-killed": ("kill -KILL $$; sleep 5", "was killed by SIGKILL"),
    "kills-its-parent": ("(kill -9 $PPID); sleep 5", "was killed by SIGKILL"),
    "kills-its-group": ("kill -9 0; sleep 5", "was killed by SIGKILL"),
    "is-no-program": (None, "failed with exit code 127: "),
}
PASSING = {
    "exits-0": "exit 0",
    "kills-init": "kill -9 1; touch /etc/lived",
    "leaves-a-daemon": "(echo $BASHPID > /etc/daemon; exec sleep 600) & echo left",
    "kills-all-others": "kill -9 -1; touch /etc/lived",
}


@pytest.fixture(scope="module")
def broken(lab: Lab) -> dict[str, Any]:
    """A cluster with a group for each fault, once it has failed."""
    groups = []
    for name, body in {**{name: body for name, (body, _) in FAILING.items()}, **PASSING}.items():
        text = "#!/no/such/program\n" if body is None else HEAD + body + "\n"
        uri = lab.upload(name, {"on_create.sh": text})
        groups.append(lab.group(name, lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"}))
    lab.create("broken", groups, kubernetes=True)
    return lab.settled("broken")


def the_one(lab: Lab, group: str) -> tuple[str, str]:
    ((name, status),) = lab.instances("broken", group).items()
    return name, status


@pytest.mark.parametrize("fault", FAILING)
def test_a_failing_script_is_told_in_awss_words_and_in_a_clear_line(
    fault: str, lab: Lab, broken: dict[str, Any]
) -> None:
    name, status = the_one(lab, fault)
    _, line = FAILING[fault]

    assert status == "Failure"
    assert lab.message("broken", name) == lab.script_failed("broken", fault, name)
    evidence = eventually(lambda: lab.failures("broken").get(name))
    assert evidence.startswith(f"lifecycle script on_create.sh {line}")
    assert "\n" not in evidence
    assert evidence.endswith(line) or line.endswith(": ")
    assert lab.fleet.node(name).alive()
    assert (lab.fleet.node(name).root / "etc/began").exists() == (FAILING[fault][0] is not None)


@pytest.mark.parametrize("fault", PASSING)
def test_a_script_that_ends_with_0_puts_its_node_into_service_whatever_it_did(
    fault: str, lab: Lab, broken: dict[str, Any]
) -> None:
    name, status = the_one(lab, fault)
    node = lab.fleet.node(name)

    assert status == "Running"
    assert name not in lab.failures("broken")
    assert (node.root / "etc/began").exists()
    if fault.startswith("kills"):
        assert (node.root / "etc/lived").exists()
    if fault == "leaves-a-daemon":
        daemon = node.read_file("/etc/daemon").decode().strip()
        assert node.run(["kill", "-0", daemon], timeout_s=10).returncode == 0


def test_the_creation_fails_as_a_whole_names_one_instance_and_is_not_tried_again(
    lab: Lab, broken: dict[str, Any]
) -> None:
    failed = sorted(name for name, status in lab.instances("broken").items() if status == "Failure")
    first = failed[0]
    (group,) = [fault for fault in FAILING if first in lab.instances("broken", fault)]
    reason = lab.script_failed("broken", group, first)

    assert broken["ClusterStatus"] == "Failed"
    assert broken["FailureMessage"] == (
        f'Instance {first} failed to provision with the following error: "{reason} '
        "Note that multiple instances may be impacted."
    )
    assert len(failed) == len(FAILING)
    eventually(lambda: lab.events("broken", "cluster_failed"))
    assert lab.events("broken", "node_replacing") == []
    assert sorted(event["node"] for event in lab.events("broken", "node_failed")) == failed


def test_nothing_of_a_script_that_hung_or_failed_goes_on(lab: Lab, broken: dict[str, Any]) -> None:
    def of_scripts(fault: str) -> list[str]:
        shown = lab.node("broken", fault).run(["ps", "-e", "-o", "stat=,args="], timeout_s=10).stdout.splitlines()
        alive = [line for line in shown if not line.startswith("Z")]
        return [line for line in alive if "on_create.sh" in line or "sleep 600" in line]

    for fault in ("hangs", "hangs-deaf", "is-terminated"):
        eventually(lambda fault=fault: of_scripts(fault) == [])
    assert len(of_scripts("leaves-a-daemon")) == 1


LONG = """#!/bin/bash
line="$(printf '%0100d' 7)"
yes "$line" | head -c {size}M
yes "$line" | head -c {size}M >> /var/log/provision/provisioning.log
head -c {size}M /dev/zero
echo
echo the end
echo >> /var/log/provision/provisioning.log
echo the last line >> /var/log/provision/provisioning.log
exit 9
"""


def most_memory_mib() -> int:
    """The most that this process, control plane and embedded AWS included, has had at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@pytest.mark.parametrize("size_mib", [6, pytest.param(1024, marks=pytest.mark.timeout(400))], ids=["6M", "1G"])
def test_a_script_that_writes_a_huge_log_costs_the_control_plane_little(
    size_mib: int, lab: Lab, broken: dict[str, Any]
) -> None:
    lab.halt()
    lab.start(lifecycle_timeout_s=200.0)
    before = most_memory_mib()
    name = f"talks-{size_mib}"
    uri = lab.upload(name, {"on_create.sh": LONG.format(size=size_mib)})
    group = lab.group(name, lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"})
    lab.create(name, [group], kubernetes=True)

    described = lab.settled(name, within_s=250)
    ((instance, status),) = lab.instances(name).items()

    assert (described["ClusterStatus"], status) == ("Failed", "Failure")
    evidence = eventually(lambda: lab.failures(name).get(instance))
    assert evidence.startswith("lifecycle script on_create.sh failed with exit code 9: ")
    assert "the end | " in evidence
    assert evidence.endswith(" | the last line")
    assert len(evidence) <= 900
    log = lab.fleet.node(instance).root / "var/log/provision/provisioning.log"
    assert log.stat().st_size > size_mib << 20
    cut = "[holdfast] log cut at 4194304 bytes; the rest is on the node only"
    eventually(lambda: cut in lab.lifecycle_log(name, name, instance), within_s=60)
    shipped = list(lab.lifecycle_log(name, name, instance))
    assert shipped.count(cut) == 1
    assert sum(len(line) + 1 for line in shipped) < 5 << 20
    assert most_memory_mib() - before < 300
    lab.delete(name)


def test_clusters_cannot_be_created_while_s3_is_away(lab: Lab) -> None:
    uris = {how: lab.upload(how, {"on_create.sh": HEAD}) for how in ("unavailable", "unreachable")}
    lab.gate.away = {how: how for how in uris}
    for how, uri in uris.items():
        workers = lab.group("workers", lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"})
        lab.create(how, [workers], kubernetes=True)

    for how, uri in uris.items():
        described = lab.settled(how)
        ((instance, status),) = lab.instances(how).items()
        assert lab.gate.refused[how] == 3
        assert (described["ClusterStatus"], status) == ("Failed", "Failure")
        assert MISSING in described["FailureMessage"]
        assert lab.message(how, instance) == MISSING
        evidence = eventually(lambda how=how, instance=instance: lab.failures(how).get(instance))
        assert evidence.startswith(f"lifecycle scripts at {uri} cannot be read: ")
        assert not (lab.fleet.node(instance).root / "etc/began").exists()
        lab.delete(how)


def test_s3_that_comes_back_in_time_delays_a_creation_and_no_more(lab: Lab) -> None:
    uri = lab.upload("back", {"on_create.sh": HEAD})
    # One attempt less than the control plane makes, so that none is left to chance.
    lab.gate.back_after = {"back": 2}
    lab.gate.away = {"back": "unavailable"}
    workers = lab.group("workers", lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"})
    lab.create("back", [workers], kubernetes=True)

    assert lab.settled("back")["ClusterStatus"] == "InService", lab.failures("back")
    assert lab.gate.refused["back"] == 2
    lab.gate.away = {}
    assert lab.events("back", "node_failed") == []
    lab.delete("back")


def test_scripts_that_are_gone_when_nodes_boot_are_said_to_be_missing(lab: Lab) -> None:
    groups = []
    for name in ("some", "nothing"):
        uri = lab.upload(name, {"on_create.sh": HEAD})
        groups.append(lab.group(name, lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"}))
    lab.upload("some", {"other.sh": HEAD})
    lab.halt()
    lab.create("gone", groups, kubernetes=True)
    for name in ("some", "nothing"):
        lab.s3.delete_object(Bucket=BUCKET, Key=f"{name}/on_create.sh")
    lab.start(lifecycle_timeout_s=200.0)

    described = lab.settled("gone")
    told = eventually(lambda: len(lab.failures("gone")) == 2 and lab.failures("gone"))

    assert described["ClusterStatus"] == "Failed"
    assert {lab.message("gone", name) for name in told} == {MISSING}
    assert set(told.values()) == {
        "no script on_create.sh among the lifecycle scripts",
        f"no lifecycle scripts at s3://{BUCKET}/nothing; upload them under this prefix",
    }
    lab.delete("gone")


def test_with_continuous_provisioning_a_failed_script_runs_again_on_new_instances_until_it_works(lab: Lab) -> None:
    uri = lab.upload("keen", {"on_create.sh": HEAD + "echo not yet; exit 4\n"})
    workers = lab.group("workers", lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"})
    lab.create("keen", [workers], kubernetes=True, NodeProvisioningMode="Continuous")
    eventually(lambda: lab.events("keen", "node_failed"))
    lab.upload("keen", {"on_create.sh": HEAD})
    eventually(lambda: lab.all_run("keen") and lab.events("keen", "node_replaced"))
    failed, replacing = lab.events("keen", "node_failed"), lab.events("keen", "node_replacing")
    ((instance, _),) = lab.instances("keen").items()

    assert lab.described("keen")["ClusterStatus"] == "InService"
    assert "FailureMessage" not in lab.described("keen")
    assert {event["evidence"] for event in failed} == {"lifecycle script on_create.sh failed with exit code 4: not yet"}
    # Each attempt is another instance: the one that failed names the one that follows, and the last is in service.
    chain = [(event["node"], event["detail"]["replacement"]) for event in replacing]
    assert [old for old, _ in chain] == [event["node"] for event in failed]
    assert [new for _, new in chain] == [*[event["node"] for event in failed[1:]], instance]
    assert len({instance, *(old for old, _ in chain)}) == len(chain) + 1
    told = lab.sagemaker.list_cluster_events(ClusterName="keen")["Events"]
    assert f"Instance creation {failed[0]['node']} in Cluster keen and IG workers failed" in {
        event["Description"] for event in told
    }
    lab.delete("keen")


def test_a_script_that_changes_runs_on_new_instances_only(lab: Lab) -> None:
    uri = lab.upload("moving", {"on_create.sh": HEAD + "echo one > /etc/content\n"})
    workers = lab.group("workers", count=2, lifecycle={"SourceS3Uri": uri, "OnCreate": "on_create.sh"})
    lab.create("moving", [workers], kubernetes=True)
    assert lab.settled("moving")["ClusterStatus"] == "InService"
    old, kept = lab.instances("moving")
    lab.upload("moving", {"on_create.sh": HEAD + "echo two > /etc/content\n"})
    pid = lab.fleet.node(kept).pid

    lab.sagemaker.batch_replace_cluster_nodes(ClusterName="moving", NodeIds=[old])
    eventually(lambda: old not in lab.instances("moving") and lab.all_run("moving"))
    (fresh,) = lab.instances("moving").keys() - {kept}

    assert lab.fleet.node(fresh).read_file("/etc/content") == b"two\n"
    assert lab.fleet.node(kept).read_file("/etc/content") == b"one\n"
    assert lab.fleet.node(kept).pid == pid
    lab.delete("moving")
