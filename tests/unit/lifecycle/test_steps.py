"""The lifecycle of a node, run against a scratch root: nothing of this machine is touched."""

import getpass
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast_common import kinds, parse_events
from holdfast_lifecycle import LifecycleError, load_context, main
from holdfast_lifecycle.steps import STEPS, clock, fsx
from holdfast_lifecycle.steps.slurm import answers

REPOSITORY = Path(__file__).parents[3]
ADDRESS = "10.1.0.12"
AS_ROOT = pytest.mark.root


class Node:
    """A scratch root with the files that HyperPod gives a node."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("etc", "fsx/data", "proc/self", "opt/ml/config", "bundle"):
            (root / folder).mkdir(parents=True)
        self.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n")
        self.write("etc/group", "root:x:0:\nubuntu:x:1000:\n")
        self.write("etc/shadow", "")
        self.write("etc/gshadow", "")
        self.write("proc/self/mountinfo", "50 40 8:1 /fsx/fs-1 /fsx rw - ext4 /dev/vda rw\n")
        (root / "bundle/holdfast_common").symlink_to(REPOSITORY / "containers/common/holdfast_common")
        self.config: dict[str, Any] = {
            "cluster_name": "local",
            "users": [{"name": "trainer", "uid": 2000}],
            "fsx_mount_path": "/fsx",
            "events_path": "/var/log/holdfast/events.jsonl",
        }
        self.groups: list[dict[str, Any]] = [
            {"Name": "controller", "Instances": [{"InstanceId": "i-0", "CustomerIpAddress": "10.1.0.4"}]},
            {"Name": "spares", "Instances": None},
            {"Name": "workers", "Instances": [{"InstanceId": "i-1", "CustomerIpAddress": ADDRESS}]},
        ]

    def write(self, name: str, content: str) -> None:
        (self.root / name).write_text(content)

    def settle(self) -> None:
        self.write("bundle/config.json", json.dumps(self.config))
        self.write("opt/ml/config/resource_config.json", json.dumps({"InstanceGroups": self.groups}))

    def run(self, *arguments: str) -> int:
        self.settle()
        steps = [step for step in STEPS if step.name not in ("slurm_daemon", "slurm", "scripts")]
        config = str(self.root / "bundle/config.json")
        return main(["--hook", "OnInitComplete", "--config", config, *arguments], steps=steps, root=self.root)

    def context(self, *, address: str = ADDRESS) -> Any:
        self.settle()
        resources = self.root / "opt/ml/config/resource_config.json"
        return load_context(
            config=self.root / "bundle/config.json", resource_config=resources, addresses={address}, root=self.root
        )


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    # Not tmp_path: pytest closes that to other users, as whom the fsx step probes.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = Node(Path(folder))
        resources = str(made.root / "opt/ml/config/resource_config.json")
        monkeypatch.setenv("SAGEMAKER_RESOURCE_CONFIG_PATH", resources)
        monkeypatch.setattr("holdfast_lifecycle.model.context.own_addresses", lambda: {ADDRESS})
        yield made


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{getpass.getuser()} cannot make accounts")


@AS_ROOT
@needs_root
def test_a_new_node_becomes_ready_and_a_second_run_changes_nothing(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    assert node.run() == 0
    assert "i-1 is ready: 7 steps" in capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in node.root.rglob("etc/*")}
    assert node.run() == 0
    assert capsys.readouterr().out.count("satisfied") == 7
    assert {path: path.stat().st_mtime_ns for path in node.root.rglob("etc/*")} == before
    assert "trainer:x:2000:2000::/fsx/trainer:/bin/bash" in (node.root / "etc/passwd").read_text()
    assert (node.root / "fsx/trainer").stat().st_uid == 2000
    assert sorted(path.name for path in (node.root / "fsx").iterdir()) == ["data", "trainer"]
    assert (node.root / "fsx/data").stat().st_mode & 0o7777 == 0o1777


@AS_ROOT
@needs_root
def test_events_tell_the_lifecycle_and_its_durations(node: Node) -> None:
    assert node.run() == 0
    parsed = parse_events((node.root / "var/log/holdfast/events.jsonl").read_text().splitlines())
    assert parsed.problems == ()
    told = [event.kind for event in parsed.events]
    assert told == [kinds.LIFECYCLE_STARTED, *[kinds.STEP_FINISHED] * 7, kinds.LIFECYCLE_FINISHED]
    assert all(event.duration_s is not None for event in parsed.events[1:])
    assert {(event.source, event.cluster, event.node) for event in parsed.events} == {("lifecycle", "local", "i-1")}
    log = (node.root / "var/log/holdfast/lifecycle.jsonl").read_text().splitlines()
    assert {json.loads(line)["step"] for line in log} == {
        "users",
        "user_homes",
        "fsx",
        "clock",
        "job_environment",
        "agent",
        "burn_in",
    }


def test_a_taken_uid_ends_in_a_clear_summary(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.config["users"] = [{"name": "trainer", "uid": 1000}]
    assert node.run("--only", "users") == 1
    assert capsys.readouterr().out.splitlines()[-5:] == [
        "lifecycle: i-1 is not ready: 1 of its steps failed",
        "lifecycle: failed step: users",
        "lifecycle:   expected: user 'trainer' has uid 1000",
        "lifecycle:   seen: uid 1000 belongs to user 'ubuntu' already",
        "lifecycle:   to do: give 'trainer' another uid under lifecycle.users in the environment file",
    ]


def test_a_user_with_another_uid_is_refused(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.config["users"] = [{"name": "ubuntu", "uid": 2000}]
    assert node.run("--only", "users") == 1
    assert "seen: user 'ubuntu' exists with uid 1000" in capsys.readouterr().out


def test_fails_when_nothing_is_mounted(
    node: Node, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(fsx, "_WAIT_S", 0.2)
    node.write("proc/self/mountinfo", "50 40 8:1 / / rw - ext4 /dev/vda rw\n")
    assert node.run() == 1
    last = capsys.readouterr().out.splitlines()[-6:]
    assert last[1] == "lifecycle: not started because of these: user_homes, clock, burn_in"
    assert last[3] == "lifecycle:   expected: a file system is mounted at /fsx"


def test_lustre_and_the_stand_in_are_told_apart(node: Node) -> None:

    assert fsx.mount_type(node.context()) == "directory stand-in on ext4"
    node.write("proc/self/mountinfo", "50 40 0:52 / /fsx rw shared:3 - lustre 10.1.0.9@tcp:/abc rw\n")
    assert fsx.mount_type(node.context()) == "lustre"


def test_a_clock_out_of_step_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast_lifecycle import StepError

    context = node.context()
    now = time.time
    assert clock.check(context)
    monkeypatch.setattr(clock.time, "time", lambda: now() - 3)
    assert not clock.check(context)
    with pytest.raises(StepError) as refused:
        clock.verify(context)
    assert refused.value.seen.startswith("the file system is +3.0 s ahead")


def test_the_profile_leaves_what_the_user_has_set(node: Node) -> None:
    assert node.run("--only", "job_environment") == 0
    profile = node.root / "etc/profile.d/holdfast.sh"
    own = {
        "PATH": "/fsx/venv/bin:/usr/bin:/bin",
        "PYTHONPATH": "/fsx/mine",
        "HOLDFAST_EVENTS": "/fsx/mine.jsonl",
        "HOLDFAST_INSTANCE_ID": "i-of-the-controller",
    }
    told = subprocess.run(
        ["sh", "-euc", f". {profile}; env"], env=own, capture_output=True, text=True, check=True, timeout=20
    )
    variables = dict(line.split("=", 1) for line in told.stdout.splitlines())
    assert variables["PATH"].startswith("/fsx/venv/bin:/usr/bin:/bin")
    assert variables["PYTHONPATH"] == "/fsx/mine:/opt/holdfast/lib"
    assert variables["HOLDFAST_EVENTS"] == "/fsx/mine.jsonl"
    assert variables["HOLDFAST_INSTANCE_ID"] == "i-1"


@pytest.mark.parametrize("present", [True, False])
def test_the_profile_works_in_a_shell_however_often_it_is_read(node: Node, present: bool) -> None:
    assert node.run("--only", "job_environment") == 0
    profile = node.root / "etc/profile.d/holdfast.sh"
    text = profile.read_text().replace("[ -d /opt/holdfast/env/bin ]", "true" if present else "false")
    script = f"set -eu\n{text}\n{text}\nenv"
    told = subprocess.run(
        ["sh", "-c", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True, timeout=20
    )
    variables = dict(line.split("=", 1) for line in told.stdout.splitlines())
    assert variables["PATH"] == "/usr/bin:/bin" + (":/opt/holdfast/env/bin" if present else "")
    assert variables["PYTHONPATH"] == "/opt/holdfast/lib"
    assert variables["HOLDFAST_CLUSTER"] == "local"
    assert variables["HOLDFAST_INSTANCE_ID"] == "i-1"
    assert variables["HOLDFAST_INSTANCE_GROUP"] == "workers"
    assert variables["HOLDFAST_EVENTS"] == "/var/log/holdfast/jobs/events.jsonl"
    library = node.root / "opt/holdfast/lib"
    imported = subprocess.run(
        [sys.executable, "-S", "-c", "import holdfast_common; print(holdfast_common.__file__)"],
        env={"PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert imported.stdout.startswith(str(library))


def test_jobs_write_a_log_of_their_own_and_cannot_put_a_line_into_the_other(node: Node) -> None:
    assert node.run("--only", "job_environment") == 0

    modes = {
        path: (node.root / path).stat().st_mode & 0o7777
        for path in ("var/log/holdfast", "var/log/holdfast/jobs", "var/log/holdfast/events.jsonl",
                     "var/log/holdfast/jobs/events.jsonl")
    }  # fmt: skip
    assert [*modes.values()] == [0o755, 0o755, 0o640, 0o666]


@pytest.mark.parametrize(
    ("address", "group", "role"), [("10.1.0.4", "controller", "Controller"), (ADDRESS, "workers", "Compute")]
)
def test_a_node_finds_itself_by_its_address(node: Node, address: str, group: str, role: str) -> None:
    context = node.context(address=address)
    assert (context.instance_group, context.role, context.controller_address) == (group, role, "10.1.0.4")


def test_the_slurm_node_type_decides_before_the_name(node: Node) -> None:
    node.groups[0] |= {"Name": "head", "SlurmConfig": {"NodeType": "Controller"}}
    assert node.context(address="10.1.0.4").role == "Controller"


def test_fails_when_the_node_is_not_in_the_resource_configuration(node: Node) -> None:
    with pytest.raises(
        LifecycleError, match=r"has the addresses 10\.9\.9\.9, but .* has only 10\.1\.0\.4, 10\.1\.0\.12"
    ):
        node.context(address="10.9.9.9")


def test_fails_when_no_group_is_the_controller(node: Node) -> None:
    node.groups[0]["Name"] = "head"
    with pytest.raises(LifecycleError, match=r"no instance group of .* is the Slurm controller"):
        node.context()


def test_fails_quickly_when_there_is_no_resource_configuration(
    node: Node, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_RESOURCE_CONFIG_PATH", "/nowhere/resource_config.json")
    assert node.run() == 1
    assert "cannot read /nowhere/resource_config.json" in capsys.readouterr().out


def test_the_plan_changes_nothing(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.run("--plan") == 0
    assert "would run clock after fsx, for at most 30 s" in capsys.readouterr().out
    assert not (node.root / "var").exists()


@pytest.fixture
def slurm_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand-ins for scontrol and sinfo whose answers a test writes."""

    def say(*, ping: str, state: str = "idle") -> None:
        for name, answer in (("scontrol", ping), ("sinfo", state)):
            program = tmp_path / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\necho '{answer}'\n")
            program.chmod(0o755)
        if "UP" not in ping:
            lost = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
            (tmp_path / "bin" / "sinfo").write_text(f"#!/bin/sh\necho '{lost}' >&2\nexit 1\n")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return say


