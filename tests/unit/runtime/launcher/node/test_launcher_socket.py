"""The agent's end of the node socket: a launcher speaks of its own processes only, and nobody holds the agent up."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_agent.launchers import MOST_OF_A_USER, JobReport, LauncherSocket, Peer, handed_over, independent
from holdfast_common import kinds
from holdfast_common import node_socket as wire

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sock"


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def agent(path: Path, clock: list[float]) -> Iterator[LauncherSocket]:
    listening = LauncherSocket(path=path, clock=lambda: clock[0])
    yield listening
    listening.close()


@pytest.fixture
def line(path: Path, agent: LauncherSocket) -> Iterator[socket.socket]:
    with connected(path) as made:
        yield made


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(SLEEP) as process:
        yield process.pid
        process.kill()


def connected(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(5)
    made.connect(str(path))
    return made


def own_job() -> tuple[str, str]:
    """What this process is of, should the tests themselves run under Slurm."""
    task = os.environ.get("SLURM_JOB_ID", "")
    return os.environ.get("SLURM_ARRAY_JOB_ID") or task or os.environ.get("HOLDFAST_JOB", ""), task


def report(*pids: int, step: int = 5, **other: object) -> bytes:
    job, task = own_job()
    ranks = tuple(
        wire.RankReport(rank=number, pid=pid, step=step, phase="vote", phase_s=0.1) for number, pid in enumerate(pids)
    )
    values = {
        "job": job,
        "task": task,
        "run": "r",
        "node": 1,
        "generation": 2,
        "step": step,
        "spares": 1,
        "ranks": ranks,
    }
    return wire.to_line(wire.LauncherReport(**{**values, **other}))  # type: ignore[arg-type]


def heard(agent: LauncherSocket, line: socket.socket, said: bytes) -> tuple[JobReport, ...]:
    agent.poll()
    line.sendall(said)
    agent.poll()
    return agent.jobs()


def is_closed(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_launcher_is_heard_with_its_processes_and_who_it_is_by_the_kernel(
    agent: LauncherSocket, line: socket.socket, child: int
) -> None:
    (job,) = heard(agent, line, report(child))

    assert (job.pid, job.uid, job.run, job.step, job.received_s) == (os.getpid(), os.getuid(), "r", 5, 100.0)
    assert [rank.pid for rank in job.ranks] == [child]
    assert job.can_hand_over


def test_a_process_that_has_just_ended_is_no_lie(agent: LauncherSocket, line: socket.socket, child: int) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass

    (job,) = heard(agent, line, report(child, ended.pid))

    assert [rank.pid for rank in job.ranks] == [child]


def test_a_launcher_that_speaks_of_a_process_that_it_has_not_started_is_not_heard(
    agent: LauncherSocket, line: socket.socket
) -> None:
    assert heard(agent, line, report(os.getppid())) == ()
    assert agent.refused == {"lie": 1}
    assert "did not start" in agent.last_refusal or "of user" in agent.last_refusal
    assert is_closed(line)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start a process of another user")
def test_a_launcher_that_speaks_of_another_users_process_is_not_heard(
    agent: LauncherSocket, line: socket.socket
) -> None:
    with subprocess.Popen(["sleep", "60"], user=65534) as other:
        try:
            assert heard(agent, line, report(other.pid)) == ()
        finally:
            other.kill()

    assert f"process {other.pid} of user 65534" in agent.last_refusal


def test_without_the_question_to_the_kernel_a_launcher_could_accuse_anybody(
    agent: LauncherSocket, line: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The safeguard is what the tests above rest on."""
    monkeypatch.setattr(Peer, "own", lambda peer, pids: {pid: pid for pid in pids})

    (job,) = heard(agent, line, report(os.getppid()))

    assert [rank.pid for rank in job.ranks] == [os.getppid()]


