"""The steps of the health agent: what is installed, what it is told, and who joins after its burn-in."""

import json
import subprocess
from pathlib import Path

import pytest
from scratch_node import ScratchNode

from holdfast_agent.configuration import load
from holdfast_common import kinds, parse_events
from holdfast_lifecycle import LifecycleError, load_context
from holdfast_lifecycle.model import Health, StepError, remote_write_url
from holdfast_lifecycle.steps import agent, burn_in

WATCHED = Health(enabled=True, burn_in_s=5.0)
PASSES = 'echo \'{"figures": {"memory_gib_per_s": 11.5}}\'\n'
FAILS = 'echo \'{"problems": ["compute gave another digest"], "figures": {"memory_gib_per_s": 0.2}}\'\nexit 1\n'


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> ScratchNode:
    containers = repository / "containers"
    for package in (containers / "health-agent/holdfast_agent", containers / "common/holdfast_common"):
        (tmp_path / package.name).symlink_to(package)
    for unit in ("holdfast-agent.service", "holdfast-events.service"):
        (tmp_path / unit).symlink_to(containers / "health-agent" / unit)
    return (
        ScratchNode(tmp_path, monkeypatch)
        .worker()
        .has(health=WATCHED, instance_type="ml.p5.48xlarge", events_path="/events.jsonl")
    )


def settings(node: ScratchNode) -> dict[str, object]:
    found: dict[str, object] = json.loads(node.read("etc/holdfast/agent.json"))
    return found


def checking(node: ScratchNode, *, does: str) -> None:
    """The agent's deep check, as it would end."""
    node.step("agent")
    program = node.root / "opt/holdfast/agent/bin/holdfast-agent"
    program.write_text(f'#!/bin/sh\necho "holdfast-agent $*" >>{node.root}/checked\n{does}')


