"""Services of a node that are confined, watched and started at a boot, with real processes; all need root."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from systemctl_machine import ENTRY, Machine, alive, systemctl_machine
from waiting import eventually

pytestmark = pytest.mark.root

FEW = ("KILL", "SYS_PTRACE", "SYS_NICE")
STATUS = "/bin/sh -c 'grep -E \"^(Cap|NoNew|Uid)\" /proc/self/status'"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.owner() == "root" and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    # A socket's path has 107 bytes at most, and a run's own folders can be longer than that.
    with tempfile.TemporaryDirectory(prefix="units-") as folder:
        Path(folder).chmod(0o755)
        with systemctl_machine(Path(folder)) as made:
            yield made


def said(machine: Machine, name: str = "a") -> str:
    return machine.run("-u", name, program="journalctl").stdout


def status(machine: Machine) -> dict[str, int]:
    """Capabilities and the like, as a process of the service found them."""
    lines = (line.split(":") for line in said(machine).splitlines() if ":\t" in line)
    return {key: int(value.split()[0], 10 if key in ("Uid", "NoNewPrivs") else 16) for key, value in lines}


def bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


def test_a_service_of_root_with_few_capabilities_has_these_and_gets_no_others(machine: Machine):
    machine.service(
        "a", "Type=oneshot", "NoNewPrivileges=yes",
        "CapabilityBoundingSet=CAP_KILL CAP_SYS_PTRACE", "CapabilityBoundingSet=CAP_SYS_NICE", f"ExecStart={STATUS}",
    )  # fmt: skip
    machine.ok("start", "a")
    found = status(machine)
    wanted = bits(5, 19, 23)
    assert (found["Uid"], found["NoNewPrivs"]) == (0, 1)
    assert (found["CapBnd"], found["CapPrm"], found["CapEff"]) == (wanted, wanted, wanted)


def test_a_service_with_a_user_of_its_own_keeps_its_ambient_capabilities_over_exec(machine: Machine):
    machine.service(
        "a", "Type=oneshot", "User=nobody", "AmbientCapabilities=CAP_NET_ADMIN CAP_KILL",
        "CapabilityBoundingSet=CAP_NET_ADMIN CAP_KILL", f"ExecStart={STATUS}",
    )  # fmt: skip
    machine.ok("start", "a")
    found = status(machine)
    assert found["Uid"] != 0
    assert {found[key] for key in ("CapAmb", "CapEff", "CapPrm", "CapInh", "CapBnd")} == {bits(5, 12)}


def test_an_empty_bounding_set_leaves_root_without_any_capability(machine: Machine):
    machine.service("a", "Type=oneshot", "CapabilityBoundingSet=", f"ExecStart={STATUS}")
    machine.ok("start", "a")
    assert status(machine)["CapEff"] == status(machine)["CapBnd"] == 0


def test_a_capability_that_is_not_to_be_had_is_named_and_the_service_starts_without_it(machine: Machine):
    machine.service(
        "a", "Type=oneshot", "User=nobody", "AmbientCapabilities=CAP_KILL CAP_SYSLOG",
        "CapabilityBoundingSet=~CAP_SYSLOG", f"ExecStart={STATUS}",
    )  # fmt: skip
    machine.ok("start", "a")
    assert "a.service: AmbientCapabilities=CAP_SYSLOG: not available on a node" in said(machine)
    assert status(machine)["CapAmb"] == bits(5)


def test_a_strict_system_is_written_only_where_the_unit_says_so(machine: Machine):
    data, other = machine.root / "data", machine.root / "other"
    for folder in (data, other):
        folder.mkdir()
    machine.service(
        "a", "Type=oneshot", "ProtectSystem=strict", "ReadWritePaths=/data", "ReadWritePaths=-/missing",
        "StateDirectory=a", f"ExecStart=/bin/sh -c 'for i in {data} {other} {machine.root}/var/lib/a /etc; do "
        "touch $i/new 2>/dev/null && echo $i; done; true'",
    )  # fmt: skip
    machine.ok("start", "a")
    assert said(machine).split() == [str(data), f"{machine.root}/var/lib/a"]
    assert not (other / "new").exists()
    (other / "new").touch()  # the view is the service's own


def test_private_and_hidden_folders_are_not_those_of_the_node(machine: Machine):
    secret, shared = machine.root / "secret", machine.root / "tmp"
    for folder in (secret, shared):
        folder.mkdir()
        (folder / "here").write_text("the node's\n")
    machine.service(
        "a", "Type=oneshot", "PrivateTmp=yes", "InaccessiblePaths=/secret",
        f"ExecStart=/bin/sh -c 'cat {secret}/here {shared}/here; touch {shared}/own && echo own; true'",
    )  # fmt: skip
    machine.ok("start", "a")
    assert said(machine).splitlines()[-1] == "own"
    assert "the node's" not in said(machine)
    assert not (shared / "own").exists()


def test_a_folder_that_is_missing_ends_the_start_as_systemd_does(machine: Machine):
    machine.service("a", "Type=oneshot", "ReadOnlyPaths=/missing", "ExecStart=/bin/true")
    assert machine.run("start", "a").returncode == 1
    assert machine.show("a", "ExecMainStatus") == "226"


def test_what_the_node_keeps_beside_a_services_socket_is_neither_given_away_nor_removed(machine: Machine):
    stays = machine.root / "run/holdfast/lustre/data"
    stays.mkdir(parents=True)
    machine.service(
        "a", "User=nobody", "Group=daemon", "RuntimeDirectory=holdfast",
        f"ExecStart=/bin/sh -c 'touch {machine.root}/run/holdfast/agent.sock; mv {stays.parent} {stays.parent}2; "
        "exec sleep 1000'",
    )  # fmt: skip
    machine.ok("start", "a")
    eventually(lambda: (machine.root / "run/holdfast/agent.sock").exists(), "it cannot make its socket")
    machine.ok("stop", "a")
    assert stays.is_dir()
    assert (machine.root / "run/holdfast").owner() == "root"


def test_a_service_that_does_not_feed_its_watchdog_is_ended_and_started_again(machine: Machine):
    feed = machine.root / "feed.py"
    feed.write_text(
        "import os, socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "assert os.environ['WATCHDOG_PID'] == str(os.getpid())\n"
        "for _ in range(6):\n"
        "    s.sendto(b'WATCHDOG=1', os.environ['NOTIFY_SOCKET'])\n"
        "    time.sleep(int(os.environ['WATCHDOG_USEC']) / 4e6)\n"
        "open(sys.argv[1], 'w').close()\n"
        "time.sleep(1000)\n"
    )
    machine.service(
        "a", "Restart=on-failure", "RestartSec=50ms", "WatchdogSec=2s",
        f"ExecStart={sys.executable} {feed} {machine.root}/fed",
    )  # fmt: skip
    machine.ok("start", "a")
    first = int(machine.show("a", "MainPID"))
    eventually(lambda: (machine.root / "fed").exists(), "ended although it was fed")
    assert int(machine.show("a", "MainPID")) == first
    eventually(lambda: machine.show("a", "NRestarts") != "0" and not alive(first), "it was not ended")
    assert "Watchdog timeout (limit 2s)!" in said(machine)


def boot(machine: Machine, *but: str) -> "subprocess.CompletedProcess[str]":
    code = ENTRY + "sys.exit(systemctl.start_enabled(sys.argv[1:]))"
    environment = {**os.environ, "HOLDFAST_SYSTEMD_ROOT": str(machine.root)}
    command = [sys.executable, "-I", "-S", "-c", code, *but]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)


def test_a_boot_starts_what_is_enabled_in_order_and_what_fails_keeps_none_back(machine: Machine, tmp_path: Path):
    install = "\n[Install]\nWantedBy=multi-user.target\n"
    note = f"ExecStart=/bin/sh -c 'echo $0 >> {tmp_path}/order; exec sleep 1000'"
    machine.unit("b.service", f"[Unit]\nAfter=c.service\n[Service]\n{note} {install}".replace("$0", "b"))
    late = f"ExecStart=/bin/sh -c 'sleep 0.3; echo c >> {tmp_path}/order'{install}"
    machine.unit("c.service", f"[Service]\nType=oneshot\nRemainAfterExit=yes\n{late}")
    machine.unit("fails.service", f"[Unit]\nBefore=b.service\n[Service]\nType=oneshot\nExecStart=/bin/false{install}")
    machine.unit("other.service", f"[Service]\nExecStart=/bin/sleep 1000{install}")
    machine.unit("off.service", f"[Service]\nExecStart=/bin/sleep 1000{install}")
    machine.ok("enable", "b", "c", "fails", "other")
    done = boot(machine, "other.service")
    assert (done.returncode, "Job for fails.service failed" in done.stderr) == (1, True)
    eventually(lambda: (tmp_path / "order").read_text() == "c\nb\n", "not in this order")
    assert [machine.run("is-active", name).stdout.strip() for name in ("b", "c", "other", "off")] == [
        "active", "active", "inactive", "inactive",
    ]  # fmt: skip


def test_what_a_boot_has_started_is_started_again_when_it_is_killed(machine: Machine):
    service = "[Service]\nExecStart=/bin/sleep 1000\nRestart=always\nRestartSec=10ms\n"
    machine.unit("a.service", f"{service}[Install]\nWantedBy=multi-user.target\n")
    machine.ok("enable", "a")
    assert boot(machine).returncode == 0
    eventually(lambda: machine.show("a", "SubState") == "running", "not started")
    first = int(machine.show("a", "MainPID"))
    os.kill(first, signal.SIGKILL)
    eventually(
        lambda: machine.show("a", "NRestarts") == "1" and machine.show("a", "SubState") == "running", "not again"
    )
    assert not alive(first)