@pytest.mark.parametrize("said", [{"job": "4711"}, {"task": "4711"}])
def test_a_launcher_that_calls_itself_another_job_than_the_kernel_or_slurm_does_is_not_heard(
    agent: LauncherSocket, path: Path, said: dict[str, str]
) -> None:
    code = "import socket,sys,time; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
    code += "s.sendall(bytes.fromhex(sys.argv[2])); time.sleep(60)"
    environment = {**os.environ, "SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "11"}
    text = report(**{"job": "11", "task": "12", **said}).hex()
    with subprocess.Popen([sys.executable, "-c", code, str(path), text], env=environment) as launcher:
        try:
            until(agent, lambda: bool(agent.refused))
        finally:
            launcher.kill()

    assert (agent.refused, agent.jobs()) == ({"lie": 1}, ())
    assert "4711" in agent.last_refusal


def test_a_launcher_cannot_become_another_job_later(agent: LauncherSocket, line: socket.socket) -> None:
    heard(agent, line, report())

    assert heard(agent, line, report(run="another")) == ()
    assert agent.refused == {"lie": 1}


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"x" * 200_000, report() * 150])
def test_who_speaks_another_language_or_too_much_is_hung_up_on(
    agent: LauncherSocket, line: socket.socket, said: bytes
) -> None:
    agent.poll()
    line.setblocking(False)
    left = said
    for _ in range(50):
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            left = left[line.send(left) :] if left else b""
        agent.poll()

    assert agent.refused == {"other language": 1}
    assert agent.jobs() == ()


def test_who_says_nothing_is_hung_up_on_and_who_goes_is_forgotten(
    agent: LauncherSocket, path: Path, line: socket.socket, clock: list[float]
) -> None:
    heard(agent, line, report())
    with connected(path) as silent:
        agent.poll()
        clock[0] += 6
        agent.poll()
        assert is_closed(silent)
    assert len(agent.jobs()) == 1

    line.close()
    agent.poll()

    assert agent.jobs() == ()


def test_one_user_has_so_many_connections_and_no_more(agent: LauncherSocket, path: Path) -> None:
    lines = [connected(path) for _ in range(MOST_OF_A_USER + 3)]
    agent.poll()
    agent.poll()

    assert agent.refused == {"too many": 3}
    for line in lines:
        line.close()


def test_a_command_comes_to_the_launcher_that_it_is_for_and_its_answers_come_back(
    agent: LauncherSocket, line: socket.socket, path: Path
) -> None:
    with connected(path) as other:
        (job,) = heard(agent, line, report())
        heard(agent, other, report(run="another"))

        assert agent.tell(job, wire.Command(id="a", command="hand-over", reason="Xid 79"))
        assert wire.from_line(line.recv(4096)) == wire.Command(id="a", command="hand-over", reason="Xid 79")
        done = wire.Answer(id="a", command="hand-over", outcome="done", ranks=(1,), step=9, seconds=1.5)
        heard(agent, line, wire.to_line(done))

    ((said_by, answer),) = agent.answers()
    assert (said_by.run, answer) == ("r", done)
    assert agent.answers() == ()
    told = handed_over(said_by, answer)
    assert (told.kind, told.duration_s) == (kinds.HANDED_OVER, 1.5)
    assert (told.detail["rank"], told.detail["step"], told.detail["steps_lost"]) == ("1", 9, 0)


def test_an_answer_to_what_nobody_asked_is_a_lie(agent: LauncherSocket, line: socket.socket) -> None:
    heard(agent, line, report())

    assert heard(agent, line, wire.to_line(wire.Answer(id="a", command="hand-over", outcome="done"))) == ()
    assert agent.refused == {"lie": 1}
    assert agent.answers() == ()


def test_nobody_who_reads_nothing_holds_the_agent_up(agent: LauncherSocket, line: socket.socket) -> None:
    (job,) = heard(agent, line, report())
    began = time.monotonic()

    told = [agent.tell(job, wire.Command(id=str(number), command="dump", reason="x" * 500)) for number in range(100)]

    assert time.monotonic() - began < 1.0
    assert not all(told)
    assert agent.refused == {"deaf": 1}


def test_a_second_agent_of_a_node_is_refused_and_what_a_dead_one_left_is_not_in_the_way(
    agent: LauncherSocket, path: Path
) -> None:
    with pytest.raises(OSError, match="another agent listens"):
        LauncherSocket(path=path)

    agent.close()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    second = LauncherSocket(path=path)
    second.close()
    assert not path.exists()


def test_jobs_of_one_user_are_one_voice() -> None:
    job = JobReport("a", "", "r", 0, 1, 1, 0, (), connection=1, uid=1000, pid=5, received_s=0.0)
    other = replace(job, connection=2, pid=6, job="b", run="s")

    assert independent((job, other)) == 1
    assert independent((job, replace(job, connection=3, uid=1001, pid=7, job="c", run="t"))) == 2


def until(agent: LauncherSocket, happened: object, *, within_s: float = 20.0) -> None:
    end = time.monotonic() + within_s
    while not happened() and time.monotonic() < end:  # type: ignore[operator]
        agent.poll()
        time.sleep(0.01)
