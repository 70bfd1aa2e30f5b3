"""Processes that are asked with a deadline: their answers, their deaths, and that nobody waits for one that hangs."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from holdfast_agent.children import Child, Ended, Patience, Phase, Program, started_at


def serve(question: Any, phase: Phase) -> Any:
    phase("thinking")
    if question == "raise":
        raise OSError("no such thing")
    if question == "die":
        os._exit(3)
    while question == "hang":
        time.sleep(0.02)
    return {"echo": question}


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(serve=serve, kill_after_s=2.0)
    yield made
    made.close()


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def answered(child: Child) -> Any:
    return eventually(lambda: child.poll(now()), "an answer")


def test_a_child_answers_and_lives_on(child: Child) -> None:
    assert child.ask("one", now())
    assert answered(child).value == {"echo": "one"}
    pid = child.pid
    assert child.ask({"two": 2}, now())
    assert answered(child).value == {"echo": {"two": 2}}
    assert child.pid == pid


def test_what_a_child_cannot_do_is_its_answer(child: Child) -> None:
    child.ask("raise", now())
    assert answered(child).error == "OSError: no such thing"
    assert child.deaths == 0


def test_a_child_that_dies_is_replaced_but_not_at_once(child: Child) -> None:
    child.ask("die", now())
    assert answered(child).error == "its process died"
    assert not child.ask("one", now())
    assert child.ask("one", now() + 6.0)
    assert answered(child).value == {"echo": "one"}
    assert child.deaths == 1


def test_a_child_that_does_not_answer_is_known_by_what_it_does_and_is_alone(child: Child) -> None:
    child.ask("hang", now())
    eventually(lambda: child.poll(now()) or child.phase == "thinking", "its phase")
    pid = child.pid
    assert not child.ask("one", now())
    assert child.pid == pid
    assert child.waiting


def test_a_child_that_does_not_answer_is_killed_in_the_end(child: Child) -> None:
    child.ask("hang", 0.0)
    for second in range(1, 5):
        child.poll(float(second))
    answer = eventually(lambda: child.poll(5.0), "its end")
    assert answer.error == "killed"
    assert not child.waiting


def test_a_late_answer_counts_for_one_that_was_not_looked_at(child: Child) -> None:
    began = now()
    child.ask("one", began)
    time.sleep(0.2)
    # An agent that was stopped for an hour reads the answer before it looks at the clock.
    answer = eventually(lambda: child.poll(began + 3600.0), "an answer")
    assert answer.value == {"echo": "one"}


def test_time_in_which_the_agent_itself_was_stopped_is_not_waited() -> None:
    patience = Patience()
    patience.begin(100.0)
    patience.turn(100.5)
    assert patience.turn(3700.0) == pytest.approx(1.5)


def test_a_child_has_none_of_the_descriptors_of_the_agent(tmp_path: Path, child: Child) -> None:
    with (tmp_path / "lock").open("w"):
        child.ask("one", now())
        answered(child)
        held = [str(link.readlink()) for link in Path(f"/proc/{child.pid}/fd").iterdir()]
    assert sorted({name.partition(":")[0] for name in held}) == ["/dev/null", "socket"]
    assert len([name for name in held if name.startswith("socket")]) == 1


def test_a_stuck_child_of_an_earlier_agent_keeps_a_second_one_from_being_started(child: Child) -> None:
    earlier = Child(serve=serve, kill_after_s=60.0)
    earlier.ask("hang", now())
    memory = earlier.remember()
    assert memory == [earlier.pid, started_at(earlier.pid)]
    os.kill(earlier.pid, signal.SIGSTOP)  # SIGKILL ends it all the same: only its memory is under test
    child.adopt([memory[0], memory[1] + 1], now())
    assert not child.waiting  # another process of the same number
    child.adopt(memory, now())
    assert child.waiting
    assert not child.ask("one", now())
    earlier.close()
    eventually(lambda: child.poll(now()) is None and not child.waiting, "its end")
    assert child.ask("one", now())


def ended(program: Program) -> Ended:
    found = eventually(lambda: program.poll(now()), "its end")
    assert isinstance(found, Ended)
    return found


def test_a_program_ends_with_its_code_and_what_it_said() -> None:
    program = Program(deadline_s=30.0)
    assert program.start([sys.executable, "-c", "print('found'); raise SystemExit(1)"], now(), os.environ) is None
    assert ended(program) == Ended(code=1, output="found\n")
    assert not program.running


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    found = Program(deadline_s=1.0).start([str(tmp_path / "none")], now(), {})
    assert found is not None
    assert found.code is None
    assert found.problem.startswith("cannot be started: ")


def test_a_program_past_its_deadline_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    program = Program(deadline_s=0.5)
    program.start(["/bin/sh", "-c", f"sleep 600 & echo $! >{tmp_path}/pid; wait"], now(), os.environ)
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "its child")
    assert ended(program).problem == "did not end within 0.5 s"
    eventually(lambda: started_at(int((tmp_path / "pid").read_text())) is None, "the end of its child")


def test_what_a_program_says_is_kept_up_to_a_limit() -> None:
    program = Program(deadline_s=30.0)
    program.start(["/bin/sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x"], now(), os.environ)
    assert len(ended(program).output) == 1 << 16