UP = "Slurmctld(primary) at ip-10-1-0-4 is UP"


@pytest.mark.parametrize("state", ["idle", "mixed", "allocated", "drained"])
def test_slurm_is_ready_when_the_controller_hears_the_node(node: Node, slurm_says: Any, state: str) -> None:
    slurm_says(ping=UP, state=state)
    assert answers.check(node.context())


@pytest.mark.parametrize(
    ("ping", "state"),
    [("Slurmctld(primary) at x is DOWN", "idle"), (UP, "down"), (UP, "idle*"), (UP, "unknown*")],
)
def test_slurm_is_waited_for_otherwise(
    node: Node, slurm_says: Any, ping: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast_lifecycle import StepError

    monkeypatch.setattr(answers, "_WAIT_S", 0.2)
    slurm_says(ping=ping, state=state)
    assert not answers.check(node.context())
    answers.apply(node.context())
    with pytest.raises(StepError):
        answers.verify(node.context())


@pytest.mark.parametrize(("before", "after", "skew"), [(-6.0, 6.0, 0.0), (5.0, 6.0, -5.0), (-6.0, -5.0, 5.0)])
def test_a_slow_write_is_no_difference_of_clocks(
    node: Node, monkeypatch: pytest.MonkeyPatch, before: float, after: float, skew: float
) -> None:
    now = time.time()
    times = iter((now + before, now + after))
    monkeypatch.setattr(clock.time, "time", lambda: next(times))
    assert clock.skew_s(node.context()) == pytest.approx(skew, abs=1.0)
