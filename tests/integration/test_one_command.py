"""One home, one command, with real processes: `down` ends an `up`, and no strike leaves a home that nobody takes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.commands.deployment import down as down_module
from holdfast.localcloud import LocalCloud, ProcessError, processes
from holdfast.localcloud.home import claim
from holdfast.localcloud.processes import holder_of

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: up and down make and remove namespaces and mounts"),
]

WITHIN_S = 60.0
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
COMMAND = "from holdfast.cli import main; main()"
UP = """
import pathlib, signal, sys, time
from holdfast.cli import main
from holdfast.cli.commands.deployment import up
from holdfast.cli.terminal import step
from holdfast.localcloud import processes
reached = pathlib.Path(sys.argv.pop())
def deploy(definition, *, path, local):
    local.claim()
    with step("deploy the stack"):
        {what}
        reached.touch()
        time.sleep(600)
up.deploy = deploy
main()
"""
"""A `holdfast up` whose deployment takes long."""
DOWN = """
import pathlib, sys, time
from holdfast.cli import main
from holdfast.localcloud import LocalCloud
reached = pathlib.Path(sys.argv.pop())
def stop(self):
    reached.touch()
    time.sleep(600)
LocalCloud.stop = stop
main()
"""
"""A `holdfast down` whose processes take long to end."""

Start = Callable[..., "subprocess.Popen[str]"]


def eventually(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def python(program: str, *words: str, home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "HOLDFAST_HOME": str(home), "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(child: "subprocess.Popen[str]") -> int:
    child.communicate(timeout=WITHIN_S)
    return child.returncode


def holdfast(*words: str, home: Path) -> "subprocess.CompletedProcess[str]":
    child = python(COMMAND, *words, home=home)
    out, err = child.communicate(timeout=WITHIN_S)
    return subprocess.CompletedProcess(words, child.returncode, out, err)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def start(home: Path, tmp_path: Path) -> Iterator[Start]:
    """Start a command that has the home and stays in the middle of its work."""
    children: list[subprocess.Popen[str]] = []

    def started(program: str, *words: str) -> "subprocess.Popen[str]":
        reached = tmp_path / f"reached-{len(children)}"
        child = python(program, *words, str(reached), home=home)
        children.append(child)
        eventually(lambda: reached.exists() or child.poll() is not None)
        assert child.poll() is None, child.communicate()
        return child

    yield started
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def up(start: Start) -> Callable[..., "subprocess.Popen[str]"]:
    return lambda what="pass": start(UP.format(what=what), "up", "local")


@pytest.mark.parametrize(
    "words", [("up", "local"), pytest.param(("images", "remove", "x"), marks=pytest.mark.e2e)], ids=" ".join
)
def test_a_second_command_says_in_one_line_who_has_the_home(words: tuple[str, ...], up: Start, home: Path) -> None:
    first = up()

    second = holdfast(*words, home=home)

    assert second.returncode == 2
    assert second.stderr.startswith(f"holdfast: holdfast up (pid {first.pid}) is using {home} since ")
    assert second.stderr.endswith("; wait until it exits, or end it with: holdfast down\n")
    assert second.stderr.count("\n") == 1
    assert first.poll() is None


@pytest.mark.e2e
def test_readers_take_no_lock_and_say_what_goes_on(up: Start, home: Path) -> None:
    first = up()
    assert holdfast("images", "list", home=home).returncode == 0
    assert holdfast("status", home=home).stderr == (
        f"holdfast: nothing is up in {home} yet: holdfast up (pid {first.pid}) has it\n"
    )


@pytest.mark.e2e
def test_a_second_down_says_who_takes_the_home_down(start: Start, home: Path) -> None:
    claim(home)
    first = start(DOWN, "down")

    second = holdfast("down", home=home)

    assert second.returncode == 2
    assert second.stderr.startswith(f"holdfast: holdfast down (pid {first.pid}) is using {home} since ")
    assert second.stderr.endswith("; wait until it exits\n")
    assert first.poll() is None


@pytest.mark.e2e
def test_down_ends_an_up_that_runs_and_nothing_is_left(up: Start, home: Path) -> None:
    victim = up()

    done = holdfast("down", home=home)

    assert done.returncode == 0, done.stderr
    assert f"end holdfast up (pid {victim.pid})" in done.stdout
    assert victim.communicate(timeout=WITHIN_S)[1].endswith("holdfast: interrupted\n")
    assert victim.returncode == 130
    assert not home.exists()


STUBBORN = "[signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)]"


@pytest.mark.e2e
@pytest.mark.parametrize("stopped", [False, True], ids=["deaf", "stopped"])
def test_down_kills_an_up_that_does_not_end_and_takes_its_home_down(
    stopped: bool, up: Start, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = up("pass" if stopped else STUBBORN)
    if stopped:
        victim.send_signal(signal.SIGSTOP)
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setattr(down_module, "ENDS_WITHIN_S", 30.0 if stopped else 0.5)

    done = CliRunner().invoke(cli.app, ["down"])

    assert done.exit_code == 0, done.exception
    ended(victim)
    assert not home.exists()


@pytest.mark.e2e
def test_an_up_that_is_killed_leaves_no_child_to_the_next_command(up: Start, home: Path) -> None:
    child = f"processes.spawn(name='cdk', argv={SLEEP!r}, home=local.home, log=local.home / 'log/cdk.log')"
    victim = up(child)
    victim.kill()
    ended(victim)
    left = processes.find(name="cdk", home=home)
    assert left is not None

    with LocalCloud(home=home).held(verb="up") as found:
        assert not found.fresh
        assert not left.alive()

    with LocalCloud(home=home).held(verb="down"):
        LocalCloud(home=home).remove()
    assert not home.exists()


RECORDS = """
import os, pathlib, signal, sys
from holdfast.localcloud import processes
home = pathlib.Path(sys.argv[1])
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
processes.spawn(name="aws", argv=["touch", str(home / "ran")], home=home, log=home / "log")
"""
"""The starter of a process is killed before the record of that is in its place."""


def test_a_process_whose_starter_is_killed_before_it_is_recorded_never_runs(tmp_path: Path) -> None:
    starter = python(RECORDS, str(tmp_path), home=tmp_path)
    assert ended(starter) == -signal.SIGKILL
    eventually(lambda: not processes_that_name(str(tmp_path / "ran")))
    assert not (tmp_path / "ran").exists()


def processes_that_name(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in words and int(path.parent.name) != os.getpid():
            found.append(words)
    return found


@pytest.mark.e2e
def test_a_control_plane_that_a_killed_up_has_just_started_is_waited_for(tmp_path: Path) -> None:
    local = LocalCloud(home=tmp_path / "home")
    local.claim()
    ready = local.home / "run" / "hyperpod.ready"
    starts = f"import pathlib, time; time.sleep(0.5); pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    processes.start(name="hyperpod", argv=[sys.executable, "-c", starts], home=local.home, ready=lambda: True)
    try:
        assert not ready.exists()
        assert not local.start_hyperpod(region="us-west-2")
        assert ready.exists()
    finally:
        processes.stop(name="hyperpod", home=local.home)


@pytest.mark.e2e
def test_an_embedded_aws_that_a_killed_up_has_just_started_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalCloud(home=tmp_path / "home")
    local.claim()
    asked: list[float] = []

    def health(_: LocalCloud) -> dict[str, Any] | None:
        asked.append(time.monotonic())
        return {} if len(asked) > 3 else None

    monkeypatch.setattr(LocalCloud, "health", health)
    processes.start(name="aws", argv=SLEEP, home=local.home, ready=lambda: True)
    try:
        assert not local.start_aws()
        assert len(asked) == 4
    finally:
        processes.stop(name="aws", home=local.home)


@pytest.mark.e2e
def test_a_process_that_ends_before_it_is_ready_is_told_with_its_log(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('no such bucket'); import time; time.sleep(0.2)"]
    process = processes.start(name="aws", argv=argv, home=tmp_path, ready=lambda: True)

    with pytest.raises(ProcessError, match="aws ended while starting:\nno such bucket"):
        processes.wait_until_ready(process, name="aws", home=tmp_path, ready=lambda: False)


REMOVES = """
import os, signal
from holdfast.cli import main
from holdfast.localcloud.home import marking
remove_tree = marking.remove_tree
def remove(path):
    if path.name == {at!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    remove_tree(path)
marking.remove_tree = remove
main()
"""
"""A `holdfast down` that is killed when it comes to one of the folders."""


@pytest.mark.e2e
@pytest.mark.parametrize("at", ["auto-resume", "hyperpod", "sessions"])
def test_a_down_that_is_killed_is_finished_by_the_next_command(at: str, home: Path) -> None:
    local = LocalCloud(home=home)
    local.claim()
    for name in ("kubernetes", "sessions"):
        (home / name).mkdir()
    child = python(REMOVES.format(at=at), "down", home=home)
    assert ended(child) == -signal.SIGKILL
    assert local.is_claimed()
    assert holder_of(home) is None

    with local.held(verb="up") as found:
        assert found.fresh
        assert not (home / "kubernetes").exists()

    assert not home.exists()


@pytest.mark.e2e
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_home_that_a_struck_up_leaves_is_taken_down_and_taken_again(
    sign: signal.Signals, up: Start, home: Path
) -> None:
    victim = up()
    victim.send_signal(sign)
    ended(victim)
    assert home.exists() == (sign == signal.SIGKILL)

    up().kill()
    down = holdfast("down", home=home)

    assert down.returncode == 0, down.stderr
    assert not home.exists()
