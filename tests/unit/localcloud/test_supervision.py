"""Threads that must not end, what they could not do, and what others read of them."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.supervision import Complaints, Pass, Passes, Worker, passes_path, read_passes, start_log

LOG = logging.getLogger("holdfast.test")


@pytest.fixture
def stopping() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.supervision.worker.FIRST_PAUSE_S", 0.0)


def failing(
    times: int, then: threading.Event, stopping: threading.Event, *, error: BaseException | None
) -> Callable[[], None]:
    left = [times]

    def work() -> None:
        if not left[0]:
            then.set()
            stopping.wait()
            return
        left[0] -= 1
        if error is not None:
            raise error

    return work


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(1), RecursionError("deep"), None])
def test_a_thread_that_ends_is_started_again_and_says_so(
    stopping: threading.Event, error: BaseException | None
) -> None:
    runs_again = threading.Event()
    worker = Worker(name="storage", work=failing(2, runs_again, stopping, error=error), stopping=stopping)
    worker.start()
    assert runs_again.wait(30)
    told = worker.reported()
    assert told.restarts == 2
    (line,) = told.problems(now=told.restarted_at + 7.0)
    assert line.startswith("thread storage failed and was restarted 2 times, last 7 s ago: ")
    assert (str(error) if error else "it returned") in line
    assert told.problems(now=told.at + 4000.0) == ["thread storage is stalled: no progress for 4000 s"]


def test_a_thread_without_a_pass_is_late() -> None:
    one = Pass(name="tail", at=100.0, late_after_s=30.0)
    assert one.problems(now=129.0) == []
    assert one.problems(now=145.0) == ["thread tail is stalled: no progress for 45 s"]


def test_passes_are_read_by_another_process(tmp_path: Path) -> None:
    path = passes_path(tmp_path, "hyperpod")
    Passes(path=path, reported=lambda: [Pass(name="loop", at=5.0, late_after_s=30.0, problem="x")]).write()
    found = read_passes(path)
    assert found is not None
    assert found.ages(now=7.5) == {"loop": 2.5}
    assert found.passes[0].problem == "x"


@pytest.mark.parametrize("content", ["", "[]", '{"pid": 1}', '{"pid": 1, "at": 1, "passes": [{}]}'])
def test_passes_that_cannot_be_read_are_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.passes"
    path.write_text(content)
    assert read_passes(path) is None


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def raising(error: Exception) -> Callable[[], bool]:
    def work() -> bool:
        raise error

    return work


def test_what_fails_is_said_once_counted_and_forgotten_when_it_works(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complaints = Complaints(log=LOG, what="exports", clock=clock)
    for _ in range(3):
        assert not complaints.attempt("a\udcff", raising(OSError("no")), failures=(OSError,))
        clock.now += 10
    assert not complaints.attempt("b", raising(OSError("no")), failures=(OSError,))
    assert [record.getMessage() for record in caplog.records] == [
        "exports: a\\udcff: OSError: no",
        "exports: b: OSError: no",
    ]
    assert complaints.count == 2
    assert complaints.summary == "exports: a\\udcff: OSError: no, and 1 more"
    clock.now += 10
    assert complaints.attempt("b", lambda: True, failures=())
    complaints.settle_others([])
    assert (complaints.count, complaints.summary) == (0, "")


def test_what_failed_is_left_alone_for_a_while() -> None:
    clock = Clock()
    complaints = Complaints(log=LOG, what="exports", clock=clock)
    complaints.attempt("a", raising(OSError()), failures=(OSError,))
    assert not complaints.attempt("a", lambda: True, failures=())
    clock.now += 5.1
    assert complaints.attempt("a", lambda: True, failures=())


def test_a_million_bad_names_take_bounded_memory_and_are_counted() -> None:
    complaints = Complaints(log=LOG, what="exports")
    logging.disable()
    try:
        for number in range(3000):
            complaints.record(str(number), "no")
    finally:
        logging.disable(logging.NOTSET)
    assert complaints.count == 3000
    assert len(json.dumps(complaints.summary)) < 200


def test_a_log_is_two_files_of_bounded_size_while_others_append_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.supervision.log_lines.MOST_BYTES", 200)
    path = tmp_path / "hyperpod.log"
    before = [*logging.root.handlers], logging.root.level
    with path.open("a") as own, path.open("a") as child:
        start_log(stream=own, pattern="%(message)s")
        try:
            for number in range(1000):
                LOG.warning("pod identity: 401 %d", number)
                child.write("of a child\n")
                child.flush()
        finally:
            logging.root.handlers, logging.root.level = before
    kept = path.with_name("hyperpod.log.1")
    assert {one.name for one in tmp_path.iterdir()} == {path.name, kept.name}
    assert max(path.stat().st_size, kept.stat().st_size) < 250
    assert "pod identity: 401 999\n" in kept.read_text() + path.read_text()
    assert b"\0" not in path.read_bytes() + kept.read_bytes()
