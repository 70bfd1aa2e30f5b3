"""The parts of a launcher, each without the others: generations, carrier, places, deaths, tasks."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from launcher_context import context

from holdfast_runtime.control import FROM_RANK, TO_RANK, Fault, Plan, Progress, Ready, View
from holdfast_runtime.launcher.node import Carrier, Deaths, Generations, Launcher, Places, Ranks, Tasks
from holdfast_runtime.launcher.ranks import LocalSlots
from holdfast_runtime.launcher.settings import parse_options
from holdfast_runtime.membership import Commit, RankStatus, Slot
from holdfast_runtime.membership import View as Committed


class Told:
    """In place of any other part: keeps what it is called with; answers nothing."""

    def __init__(self, **values: object) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Callable[..., list[Any]]:
        def called(*given: object, **named: object) -> list[Any]:
            self.calls.append((name, *given, *named.values()))
            return []

        return called


@dataclass
class Process:
    """One that notes how it is killed."""

    pid: int = 1
    signals: list[int] = field(default_factory=list)

    def kill(self, number: int = 9) -> None:
        self.signals.append(number)


def in_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def inside() -> None:
        asyncio.run(test())

    inside.__name__ = test.__name__
    return inside


def options(*more: str) -> Any:
    return parse_options(
        ["--peers", "127.0.0.1:1,127.0.0.1:2", "--node-rank", "0", *more, "never.py"], {"HOLDFAST_TOKEN": "a test's"}
    )


def slots(*, ranks: int = 1, spares: int = 1, in_process: bool = True) -> LocalSlots:
    made = LocalSlots(node=0, ranks=ranks, spares=spares)
    made.in_process = in_process
    return made


def committed(*, generation: int = 3, node: int = 7, incarnation: int = 0, port: int = 5) -> Committed:
    """A view with one rank on this node, of a launcher that is called 7."""
    rank = RankStatus(slot=Slot(0, 0, incarnation), rank=0, port=port)
    return Committed(generation=generation, nodes=(node, 1), ranks=(rank,), sources=("memory",), donors=((),))


def shared(local: LocalSlots, **parts: Any) -> Any:
    values: dict[str, Any] = {"links": Told(identity=7, incarnation=0), "journal": Told(), "ending": Told(begun=False)}
    return context(local, **{"options": options(), **values, **parts})


def carrier(local: LocalSlots, *, places: Any = None) -> Carrier:
    settings = SimpleNamespace(deadlines=SimpleNamespace(leave=0.0))
    told: Any = Told()
    return Carrier(shared(local, links=Told(identity=0), options=settings), places=places or told, keys=told)


def places_of(local: LocalSlots, *, tasks: Any = None, ending: Any = None) -> Places:
    tasks = tasks or Tasks(ending=Told(), journal=Told())  # type: ignore[arg-type]
    processes: Any = Told()
    return Places(shared(local, ending=ending or Told(begun=False)), processes=processes, tasks=tasks)


def generations(local: LocalSlots, *, links: Any = None, **parts: Any) -> Generations:
    values: dict[str, Any] = {
        "witness": Told(link=Told(identity=-1), may_be_lost=1),
        "judgement": Told(),
        "carrier": Told(),
        "begins": lambda _view: None,
        "began": lambda _view: None,
        "record": Told(),
    }
    return Generations(shared(local, **({"links": links} if links else {})), **{**values, **parts})


@in_a_loop
async def test_trouble_is_told_to_all_once_and_not_again_while_a_generation_is_wanted() -> None:
    links = Told(identity=7, incarnation=0)
    local = slots()
    made = generations(local, links=links)

    made.trouble("rank 0 is lost")
    made.trouble("rank 1 is lost")

    assert local.requested == "rank 0 is lost"
    assert len([call for call in links.calls if call[0] == "broadcast"]) == 1
    made.close()


@in_a_loop
async def test_an_agreement_that_another_one_follows_does_not_change_the_view_any_more() -> None:
    local = slots()
    made = generations(local)
    before = made.agreement
    made.forget()

    before.message(1, Commit(committed()))

    assert local.view.generation == 0


@in_a_loop
async def test_nothing_is_said_of_the_local_ranks_before_processes_can_be_started() -> None:
    local = slots()
    made = generations(local)
    made.agreement.trouble("the job begins")

    made.left()
    before = made.agreement._node.status
    made.begin()

    assert before is None
    assert made.agreement._node.status is not None
    made.close()


@in_a_loop
async def test_ranks_that_live_through_faults_are_given_the_view_and_others_are_restarted() -> None:
    for in_process, expected in ((True, "give"), (False, "restart")):
        carrying = Told()
        begun: list[Committed] = []
        made = generations(slots(in_process=in_process), carrier=carrying, begins=begun.append)

        made.install(committed())

        assert [call[0] for call in carrying.calls] == [expected]
        assert begun == [committed()]
        made.close()


@in_a_loop
async def test_a_view_of_live_processes_says_that_they_live_through_faults_whoever_told_it_first() -> None:
    """One that comes back in the middle of an agreement is asked for its vote before anybody told it."""
    launcher = Launcher(options())
    for port, in_process in ((0, False), (5, True)):
        launcher.generations.install(committed(node=1, port=port))
        assert (launcher.slots.in_process, launcher.generations.first) == (in_process, not in_process)
    launcher.generations.close()


@in_a_loop
async def test_a_rank_that_is_in_the_view_is_told_its_place() -> None:
    local = slots()
    sent: list[Any] = []
    slot = local[0]
    slot.process, slot.ready = Process(), Ready(committed_step=0, state="valid")  # type: ignore[assignment]
    slot.send = sent.append  # type: ignore[method-assign]

    carrier(local).give(committed(), mine=True)

    assert [(type(told), told.generation, told.rank) for told in sent] == [(View, 3, 0)]
    assert (slot.ready, slot.generation) == (None, 3)


@in_a_loop
async def test_a_rank_that_died_while_it_was_chosen_is_the_reason_for_the_next_view() -> None:
    local, places = slots(), Told()

    reasons = carrier(local, places=places).give(committed(), mine=True)

    assert reasons == ["rank 0 of node 0 died while it was chosen"]
    assert ("fill", local[0]) in places.calls


@in_a_loop
async def test_who_has_not_left_in_time_is_killed_and_who_has_left_is_not() -> None:
    local = slots(ranks=2, spares=0)
    for slot in local:
        slot.process, slot.generation, slot.rank = Process(), 2, slot.index  # type: ignore[assignment]
    local[0].ready = Ready(committed_step=0, state="valid")

    carrier(local).leave(3, "rank 5 is lost")
    await asyncio.sleep(0.01)

    assert [slot.process.signals for slot in local] == [[], [9]]  # type: ignore[union-attr]


@in_a_loop
async def test_nobody_is_killed_for_a_generation_that_has_come() -> None:
    local = slots(ranks=1, spares=0)
    local[0].process, local[0].generation = Process(), 2  # type: ignore[assignment]

    local.view = committed()
    carrier(local).leave(3, "rank 5 is lost")
    await asyncio.sleep(0.01)

    assert local[0].process.signals == []  # type: ignore[union-attr]


@in_a_loop
async def test_a_place_is_filled_once_and_not_when_the_job_ends() -> None:
    local, tasks, ending = slots(), Told(), Told(begun=False)
    places = places_of(local, tasks=tasks, ending=ending)
    places.fill(local[0])
    places.fill(local[0])
    ending.begun = True
    places.fill(local[1])

    assert [call[0] for call in tasks.calls] == ["spawn"]
    for _, work in tasks.calls:
        work.close()  # type: ignore[attr-defined]


@in_a_loop
async def test_a_spares_place_is_filled_when_the_ranks_have_done_a_step_after_the_recovery() -> None:
    local = slots()
    local[0].rank, local[0].progress = 0, Progress(step=0, phase="forward")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast_runtime.launcher.node.places.REFILL_AFTER_S", 0.01)
        patch.setattr("holdfast_runtime.launcher.node.places.LOOK_S", 0.01)
        places_of(local).fill_later(local[1])
        await asyncio.sleep(0.1)
        assert not local[1].starting

        local[0].progress = Progress(step=1, phase="other")
        await asyncio.sleep(0.1)
        assert local[1].starting


@in_a_loop
async def test_a_spares_place_is_filled_in_time_where_a_step_takes_long_and_at_once_where_no_rank_is_here() -> None:
    busy, idle = slots(), slots()
    busy[0].rank, busy[0].progress = 0, Progress(step=0, phase="forward")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("REFILL_AFTER_S", 0.01), ("LOOK_S", 0.01), ("REFILL_BY_S", 0.1)):
            patch.setattr(f"holdfast_runtime.launcher.node.places.{name}", value)
        for local in (busy, idle):
            places_of(local).fill_later(local[1])
        await asyncio.sleep(0.05)
        assert (busy[1].starting, idle[1].starting) == (False, True)
        await asyncio.sleep(0.15)
        assert busy[1].starting


@pytest.mark.parametrize(("steps", "too_many"), [((4, 4, 4), True), ((4, 5, 6), False)], ids=["none", "some"])
def test_deaths_without_progress_in_between_are_counted(steps: tuple[int, ...], too_many: bool) -> None:
    deaths = Deaths(2)
    for step in steps:
        deaths.note(step, in_process=True)

    assert deaths.too_many(in_place=0) is too_many


def test_all_deaths_of_a_script_that_says_nothing_are_counted_and_those_in_one_place_too() -> None:
    deaths = Deaths(1)
    deaths.note(0, in_process=False)
    assert not deaths.too_many(in_place=1)
    assert deaths.too_many(in_place=2)
    deaths.note(0, in_process=False)
    assert deaths.too_many(in_place=0)


@in_a_loop
async def test_work_that_fails_ends_the_job_with_its_reason() -> None:
    ending, journal = Told(), Told()
    tasks = Tasks(ending=ending, journal=journal)  # type: ignore[arg-type]

    async def fail() -> None:
        raise KeyError("a slot")

    tasks.spawn(fail())
    for _ in range(3):
        await asyncio.sleep(0)

    assert ending.calls == [("give_up", "the launcher failed: KeyError: 'a slot'; see the traceback above")]
    assert "Traceback" in str(journal.calls[0])


def given(local: LocalSlots, view: Committed, *, built: int, moves: bool = False, source: str = "memory") -> Told:
    """What becomes of the places of a node whose process in place 0 is a spare that was built for a rank."""
    slot, places = local[0], Told()
    slot.process = Process()  # type: ignore[assignment]
    slot.built, slot.ready = built, Ready(committed_step=0, state="none", built=built, moves=moves)
    slot.rank = 0
    told = replace(view, sources=(source,))  # type: ignore[arg-type]
    carrier(local, places=places).give(told, mine=True)
    return places


@pytest.mark.parametrize(
    ("built", "moves", "source", "replaced"),
    [
        (0, False, "peer", False),
        (3, False, "peer", True),
        (3, True, "peer", False),
        (-1, False, "peer", False),
        (0, False, "fresh", True),
    ],
    ids=["its rank", "another rank", "another rank that it becomes", "no rank", "where all begin"],
)
def test_a_spare_that_is_built_gives_way_where_it_cannot_be_the_rank(
    built: int, moves: bool, source: str, replaced: bool
) -> None:
    local = slots()

    async def inside() -> Told:
        return given(local, committed(), built=built, moves=moves, source=source)

    places = asyncio.run(inside())

    assert (("replace", local[0]) in places.calls) is replaced
    assert (local[0].awaited is not None) is replaced


def test_a_process_that_comes_late_to_its_place_hears_what_was_said_before_it() -> None:
    slot, said = LocalSlots(node=0, ranks=1, spares=0)[0], list[bytes]()
    view = View(generation=3, rank=0, world_size=1, resume_step=0, plan=Plan(source="peer"))
    slot.expect(view)
    slot.post(b"one")
    slot.writer = SimpleNamespace(write=said.append)  # type: ignore[assignment]
    slot.post(b"two")

    assert said == []

    slot.take(view)
    slot.post(b"three")

    assert said == [TO_RANK.encode(view) + b"\n", b"one", b"two", b"three"]
    assert (slot.awaited, slot.generation) == (None, 3)


def test_a_process_that_comes_when_its_generation_is_over_hears_nothing_of_it() -> None:
    slot = LocalSlots(node=0, ranks=1, spares=0)[0]
    slot.expect(View(generation=3, rank=0, world_size=1, resume_step=0, plan=Plan(source="peer")))
    slot.post(b"one")

    slot.expect(None)

    assert (slot.awaited, slot.late) == (None, [])


def test_a_spare_that_gets_a_rank_while_it_makes_its_model_is_waited_for_as_any_that_makes_one() -> None:
    slot = LocalSlots(node=0, ranks=1, spares=0)[0]
    view = View(generation=3, rank=0, world_size=1, resume_step=7, plan=Plan(source="peer"))

    for built, making in ((-1, True), (0, False)):
        slot.built, slot.ready = 0, Ready(committed_step=0, state="none", built=built)
        slot.take(view)
        assert (slot.progress == Progress(step=7, phase="recover")) is making
        assert slot.built == -1


@in_a_loop
async def test_a_spare_that_has_its_model_once_it_has_a_rank_has_not_left_its_generation() -> None:
    slot, heard = LocalSlots(node=0, ranks=1, spares=0)[0], list[object]()
    launcher, rank = socket.socketpair()
    slot.process = SimpleNamespace(control=launcher)  # type: ignore[assignment]
    listening = asyncio.create_task(slot.listen(slot.process, lambda _slot, message: heard.append(message)))  # type: ignore[arg-type]
    waits = Ready(committed_step=0, state="none")
    built, then = replace(waits, built=0), Progress(step=7, phase="recover")

    async def says(*messages: Ready | Progress) -> None:
        rank.sendall(b"".join(FROM_RANK.encode(message) + b"\n" for message in messages))
        while messages[-1] not in heard:
            await asyncio.sleep(0.01)

    await says(waits)
    slot.built = 0
    slot.take(View(generation=3, rank=0, world_size=1, resume_step=7, plan=Plan(source="peer")))
    await says(built, then)
    assert (slot.ready, heard) == (None, [waits, then])

    left = replace(waits, committed_step=8)
    await says(left)
    assert (slot.ready, heard) == (left, [waits, then, left])
    rank.close()
    await listening
    slot.writer.close()  # type: ignore[union-attr]


@in_a_loop
async def test_a_view_that_names_a_spare_which_has_just_given_way_is_for_the_next_process_of_its_place() -> None:
    local = slots()
    slot = local[0]
    slot.process, slot.rank = Process(), 0  # type: ignore[assignment]

    troubles = carrier(local).give(committed(), mine=True)

    assert (troubles, slot.generation) == ([], 0)
    assert slot.awaited is not None


def ranks_of(local: LocalSlots, *, ending: Any = None, record: Any = None) -> Ranks:
    names = ("places", "generations", "keys", "watch", "judgement", "settling", "departure", "building", "tasks")
    parts: dict[str, Any] = {name: Told() for name in names}
    told: Any = SimpleNamespace(record=record or Told(), **parts)
    return Ranks(shared(local, ending=ending or Told()), told)


def test_steps_that_a_view_gave_up_are_not_known_again_from_a_rank_that_goes_back_to_it() -> None:
    local = slots()
    ranks = ranks_of(local, record=Told(rank=0))
    local.learn(44)
    local.go_on(replace(committed(), resume_step=42, lost_steps=2))

    ranks.receive(local[0], Progress(step=44, phase="recover"))
    ranks.receive(local[0], Progress(step=44, phase="copy"))
    assert local.known_step == 42

    ranks.receive(local[0], Progress(step=43, phase="other"))
    assert local.known_step == 43


def test_a_rank_that_misses_a_peer_at_the_start_of_another_loop_is_not_told_that_all_have_finished() -> None:
    async def test() -> None:
        local, parts = slots(ranks=2), Told(begun=False, some_finished=False, some_lost_behind=False)
        ranks = ranks_of(local, ending=parts)
        for rank, slot in enumerate((local[0], local[1])):
            slot.process, slot.rank, slot.generation, slot.speaks = Process(), rank, 2, True  # type: ignore[assignment]
            slot.progress, slot.finished, slot.last_wait = Progress(step=12, phase="vote"), True, True
        sent: list[object] = []
        local[0].send = sent.append  # type: ignore[method-assign]

        ranks.receive(local[0], Fault(reason="BrokenError: Connection reset by peer"))

        assert sent == []
        assert (local[0].finished, local.begun_again) == (False, True)

    asyncio.run(test())


@pytest.mark.parametrize(
    ("requested", "named"),
    [
        ("rank 1 of node 0 is lost: it was killed by SIGKILL", "give_up"),
        ("node 3 is lost", "give_up"),
        ("rank 1 of node 0 has lost a peer: BrokenError: Connection reset by peer", ""),
    ],
)
def test_a_rank_that_ends_well_after_a_loss_is_no_rank_that_others_wait_for(requested: str, named: str) -> None:
    local, ending = slots(), Told(begun=False)
    local.requested, local.view = requested, committed()
    ranks = ranks_of(local, ending=ending)
    slot, process = local[0], Told(has_message=False)
    slot.process, slot.rank, slot.generation, slot.speaks = process, 0, 2, True  # type: ignore[assignment]
    slot.progress = Progress(step=64, phase="other", total=400)

    asyncio.run(ranks.ended(process, 0, "it ended with exit code 0"))  # type: ignore[arg-type]

    left = "rank 0 of node 0 left run.steps after 0 of 400 steps and ended with exit code 0"
    if named:
        assert ending.calls == [("give_up", f"{requested}; {left}, so the job cannot go on")]
    else:
        assert ending.calls[0][:2] == ("end", 1)
        assert f"{left}, and others go on; all ranks leave at one step" in str(ending.calls[0][2])