def joins(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> StepError | None:
    """What the step said against it, on a new root volume."""
    (node.root / "var/lib/holdfast/burn-in.json").unlink(missing_ok=True)
    try:
        burn_in.apply(node.context)
    except StepError as error:
        return error
    burn_in.verify(node.context)
    return None


def test_the_agent_is_installed_started_and_left_alone_by_a_second_run(node: ScratchNode) -> None:
    assert node.step("agent").remark == "holdfast-agent runs, and observes"
    assert node.running() == {"holdfast-agent"}
    assert "ExecStart=/opt/holdfast/agent/bin/holdfast-agent run" in node.read(
        "etc/systemd/system/holdfast-agent.service"
    )
    node.forget()
    assert node.step("agent").outcome == "satisfied"
    assert node.calls("systemctl enable") == []


def test_the_installed_agent_runs_by_itself_whatever_is_in_the_folder_of_its_caller(
    node: ScratchNode, tmp_path: Path
) -> None:
    node.step("agent")
    program = node.root / "opt/holdfast/agent/bin/holdfast-agent"
    text = program.read_text().replace("'/opt/", f"'{node.root}/opt/")
    assert str(node.root) in text
    program.write_text(text)
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "holdfast_agent.py").write_text("raise SystemExit(9)\n")
    done = subprocess.run(
        [program, "--help"], cwd=evil, env={"PYTHONPATH": str(evil)}, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert b"health agent of a HyperPod node" in done.stdout


def test_what_the_agent_may_do_follows_the_environment_and_the_place_of_the_node(node: ScratchNode) -> None:
    node.has(health=WATCHED._replace(acts=True, breaker_share=0.25)).step("agent")
    told = settings(node)
    assert told["remedies.mode"] == "act"
    assert told["remedies.way"] == "slurm"
    assert told["remedies.breaker_share"] == 0.25
    assert told["node.instance_id"] == "i-1"
    assert told["controller.enabled"] is False
    node.has(role="Controller", instance_id="i-0").step("agent")
    assert settings(node)["remedies.way"] == "slurm", "its agent decides"
    assert settings(node)["controller.enabled"] is True


@pytest.mark.parametrize("role", ["Controller", "Login", "Compute", "Kubernetes"])
@pytest.mark.parametrize("burn_in_s", [0.0, 5.0])
def test_the_agent_takes_what_it_is_told(node: ScratchNode, role: str, burn_in_s: float) -> None:
    told = agent.configuration(node.has(role=role, health=WATCHED._replace(burn_in_s=burn_in_s, acts=True)).context)
    path = node.write("etc/agent.json", json.dumps(told))
    assert load(file=path, assignments=()).node_instance_id == "i-1"


def test_the_agent_serves_its_numbers_where_the_environment_says_and_nowhere_else(node: ScratchNode) -> None:
    node.step("agent")
    assert "metrics.port" not in settings(node)
    node.has(health=WATCHED._replace(metrics_port=9464)).step("agent")
    assert (settings(node)["metrics.port"], settings(node)["metrics.address"]) == (9464, "0.0.0.0")


def test_the_agent_sends_its_numbers_where_the_deployment_says_and_nowhere_else(node: ScratchNode) -> None:
    node.step("agent")
    assert "metrics.remote_write_url" not in settings(node)
    url = "https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-1/api/v1/remote_write"
    node.has(remote_write_url=url).step("agent")
    assert settings(node)["metrics.remote_write_url"] == url
    assert load(file=node.root / "etc/holdfast/agent.json", assignments=()).metrics_remote_write_url == url


@pytest.mark.parametrize("told", ["[]", "{}", '{"remote_write_url": 5}', '{"remote_write_url": "aps"}'])
def test_where_numbers_go_is_told_or_refused(told: str, tmp_path: Path) -> None:
    assert remote_write_url(tmp_path) == ""
    (tmp_path / "metrics.json").write_text('{"remote_write_url": "https://a/b"}')
    assert remote_write_url(tmp_path) == "https://a/b"
    (tmp_path / "metrics.json").write_text(told)
    with pytest.raises(LifecycleError, match=r"metrics\.json lacks or misspells remote_write_url"):
        remote_write_url(tmp_path)


def test_another_bundle_takes_the_place_of_the_whole_agent(node: ScratchNode) -> None:
    node.step("agent")
    old = node.write("opt/holdfast/agent/holdfast_agent/detectors_of_old.py", "")
    node.forget()
    assert node.step("agent").outcome == "done"
    assert not old.exists()
    ours = [line for line in node.calls("systemctl") if not line.startswith("systemctl is-active")]
    assert ours == ["systemctl stop holdfast-agent", "systemctl enable --now holdfast-agent"]


def test_an_agent_that_does_not_start_is_said_and_fails_nothing(node: ScratchNode) -> None:
    node.breaks("holdfast-agent")
    result = node.step("agent")
    assert result.succeeded
    assert result.remark.startswith("this node is not monitored: holdfast-agent does not run")


def test_where_pods_run_the_agent_the_unit_ships_their_events_and_watches_nothing(node: ScratchNode) -> None:
    result = node.has(role="Kubernetes", health=WATCHED._replace(unit=False)).step("agent")
    assert result.remark == "a pod watches this node; its events are shipped"
    assert not (node.root / "etc/systemd/system/holdfast-agent.service").exists()
    assert node.running() == {"holdfast-events"}
    assert "holdfast-agent ship --config" in node.read("etc/systemd/system/holdfast-events.service")
    assert (node.root / agent.PROGRAM.lstrip("/")).exists()


def test_events_of_pods_that_nobody_ships_are_said_and_fail_nothing(node: ScratchNode) -> None:
    node.breaks("holdfast-events")
    result = node.has(role="Kubernetes", health=WATCHED._replace(unit=False)).step("agent")
    assert result.succeeded
    assert "its events are not shipped: read 'journalctl -u holdfast-events'" in result.remark


def test_nothing_is_installed_where_nothing_is_asked_for(node: ScratchNode) -> None:
    node.has(health=Health())
    assert node.step("agent").remark == "no health agent: not configured"
    assert node.step("burn_in").remark == "no burn-in: not configured"
    assert not (node.root / "opt/holdfast/agent").exists()


def test_checks_of_the_owner_are_executable_on_the_node(node: ScratchNode, tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/scratch.sh").write_text("#!/bin/sh\nexit 0\n")
    node.has(health=WATCHED._replace(checks=("scratch.sh",))).step("agent")
    assert (node.root / "opt/holdfast/agent/checks/scratch.sh").stat().st_mode & 0o7777 == 0o755
    assert settings(node)["checks.directory"] == "/opt/holdfast/agent/checks"


def test_a_node_that_passes_joins_with_its_figures_beside_those_of_its_peers(node: ScratchNode) -> None:
    checking(node, does=PASSES)
    assert node.step("burn_in").remark == "passed 5 s"
    figures = node.root / "fsx/.holdfast/burn-in/local/figures/ml.p5.48xlarge/i-1.json"
    assert json.loads(figures.read_text()) == {"figures": {"memory_gib_per_s": 11.5}}
    assert f"check --deep --seconds 5 --json --config {node.root}/etc/holdfast/agent.json --peers " in node.read(
        "checked"
    )
    parsed = parse_events(node.read("events.jsonl").splitlines())
    (event,) = [event for event in parsed.events if event.kind == kinds.NODE_QUALIFIED]
    assert event.node == "i-1"
    assert event.duration_s is not None
    assert node.step("burn_in").outcome == "satisfied"
    assert node.read("checked").count("\n") == 1


def test_a_node_that_fails_does_not_join_and_its_figures_are_told(node: ScratchNode) -> None:
    checking(node, does=FAILS)
    results = node.lifecycle("burn_in", "slurm_daemon")
    assert results["burn_in"].seen == "compute gave another digest (memory_gib_per_s 0.2)"
    assert results["slurm_daemon"].outcome == "not started"


def test_hardware_that_failed_twice_never_joins_under_whatever_instance_id(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.write("proc/driver/nvidia/gpus/0000:53:00.0/information", "Model: H100\nGPU UUID:\t GPU-aaaa-1111\n")
    checking(node, does=FAILS)
    assert joins(node, monkeypatch) is not None
    checking(node.has(instance_id="i-2"), does=FAILS)
    assert joins(node, monkeypatch) is not None
    checking(node.has(instance_id="i-3"), does=PASSES)
    refused = joins(node, monkeypatch)
    assert refused is not None
    assert "failed 2 times (i-1: compute gave another digest" in refused.seen
    assert node.read("checked").count("\n") == 2

    node.write("proc/driver/nvidia/gpus/0000:53:00.0/information", "Model: H100\nGPU UUID:\t GPU-bbbb-2222\n")
    assert joins(node, monkeypatch) is None


def test_one_failure_is_forgiven_when_the_second_trial_passes(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking(node, does=FAILS)
    assert joins(node, monkeypatch) is not None
    checking(node, does=PASSES)
    assert joins(node, monkeypatch) is None


@pytest.mark.parametrize("does", ["echo 'no such command' >&2\nexit 2\n", "exit 1\n", "kill -9 $$\n", "exit 0\n"])
def test_a_check_that_cannot_be_done_accuses_nobody(node: ScratchNode, does: str) -> None:
    checking(node, does=does)
    result = node.step("burn_in")
    assert result.succeeded
    assert result.remark.startswith("burn-in skipped, the check could not run")
    assert burn_in.failures(node.context) == []
    assert not list(burn_in.peers(node.context).iterdir())


def test_a_check_that_hangs_is_a_node_that_failed(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burn_in, "_SLACK_S", 0.1)
    checking(node.has(health=WATCHED._replace(burn_in_s=0.1)), does="exec sleep 60\n")
    assert "did not end within" in node.step("burn_in").seen


def test_a_check_that_waits_for_its_turn_on_a_shared_machine_does_not_hang(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burn_in, "_SLACK_S", 0.1)
    monkeypatch.setattr(burn_in, "_TURN_S", 30.0)
    node.write("opt/holdfast/turns/joining/0", "")
    checking(node.has(health=WATCHED._replace(burn_in_s=0.1)), does=f"sleep 0.5\n{PASSES}")
    assert node.step("burn_in").succeeded
    assert "--peers" not in node.read("checked"), "a busy machine makes a slow node of a sound one"


def test_a_history_that_is_damaged_accuses_nobody(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    checking(node, does=PASSES)
    node.write("fsx/.holdfast/burn-in/local/failed/i-1.json", '[{"instance_id": "i-1"')
    assert joins(node, monkeypatch) is None


def test_a_folder_of_somebody_else_is_no_place_for_verdicts(node: ScratchNode) -> None:
    checking(node, does=PASSES)
    (node.root / "fsx/.holdfast").symlink_to(node.root)
    assert "no directory" in node.step("burn_in").seen


def test_without_a_shared_file_system_the_node_itself_remembers(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking(node.has(fsx_mount_path=""), does=FAILS)
    assert joins(node, monkeypatch) is not None
    assert len(burn_in.failures(node.context)) == 1
    assert (node.root / "var/lib/holdfast-burn-in/failed/i-1.json").exists()


def test_the_settings_come_from_the_bundle_and_a_mode_that_is_none_is_refused(tmp_path: Path) -> None:
    config = {
        "cluster_name": "local",
        "users": [],
        "fsx_mount_path": "/fsx",
        "events_path": "/e",
        "health": {"enabled": True, "mode": "act", "breaker_share": 1, "checks": ["a.sh"], "burn_in_seconds": 5},
    }
    groups = [{"Name": "controller", "Instances": [{"InstanceId": "i-0", "CustomerIpAddress": "10.1.0.4"}]}]
    path, resources = tmp_path / "config.json", tmp_path / "resource_config.json"
    path.write_text(json.dumps(config))
    resources.write_text(json.dumps({"InstanceGroups": groups}))
    context = load_context(config=path, resource_config=resources, addresses={"10.1.0.4"})
    assert context.health == Health(enabled=True, acts=True, breaker_share=1.0, checks=("a.sh",), burn_in_s=5.0)
    path.write_text(json.dumps({**config, "health": {**config["health"], "metrics_port": 9464}}))  # type: ignore[dict-item]
    assert load_context(config=path, resource_config=resources, addresses={"10.1.0.4"}).health.metrics_port == 9464
    path.write_text(json.dumps({**config, "health": {**config["health"], "mode": "off"}}))  # type: ignore[dict-item]
    with pytest.raises(LifecycleError, match=r"health.mode, got 'off', allowed: observe, act"):
        load_context(config=path, resource_config=resources, addresses={"10.1.0.4"})
