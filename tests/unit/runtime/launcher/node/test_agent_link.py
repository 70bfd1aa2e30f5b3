"""The launcher's end of the node socket: nobody waits for an agent, and only the right ones are obeyed."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from holdfast_agent.launchers import LauncherSocket
from holdfast_common import node_socket
from holdfast_runtime.launcher.node import AgentLink

TASK = os.environ.get("SLURM_JOB_ID", "")
JOB = os.environ.get("SLURM_ARRAY_JOB_ID") or TASK or os.environ.get("HOLDFAST_JOB", "")


class Said(list[str]):
    """What a journal was told."""

    def say(self, text: str) -> None:
        self.append(text)


class Launcher:
    """Counts its reports, and answers each command at once."""

    def __init__(self, path: Path, **options: object) -> None:
        self.reports = 0
        self.commands: list[node_socket.Command] = []
        self.said = Said()
        self.link = AgentLink(
            path=path,
            report=self._report,
            command=self._command,
            journal=self.said,  # type: ignore[arg-type]
            **options,  # type: ignore[arg-type]
        )

    def _report(self) -> node_socket.LauncherReport:
        self.reports += 1
        return node_socket.LauncherReport(
            job=JOB, task=TASK, run="r", node=0, generation=1, step=self.reports, spares=0, ranks=()
        )

    def _command(self, command: node_socket.Command, answer: Callable[[node_socket.Answer], None]) -> None:
        self.commands.append(command)
        answer(node_socket.Answer(id=command.id, command=command.command, outcome="done", seconds=0.5))


@asynccontextmanager
async def running(launcher: Launcher) -> AsyncIterator[None]:
    task = asyncio.create_task(launcher.link.run())
    try:
        yield
    finally:
        await launcher.link.close()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(happened: Callable[[], object], *, agent: LauncherSocket | None = None) -> None:
    for _ in range(1000):
        if agent is not None:
            agent.poll()
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_runtime.launcher.node.agent_link.FIRST_RETRY_S", 0.05)
    monkeypatch.setattr("holdfast_runtime.launcher.node.agent_link.EVERY_S", 0.2)


def test_an_agent_hears_reports_and_its_commands_are_answered_also_by_one_that_is_started_anew(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "agent.sock"
        launcher = Launcher(path)
        async with running(launcher):
            for number in ("first", "second"):
                agent = LauncherSocket(path=path)
                await until(agent.jobs, agent=agent)
                agent.tell(agent.jobs()[0], node_socket.Command(id=number, command="dump", reason="why"))
                answers: list[object] = []
                await until(lambda found=answers, asked=agent: found.extend(asked.answers()) or found, agent=agent)
                assert [answer.id for _, answer in answers] == [number]  # type: ignore[misc]
                agent.close()
        assert [command.id for command in launcher.commands] == ["first", "second"]

    asyncio.run(story())


def test_who_is_neither_root_nor_the_owner_is_not_obeyed(tmp_path: Path) -> None:
    async def story() -> None:
        agent = LauncherSocket(path=tmp_path / "agent.sock")
        launcher = Launcher(tmp_path / "agent.sock", trusted=(os.getuid() + 1,))
        async with running(launcher):
            await until(lambda: launcher.said, agent=agent)
            await asyncio.sleep(0.3)
            agent.poll()
            assert agent.jobs() == ()
        agent.close()
        assert launcher.commands == []
        assert [("allowed: root, or the owner of this job" in text) for text in launcher.said] == [True]

    asyncio.run(story())


@pytest.mark.parametrize("agent", ["absent", "deaf", "full"])
def test_an_agent_that_is_absent_or_does_nothing_holds_nobody_up(tmp_path: Path, agent: str) -> None:
    async def story() -> None:
        launcher = Launcher(tmp_path / "agent.sock")
        held: list[socket.socket] = []
        if agent != "absent":
            held.append(socket.socket(socket.AF_UNIX))
            held[0].bind(str(tmp_path / "agent.sock"))
            held[0].listen(0 if agent == "full" else 5)
        for _ in range(3 if agent == "full" else 0):
            caller = socket.socket(socket.AF_UNIX)
            caller.setblocking(False)
            held.append(caller)
            with suppress(BlockingIOError):
                caller.connect(str(tmp_path / "agent.sock"))
        loop = asyncio.get_running_loop()
        async with running(launcher):
            slowest = 0.0
            for _ in range(50):
                began = loop.time()
                await asyncio.sleep(0.01)
                slowest = max(slowest, loop.time() - began)
        for line in held:
            line.close()
        assert slowest < 2.0
        assert launcher.reports < 100

    asyncio.run(story())
