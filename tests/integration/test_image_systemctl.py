"""The nodes' systemctl with real processes, below a root of its own."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from systemctl_machine import Machine, alive, systemctl_machine
from waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with systemctl_machine(tmp_path) as made:
        yield made


@pytest.mark.documented("HP-95")
def test_a_simple_service_starts_is_told_and_stops(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000")
    assert machine.run("is-active", "a").returncode == 3
    machine.ok("start", "a")
    pid = int(machine.show("a", "MainPID"))
    assert machine.ok("is-active", "a") == "active"
    assert f"Main PID: {pid} (sleep)" in machine.ok("status", "a.service")
    machine.ok("start", "a")
    assert int(machine.show("a", "MainPID")) == pid
    machine.ok("stop", "a")
    assert not alive(pid)
    stopped = machine.run("status", "a")
    assert (stopped.returncode, machine.show("a", "SubState")) == (3, "dead")
    assert machine.show("a", "Result") == "success"


def test_a_killed_service_is_started_again_if_its_unit_says_so(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000", "Restart=on-failure", "RestartSec=10ms")
    machine.ok("start", "a")
    first = int(machine.show("a", "MainPID"))
    os.kill(first, signal.SIGKILL)
    eventually(
        lambda: machine.show("a", "NRestarts") == "1" and machine.show("a", "SubState") == "running", "no restart"
    )
    assert int(machine.show("a", "MainPID")) not in (0, first)


def test_a_killed_service_without_restart_has_failed(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000")
    machine.ok("start", "a")
    os.kill(int(machine.show("a", "MainPID")), signal.SIGKILL)
    eventually(lambda: machine.show("a", "ActiveState") == "failed", "still active")
    assert machine.run("is-failed", "a").returncode == 0
    assert [machine.show("a", key) for key in ("Result", "ExecMainCode", "ExecMainStatus")] == ["signal", "2", "9"]
    machine.ok("reset-failed", "a")
    assert machine.show("a", "ActiveState") == "inactive"


def test_a_running_service_takes_other_settings_after_a_daemon_reload_and_not_before(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000")
    machine.ok("start", "a")
    machine.service("a", "ExecStart=/bin/sleep 2000", "Restart=always", "RestartSec=10ms")
    machine.ok("daemon-reload")
    os.kill(int(machine.show("a", "MainPID")), signal.SIGKILL)
    eventually(
        lambda: machine.show("a", "NRestarts") == "1" and machine.show("a", "SubState") == "running", "no restart"
    )
    assert b"2000" in Path(f"/proc/{machine.show('a', 'MainPID')}/cmdline").read_bytes()
    machine.service("a", "ExecStart=/bin/sleep 3000")
    os.kill(int(machine.show("a", "MainPID")), signal.SIGKILL)
    eventually(
        lambda: machine.show("a", "NRestarts") == "2" and machine.show("a", "SubState") == "running", "no restart"
    )
    machine.ok("daemon-reload")
    os.kill(int(machine.show("a", "MainPID")), signal.SIGKILL)
    eventually(lambda: machine.show("a", "ActiveState") == "failed", "still active")


def test_a_service_whose_file_is_gone_is_not_started_again_and_can_be_stopped(machine: Machine):
    for name in ("a", "b"):
        machine.service(name, "ExecStart=/bin/sleep 1000", "Restart=always", "RestartSec=10ms")
        machine.ok("start", name)
        (machine.root / f"etc/systemd/system/{name}.service").unlink()
    machine.ok("daemon-reload")
    os.kill(int(machine.show("a", "MainPID")), signal.SIGKILL)
    eventually(lambda: machine.show("a", "ActiveState") == "failed", "still active")
    pid = int(machine.show("b", "MainPID"))
    machine.ok("stop", "b")
    assert not alive(pid)


def test_a_service_that_keeps_failing_reaches_its_start_limit(machine: Machine):
    machine.unit(
        "a.service",
        "[Unit]\nStartLimitBurst=3\n[Service]\nExecStart=/bin/sh -c 'echo once; exit 7'\n"
        "Restart=always\nRestartSec=1ms\n",
    )
    machine.ok("start", "a")
    eventually(lambda: machine.show("a", "Result") == "start-limit-hit", "no end")
    assert machine.run("-u", "a", program="journalctl").stdout == "once\n" * 3
    assert machine.run("-xeu", "a", "-n1", "--no-pager", program="journalctl").stdout == "once\n"


def test_a_oneshot_reports_its_failure_and_its_success(machine: Machine):
    machine.service(
        "good", "Type=oneshot", "ExecStart=/bin/true", "RemainAfterExit=yes", "ExecStop=/bin/touch /dev/null"
    )
    machine.service("bad", "Type=oneshot", "ExecStart=/bin/sh -c 'exit 5'")
    machine.ok("start", "good")
    assert (machine.show("good", "ActiveState"), machine.show("good", "SubState")) == ("active", "exited")
    assert machine.show("good", "ExecMainStatus") == "0"
    failed = machine.run("start", "bad")
    assert failed.returncode == 1
    assert "Job for bad.service failed because the control process exited with error code." in failed.stderr
    assert machine.show("bad", "ExecMainStatus") == "5"
    machine.ok("stop", "good")
    assert machine.show("good", "ActiveState") == "inactive"


def test_a_failing_pre_command_keeps_the_service_from_starting_unless_marked(machine: Machine):
    machine.service("a", "ExecStartPre=/bin/false", "ExecStart=/bin/sleep 1000")
    machine.service("b", "ExecStartPre=-/bin/false", "ExecStart=/bin/sleep 1000")
    assert machine.run("start", "a").returncode == 1
    machine.ok("start", "b")
    assert machine.ok("is-active", "b") == "active"


def test_a_forking_service_is_followed_by_its_pid_file(machine: Machine, tmp_path: Path):
    pid_file = tmp_path / "run/a.pid"
    script = tmp_path / "daemon"
    script.write_text(f"#!/bin/sh\nsetsid sh -c 'echo $$ > {pid_file}; exec sleep 1000' &\n")
    script.chmod(0o755)
    machine.service("a", "Type=forking", f"ExecStart={script}", "PIDFile=/run/a.pid", "Restart=on-abnormal")
    machine.ok("start", "a")
    pid = int(machine.show("a", "MainPID"))
    assert pid == int(pid_file.read_text())
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: machine.show("a", "NRestarts") == "1" and machine.show("a", "SubState") == "running", "no restart"
    )
    machine.ok("stop", "a")


NOTIFY = "import os, socket, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "


def test_a_notify_service_is_active_once_it_says_so(machine: Machine, tmp_path: Path):
    program = tmp_path / "daemon.py"
    # By a descriptor of its folder: the path of a socket has at most 107 characters, and this one is deep.
    folder, name = "os.path.dirname(os.environ['NOTIFY_SOCKET'])", "os.path.basename(os.environ['NOTIFY_SOCKET'])"
    say = f"d = os.open({folder}, os.O_PATH); s.sendto(b'READY=1\\nSTATUS=up', f'/proc/self/fd/{{d}}/' + {name}); "
    program.write_text(NOTIFY + f"time.sleep(0.2); open({str(tmp_path / 'said')!r}, 'w'); {say} time.sleep(1000)")
    machine.service("a", "Type=notify", f"ExecStart={sys.executable} -S {program}")
    machine.ok("start", "a")
    assert (tmp_path / "said").exists()
    assert machine.show("a", "StatusText") == "up"


def test_a_notify_service_that_stays_silent_fails_at_its_time_limit(machine: Machine):
    machine.service("a", "Type=notify", "ExecStart=/bin/sleep 1000", "TimeoutStartSec=100ms")
    failed = machine.run("start", "a")
    assert (failed.returncode, "because a timeout was exceeded" in failed.stderr) == (1, True)
    assert machine.show("a", "Result") == "timeout"


def test_a_program_that_is_not_there_fails_an_exec_service(machine: Machine):
    machine.service("a", "Type=exec", "ExecStart=/no/such/program")
    machine.run("start", "a")
    eventually(lambda: machine.show("a", "ActiveState") == "failed", "still active")
    assert machine.show("a", "ExecMainStatus") == "203"
    assert "No such file" in machine.run("-u", "a", program="journalctl").stdout


def test_stopping_ends_every_process_of_a_service_and_a_deaf_one_by_force(machine: Machine, tmp_path: Path):
    script = tmp_path / "deaf"
    script.write_text(
        f"#!/bin/sh\ntrap '' TERM\n(setsid sleep 1000 & echo $! > {tmp_path}/child)\nwhile :; do sleep 1; done\n"
    )
    script.chmod(0o755)
    machine.service("a", f"ExecStart={script}", "TimeoutStopSec=100ms")
    machine.ok("start", "a")
    eventually((tmp_path / "child").exists, "no child")
    eventually(lambda: (tmp_path / "child").read_text().strip() != "", "no pid")
    main, child = int(machine.show("a", "MainPID")), int((tmp_path / "child").read_text())
    machine.ok("stop", "a")
    assert not alive(main)
    assert not alive(child)
    assert machine.show("a", "Result") == "timeout"


def test_kill_mode_process_leaves_the_others(machine: Machine, tmp_path: Path):
    script = tmp_path / "parent"
    script.write_text(f"#!/bin/sh\nsetsid sleep 1000 & echo $! > {tmp_path}/child\nexec sleep 1000\n")
    script.chmod(0o755)
    machine.service("a", f"ExecStart={script}", "KillMode=process")
    machine.ok("start", "a")
    eventually(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip() != "", "no child")
    child = int((tmp_path / "child").read_text())
    machine.ok("stop", "a")
    assert alive(child)
    os.kill(child, signal.SIGKILL)


def test_requirements_start_first_and_stop_with_what_they_serve(machine: Machine, tmp_path: Path):
    log = tmp_path / "log"
    machine.unit(
        "a.service",
        "[Unit]\nRequires=b.service\nAfter=b.service\n"
        f"[Service]\nExecStartPre=/bin/sh -c 'echo a >> {log}'\nExecStart=/bin/sleep 1000\n",
    )
    machine.service("b", f"ExecStartPre=/bin/sh -c 'echo b >> {log}'", "ExecStart=/bin/sleep 1000")
    machine.ok("start", "a")
    assert log.read_text() == "b\na\n"
    machine.ok("stop", "b")
    assert machine.show("a", "ActiveState") == "inactive"


def test_a_requirement_that_fails_fails_the_start(machine: Machine):
    machine.unit("a.service", "[Unit]\nRequires=b.service\nAfter=b.service\n[Service]\nExecStart=/bin/sleep 1000\n")
    machine.service("b", "Type=oneshot", "ExecStart=/bin/false")
    failed = machine.run("start", "a")
    assert (failed.returncode, "A dependency job for a.service failed." in failed.stderr) == (1, True)


def test_reload_runs_its_commands_with_the_main_pid(machine: Machine, tmp_path: Path):
    machine.service("a", "ExecStart=/bin/sleep 1000", f"ExecReload=/bin/sh -c 'echo $MAINPID > {tmp_path}/told'")
    machine.service("b", "ExecStart=/bin/sleep 1000")
    assert "not active, cannot reload" in machine.run("reload", "a").stderr
    machine.ok("start", "a", "b")
    machine.ok("reload", "a")
    assert (tmp_path / "told").read_text().strip() == machine.show("a", "MainPID")
    refused = machine.run("reload", "b")
    assert (refused.returncode, "not applicable" in refused.stderr) == (3, True)


@pytest.mark.documented("HP-95")
def test_enable_now_starts_and_disable_now_stops(machine: Machine):
    machine.unit("a.service", "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n")
    assert "Created symlink" in machine.run("enable", "--now", "a").stderr
    assert machine.ok("is-active", "a") == "active"
    assert machine.ok("is-enabled", "a") == "enabled"
    machine.ok("disable", "--now", "a")
    assert machine.run("is-active", "--quiet", "a").stdout == ""
    assert machine.run("is-enabled", "a").returncode == 1


def test_starting_a_target_starts_what_it_wants(machine: Machine):
    machine.unit("a.service", "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n")
    machine.ok("enable", "a")
    machine.ok("start", "multi-user.target")
    assert machine.ok("is-active", "a") == "active"


def test_unknown_and_masked_units_have_systemds_exit_statuses(machine: Machine):
    assert machine.run("start", "no").returncode == 5
    assert machine.run("start", "no").stderr == "Failed to start no.service: Unit no.service not found.\n"
    assert machine.run("stop", "no").returncode == 5
    assert machine.run("status", "no").returncode == 4
    assert machine.run("is-active", "no").returncode == 3
    assert machine.run("enable", "no").returncode == 1
    assert machine.ok("show", "-p", "LoadState", "no") == "LoadState=not-found"
    machine.ok("mask", "m.service")
    assert "is masked" in machine.run("start", "m").stderr
    machine.service("bad", "Type=nonsense", "ExecStart=/bin/true")
    assert machine.run("start", "bad").returncode == 6
    assert "unrecognized option" in machine.run("start", "--nonsense", "a").stderr
    assert machine.run("nonsense").stderr == "Unknown command verb nonsense.\n"


def test_the_supervisor_shows_no_arguments_of_the_systemctl_that_it_was(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000")
    machine.ok("start", "a")
    parent = int(Path(f"/proc/{machine.show('a', 'MainPID')}/stat").read_text().rpartition(")")[2].split()[1])
    assert Path(f"/proc/{parent}/comm").read_text().startswith("unit:a.service")
    assert Path(f"/proc/{parent}/cmdline").read_bytes().strip(b"\0") == b""


def test_a_service_outlives_its_killed_supervisor_and_can_still_be_stopped(machine: Machine):
    machine.service("a", "ExecStart=/bin/sleep 1000")
    machine.ok("start", "a")
    pid = int(machine.show("a", "MainPID"))
    os.kill(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    assert alive(pid)
    assert machine.ok("is-active", "a") == "active"
    machine.ok("stop", "a")
    eventually(lambda: not alive(pid), "still there")


def test_user_folders_limits_and_environment_reach_the_process(machine: Machine, tmp_path: Path):
    if os.geteuid() != 0:
        pytest.skip("another user needs root")
    (tmp_path / "etc/default").mkdir(parents=True)
    (tmp_path / "etc/default/a").write_text("FROM_FILE='x y'\n")
    machine.service(
        "a", "Type=oneshot", "User=nobody", "RuntimeDirectory=a", "LimitNOFILE=512", "EnvironmentFile=/etc/default/a",
        "EnvironmentFile=-/etc/default/none", "RuntimeDirectoryPreserve=yes",
        "ExecStart=/bin/sh -c 'id -un; ulimit -n; echo \"$FROM_FILE\"; echo $RUNTIME_DIRECTORY'",
    )  # fmt: skip
    machine.ok("start", "a")
    assert machine.run("-u", "a", program="journalctl").stdout == "nobody\n512\nx y\n/run/a\n"
    assert (tmp_path / "run/a").owner() == "nobody"
