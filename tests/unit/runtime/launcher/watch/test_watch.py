"""What a launcher does about a process that says nothing: by its phase, and by how long the job's own steps take."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from launcher_context import context

from holdfast_common import EventLog
from holdfast_runtime.control import Deadlines, Phase, Progress, Ready, Survives
from holdfast_runtime.launcher.generation import Journal
from holdfast_runtime.launcher.ranks import LocalSlot, LocalSlots, Process
from holdfast_runtime.launcher.watch import Watch


class FakeProcess:
    """A process that notes that it was killed."""

    pid = 1
    killed_s: float | None = None

    @property
    def killed(self) -> bool:
        return self.killed_s is not None

    def kill(self, _number: int = 9) -> None:
        self.killed_s = 0.0


class World:
    """A launcher with one rank, of a job of two, and one spare that were heard of at second 0."""

    def __init__(self, *, world_size: int = 2) -> None:
        self.reported: list[str] = []
        self.slots = LocalSlots(node=0, ranks=1, spares=1, world_size=world_size)
        self.slots.in_process = True
        self.rank, self.spare = self.slots
        for slot in self.slots:
            slot.process = FakeProcess()  # type: ignore[assignment]
            slot.heard_s = 0.0
        self.rank.rank, self.rank.generation = 0, 2
        self.spare.ready = Ready(committed_step=0, state="none")
        self.troubles: list[str] = []
        journal = Journal(node=0, as_json=False, events=EventLog.from_environment(source="job"))
        journal.say = lambda text, **_facts: self.reported.append(text)  # type: ignore[method-assign]
        self.watch = Watch(
            context(self.slots, journal=journal, ending=SimpleNamespace(some_finished=False)),
            processes=None,  # type: ignore[arg-type]
        )

    def steps(self, patch: pytest.MonkeyPatch, *, seconds: float) -> None:
        """Three steps of so many seconds are finished."""
        for step in range(4):
            patch.setattr("time.monotonic", lambda step=step: seconds * step)
            self.watch.moved(step)

    def look(self, now_s: float, phase: Phase | None = None) -> bool:
        """Whether anything was done about the rank."""
        self.rank.progress = Progress(step=1, phase=phase) if phase else None
        why = self.watch._look_for_silent(now_s)
        self.troubles += [why] if why else []
        return bool(why) or killed(self.rank)


def killed(slot: LocalSlot) -> bool:
    process: Process | FakeProcess | None = slot.process
    return isinstance(process, FakeProcess) and process.killed


@pytest.mark.parametrize(
    ("phase", "limit_s"), [("forward", 600.0), ("other", 600.0), ("vote", 600.0), ("copy", 360.0), ("recover", 360.0)]
)
def test_each_phase_has_its_deadline(phase: Phase, limit_s: float) -> None:
    assert not World().look(limit_s - 1, phase)
    assert World().look(limit_s + 1, phase)


def test_a_rank_waits_for_the_others_for_ten_of_the_steps_that_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.steps(monkeypatch, seconds=20.0)

    assert world.watch.silence_s == 200.0
    assert not world.look(199.0, "vote")
    assert not world.look(599.0, "forward")
    assert world.look(201.0, "vote")
    assert (
        "a rank of another node hangs: rank 0 waits for it since 201.0 s in phase vote of step 1" in world.troubles[0]
    )


def test_a_rank_of_a_sharded_job_waits_for_the_others_in_forward_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.slots.survives = Survives(sentence="any one process may be lost", reach="process")
    assert not world.look(599.0, "forward"), "no step has been measured"
    world.steps(monkeypatch, seconds=20.0)

    assert not world.look(199.0, "forward")
    assert not world.look(599.0, "other")
    assert world.look(201.0, "forward")


def test_what_was_killed_and_has_not_ended_is_reported_once_its_time_is_over() -> None:
    world = World()
    process = world.rank.process
    assert world.watch._unended(100.0) == []

    world.rank.kill("a test wants it")
    assert world.watch._unended(4.9) == []
    assert world.watch._unended(5.1) == [process]
    world.look(10_000.0, "vote")
    assert world.troubles == [], "no other view is wanted for it a second time"


def test_a_launcher_goes_on_without_what_does_not_end_while_the_others_still_wait_for_it() -> None:
    for deadlines in (Deadlines(), Deadlines(heartbeat=1, leave=1.2, ready=1.6, minority=3)):
        assert 0 < deadlines.leave + deadlines.unended < deadlines.ready


def test_one_that_does_not_take_its_place_in_a_view_is_killed() -> None:
    world = World()
    assert not world.look(29.0)
    assert world.look(31.0)
    assert world.reported == ["rank 0 has not taken its place in the view within 30 s and is killed"]


def test_those_that_alone_have_the_state_get_more_time_while_none_of_them_takes_its_place() -> None:
    world = World(world_size=1)
    assert not world.look(89.0)
    assert world.look(91.0)
    assert world.reported == ["rank 0 has not taken its place in the view within 90 s and is killed"]


def test_one_of_them_gets_no_more_time_than_those_that_have_taken_their_place() -> None:
    slots = LocalSlots(node=0, ranks=2, spares=0)
    slots.in_process = True
    for slot in slots:
        slot.process, slot.rank, slot.generation = FakeProcess(), slot.index, 2  # type: ignore[assignment]
    assert slots.only_hope(reported=lambda slot: slot.ready is not None)

    slots[0].ready = Ready(committed_step=3, state="valid")
    assert not slots.only_hope(reported=lambda slot: slot.ready is not None)

    slots[0].process = None
    assert slots.only_hope(reported=lambda slot: slot.ready is not None)


def test_a_spare_that_never_becomes_ready_is_killed_and_one_that_waits_is_not() -> None:
    world = World()
    world.rank.finished = True
    world.look(10_000.0)
    assert not killed(world.spare)

    world.spare.ready = None
    world.look(1799.0)
    assert not killed(world.spare)
    world.look(1801.0)
    assert killed(world.spare)


def test_the_age_of_the_last_step_and_the_longest_one_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    assert world.watch.step_s == (None, None)
    world.steps(monkeypatch, seconds=2.0)
    monkeypatch.setattr("time.monotonic", lambda: 11.0)
    assert world.watch.step_s == (5.0, 2.0)


def test_a_launcher_that_was_stopped_itself_reads_before_it_judges() -> None:
    world = World()
    looks: list[float] = []
    world.watch._look_for_silent = looks.append  # type: ignore[method-assign]
    world.watch._look_for_stopped = lambda _now_s: None  # type: ignore[method-assign]
    times: Callable[[], float] = iter([0.0, 100.0, 100.0, 101.0, 101.0, 102.0]).__next__

    async def test() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast_runtime.launcher.watch.silence.time", type("Clock", (), {"monotonic": times}))

            async def no_wait(_seconds: float) -> None:
                pass

            patch.setattr("holdfast_runtime.launcher.watch.silence.asyncio", type("Fast", (), {"sleep": no_wait}))
            with pytest.raises(RuntimeError):
                await world.watch.run(trouble=world.troubles.append, unended=no_wait)

    asyncio.run(test())
    assert looks == [101.0, 102.0]
