"""Sockets of launchers are their user's: another user neither reaches them nor is heard in their place."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from killing import QUICK
from plain_launchers import PLAIN
from ports import free_ports
from waiting import eventually

from holdfast.cli.deployed import ask_for_size
from holdfast.cli.slurm import JobRecord
from holdfast.cli.terminal import CommandError
from holdfast_runtime.launcher.asking import ask_socket, folders

PYTHON = "/usr/bin/python3"
"""Of the machine: that of the tests may be one that only its owner can run."""
REPOSITORY = Path(__file__).parents[2]
PLACES = [str(REPOSITORY / "containers" / part) for part in ("training", "common")]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason=f"there is no {PYTHON} that other users can run"),
    pytest.mark.skipif(
        any(not folder.stat().st_mode & 0o001 for folder in (REPOSITORY, *REPOSITORY.parents)),
        reason="other users cannot read this checkout",
    ),
]
PYTHONPATH = os.pathsep.join(PLACES)

USER, OTHER = 48_201, 48_202
"""Users of nobody on this machine; their folders in /tmp are made and removed here."""
PLACE = Path(f"/tmp/holdfast-{USER}")


def as_user(uid: int) -> Callable[[], None]:
    def become() -> None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    return become


def run_as(uid: int, *words: str, timeout_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": PYTHONPATH}
    return subprocess.run(
        words, preexec_fn=as_user(uid), env=environment, cwd="/", capture_output=True, text=True, timeout=timeout_s,
        check=False,
    )  # fmt: skip


def status(uid: int, *words: str) -> subprocess.CompletedProcess[str]:
    return run_as(uid, PYTHON, "-m", "holdfast_runtime.launcher", "status", *words)


@pytest.fixture
def place() -> Iterator[Path]:
    shutil.rmtree(PLACE, ignore_errors=True)
    yield PLACE
    if PLACE.is_symlink() or PLACE.is_file():
        PLACE.unlink()
    shutil.rmtree(PLACE, ignore_errors=True)


@pytest.fixture
def launch(place: Path) -> Iterator[Callable[..., Any]]:
    """A launcher of USER with one rank that waits."""
    folder = Path(f"/tmp/holdfast-test-{os.getpid()}")
    folder.mkdir()
    os.chown(folder, USER, USER)
    script = folder / "plain.py"
    script.write_text(PLAIN)
    started: list[subprocess.Popen[str]] = []

    def of(*options: str) -> Any:
        command = [PYTHON, "-m", "holdfast_runtime.launcher", "--preload", "json", "--deadlines", QUICK]
        launcher = subprocess.Popen(
            [*command, "--rdzv-id", "7", *options, str(script), str(folder), "wait"],
            preexec_fn=as_user(USER), env={"PATH": os.environ["PATH"], "PYTHONPATH": PYTHONPATH}, cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        started.append(launcher)
        eventually((folder / "started").exists, within_s=60)
        return SimpleNamespace(process=launcher, folder=folder)

    yield of
    for one in started:
        one.terminate()
        with suppress(subprocess.TimeoutExpired):
            one.communicate(timeout=20)
        one.kill()
        one.communicate()
    shutil.rmtree(folder)


def test_a_launcher_answers_its_user_and_root_and_nobody_else(launch: Callable[..., Any], place: Path) -> None:
    launch()
    path = place / "7-0.sock"
    eventually(path.exists)

    assert (place.stat().st_uid, place.stat().st_mode & 0o777) == (USER, 0o700)
    own, other = status(USER, "--json"), status(OTHER, "--json")
    assert (own.returncode, json.loads(own.stdout)["world_size"]) == (0, 1)
    assert other.returncode == 1
    assert "no launcher of this user runs on this node" in other.stderr
    named = status(OTHER, "--socket", str(path))
    assert (named.returncode, "Permission denied" in named.stderr) == (1, True)
    assert json.loads(ask_socket(path, say="", uids=None, within_s=5.0))["world_size"] == 1  # this test is root


def test_a_socket_that_is_open_to_all_is_still_answered_to_its_user_and_root_alone(
    launch: Callable[..., Any],
) -> None:
    folder = Path(f"/tmp/holdfast-test-{os.getpid()}")
    folder.chmod(0o755)
    launch("--socket", str(folder / "open.sock"))
    eventually((folder / "open.sock").exists)
    (folder / "open.sock").chmod(0o666)

    assert status(OTHER, "--socket", str(folder / "open.sock")).returncode == 1
    assert status(USER, "--socket", str(folder / "open.sock")).returncode == 0


@pytest.mark.parametrize("trap", ["folder", "link", "file"])
def test_what_another_user_has_put_where_the_folder_goes_is_neither_used_nor_believed(
    launch: Callable[..., Any], place: Path, trap: str
) -> None:
    if trap == "folder":
        place.mkdir()
        place.chmod(0o777)
        os.chown(place, OTHER, OTHER)
    elif trap == "link":
        place.symlink_to("/tmp")
        os.lchown(place, OTHER, OTHER)
    else:
        place.touch()
    made = launch()

    assert folders({}, uid=USER) == ()
    assert status(USER).returncode == 1
    made.process.terminate()
    said = made.process.communicate(timeout=30)[0]
    assert f"got {place}" in said
    assert "mode 0700" in said


Asking = Callable[..., str]


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Asking:
    """What ``holdfast scale`` says after it has asked as root on a node, which is this machine."""

    def of(user: int, job: str = "7") -> str:
        values: dict[str, Any] = dict.fromkeys(JobRecord.__dataclass_fields__, "")
        record = JobRecord(**{**values, "job_id": job, "state": "RUNNING", "nodes": "n", "user": str(user)})

        def run(_context: object, *, node: str, argv: list[str]) -> Any:
            if argv[0] == "scontrol":
                return SimpleNamespace(returncode=0, stdout=f"{node}\n", stderr="")
            return run_as(0, PYTHON, *argv[1:])

        for name, value in {
            "known_jobs": lambda _context, *, jobs: [record],
            "controller_hostname": lambda _context: "head",
            "run": run,
        }.items():
            monkeypatch.setattr(f"holdfast.cli.deployed.sizes.{name}", value)
        context: Any = SimpleNamespace(orchestrator="slurm", session=SimpleNamespace(cloud="local"))
        with pytest.raises(CommandError) as refused:
            ask_for_size(context, job=job, nodes=3)
        return str(refused.value)

    return of


class Liar:
    """A socket in a folder of USER, on which a process of another user, or one that never ends, answers."""

    def __init__(self, path: Path, behaviour: Callable[[socket.socket], None], *, uid: int) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.chown(path.parent, USER, USER)
        self._pid = os.fork()
        if self._pid:
            eventually(path.exists)
            return
        try:
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(path))
            path.chmod(0o777)
            os.setresuid(-1, uid, -1)  # whoever calls listen(2) is whom the kernel names
            listening.listen(8)
            while True:
                asking, _ = listening.accept()
                with asking, suppress(OSError):
                    behaviour(asking)
        finally:
            os._exit(0)

    def close(self) -> None:
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)


def endless(asking: socket.socket) -> None:
    while True:
        asking.sendall(b" " * 65536)


def slow(asking: socket.socket) -> None:
    while True:
        asking.sendall(b" ")
        time.sleep(0.2)


@pytest.fixture
def liar(place: Path) -> Iterator[Callable[..., Liar]]:
    made: list[Liar] = []

    def of(behaviour: Callable[[socket.socket], None], *, uid: int = USER) -> Liar:
        made.append(Liar(place / "7-0.sock", behaviour, uid=uid))
        return made[-1]

    yield of
    for one in made:
        one.close()


def test_a_process_of_another_user_is_not_heard_wherever_it_listens(liar: Callable[..., Liar], scale: Asking) -> None:
    one = liar(lambda asking: asking.sendall(b'{"refused": "\\u001b]0;owned\\u0007"}'), uid=OTHER)

    with pytest.raises(PermissionError, match=f"a process of uid {OTHER} listens there"):
        ask_socket(one.path, say="", uids=(0, USER), within_s=5.0)
    assert "no launcher of job 7 answers" in scale(USER)


@pytest.mark.parametrize("behaviour", [endless, slow])
def test_an_answer_is_bounded_in_size_and_in_time(
    liar: Callable[..., Liar], behaviour: Callable[[socket.socket], None], scale: Asking
) -> None:
    one = liar(behaviour)
    began = time.monotonic()

    with pytest.raises((ValueError, TimeoutError)):
        ask_socket(one.path, say="", uids=(USER,), within_s=1.0)
    assert time.monotonic() - began < 3.0
    assert "no launcher of job 7 answers" in scale(USER)
    assert time.monotonic() - began < 12.0


def test_root_asks_the_launcher_of_the_jobs_user_for_another_size(
    launch: Callable[..., Any], place: Path, scale: Asking
) -> None:
    launch()
    eventually((place / "7-0.sock").exists)

    assert "no launcher" not in scale(USER), "it refuses: the job is not elastic"
    assert "no launcher of job 8 answers" in scale(USER, "8")
    assert "no launcher of job 7 answers" in scale(OTHER)


def test_callers_that_say_and_read_nothing_keep_no_other_from_an_answer(launch: Callable[..., Any]) -> None:
    (port,) = free_ports(1)
    launch("--metrics-port", str(port))
    silent = []
    for _ in range(200):
        with suppress(OSError):
            silent.append(socket.create_connection(("127.0.0.1", port), timeout=2))
    answers: list[bytes] = []

    def scrape() -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            answers.append(line.recv(65536))

    def answered() -> bool:
        asking = threading.Thread(target=scrape)
        asking.start()
        asking.join()
        return any(b"holdfast_generation" in answer for answer in answers)

    eventually(answered, within_s=15)
    for one in silent:
        one.close()
