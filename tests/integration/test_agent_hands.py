"""The hands as the process that they are: they answer, are started again, and nothing of them stays."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from holdfast_agent.remedies import Answer, HandsLine, Request

FAKE_SCONTROL = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*show*) echo "NodeName=w1 State=IDLE BootTime=None";;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node called w1, whose Slurm notes what it is told."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("scontrol", "squeue"):
        program = bin_folder / name
        program.write_text(FAKE_SCONTROL.format(log=tmp_path / "log"))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    parts = Path(__file__).parents[2] / "containers"
    monkeypatch.setenv("PYTHONPATH", f"{parts / 'health-agent'}:{parts / 'common'}")
    (tmp_path / "log").touch()
    return tmp_path


def configured(folder: Path, **values: Any) -> Path:
    path = folder / "agent.json"
    path.write_text(json.dumps({"node.host": "w1", "remedies.way": "slurm", "remedies.mode": "act", **values}))
    return path


@pytest.fixture
def line(folder: Path) -> Iterator[HandsLine]:
    made = HandsLine(config=configured(folder), answer_s=60)
    yield made
    made.close()


def ask(line: HandsLine, deed: str, remedy: str = "", subject: str = "") -> Answer:
    now_s = time.monotonic()
    line.send(Request(number=7, deed=deed, remedy=remedy, subject=subject), boot_s=now_s)
    found: tuple[Answer, ...] = eventually(lambda: line.receive(boot_s=time.monotonic()))
    (answer,) = found
    assert (answer.number, answer.deed) == (7, deed)
    return answer


def pid_of(line: HandsLine) -> int:
    assert line._process is not None
    return line._process.pid


def test_they_do_what_they_are_asked_to_do_to_their_own_node(folder: Path, line: HandsLine) -> None:
    view = ask(line, "look").view
    assert view is not None
    assert (view.me, view.nodes) == ("w1", 1)
    first = pid_of(line)
    assert ask(line, "claim", "replace", "gpu-lost").outcome == "done"
    assert pid_of(line) == first
    updates = [text for text in (folder / "log").read_text().splitlines() if text.startswith("update")]
    assert len(updates) == 1
    assert updates[0].startswith("update NodeName=w1 Comment=holdfast-remedy:claim:replace:")


def test_they_see_for_themselves_that_nothing_may_be_done(folder: Path) -> None:
    for values, why in (({"remedies.mode": "observe"}, "observe"), ({"controller.enabled": True}, "controller")):
        made = HandsLine(config=configured(folder, **values), answer_s=60)
        answer = ask(made, "go", "replace")
        made.close()
        assert (answer.outcome, why in answer.why) == ("refused", True)
    assert (folder / "log").read_text() == ""


def test_hands_that_are_killed_are_an_answer_and_are_started_again(line: HandsLine) -> None:
    assert ask(line, "look").outcome == "done"
    first = pid_of(line)
    os.kill(first, signal.SIGSTOP)
    line.send(Request(number=8, deed="look"), boot_s=0.0)
    os.kill(first, signal.SIGKILL)
    (answer,) = eventually(lambda: line.receive(boot_s=0.0))
    assert (answer.outcome, "exited" in answer.why) == ("failed", True)
    assert ask(line, "look").outcome == "done"
    assert pid_of(line) != first


def test_hands_that_hang_are_ended_after_their_deadline_and_nobody_waited(line: HandsLine) -> None:
    assert ask(line, "look").outcome == "done"
    hung = pid_of(line)
    os.kill(hung, signal.SIGSTOP)
    line.send(Request(number=8, deed="look"), boot_s=0.0)
    began = time.monotonic()
    for second in range(60):
        assert line.receive(boot_s=float(second)) == ()
    took_s = time.monotonic() - began
    assert took_s < 5, "sixty looks at hands that hang"
    (answer,) = line.receive(boot_s=61.0)
    assert (answer.outcome, "no response within 60 s" in answer.why) == ("failed", True)
    eventually(lambda: not Path(f"/proc/{hung}").exists() or ask(line, "look").outcome == "done")


def test_hands_that_nobody_needs_end(line: HandsLine) -> None:
    assert ask(line, "look").outcome == "done"
    last = pid_of(line)
    assert line.receive(boot_s=time.monotonic() + 1000) == ()
    eventually(lambda: line._process is not None and line._process.poll() is not None)
    assert last == pid_of(line)


def test_a_configuration_that_is_wrong_is_an_answer(folder: Path) -> None:
    made = HandsLine(config=configured(folder, **{"remedies.way": "ssh"}), answer_s=60)
    answer = ask(made, "look")
    made.close()
    assert answer.outcome == "failed"
