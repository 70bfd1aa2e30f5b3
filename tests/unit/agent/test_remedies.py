"""Consequences of verdicts, in virtual time: claimed, handed over, requested; left alone where nothing is due."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_nodes import Agent, Board, Controller, job, run

from holdfast_agent.configuration import Configuration
from holdfast_agent.launchers import JobReport
from holdfast_agent.remedies import RefusedError, RemedySettings, SlurmMarks
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import Program
from holdfast_common import Remedy, Severity, When, kinds, node_socket
from holdfast_common.decisions import NodeState, Order, Report, Stage, decide

NAMES = [f"worker-{number}" for number in range(5)]


class World:
    """Agents, one decider, and the board between them."""

    def __init__(self, share: float = 1.0, *, names: Sequence[str] = NAMES, way: str = "slurm", **more: Any) -> None:
        self.board = Board(names)
        self.agents = [Agent(self.board, name, way=way, **more) for name in names]
        self.one = self.agents[0]
        self.decider = Controller(self.board, share=share, way=way)

    def run(self, for_s: float, **more: Any) -> None:
        run([*self.agents, self.decider], for_s=for_s, **more)

    def happenings(self, kind: str = "") -> list[Happening]:
        return [one for one in [*self.one.own, *self.decider.happenings] if kind in ("", one.kind)]

    def refusals(self) -> list[Any]:
        return [one.detail["why"] for one in self.happenings(kinds.REMEDY_REFUSED)]

    def deeds(self, *deeds: str) -> list[tuple[str, str]]:
        return [(deed, subject) for _, deed, subject in self.board.deeds if not deeds or deed in deeds]

    def answer(self, outcome: str, **more: Any) -> None:
        before, order = self.one.orders[-1]
        self.one.answers = [(before, node_socket.Answer(order.id, "hand-over", outcome, **more))]


# --- the breaker


def test_of_four_of_five_accused_at_once_the_breaker_lets_one_go() -> None:
    world = World(0.1)
    for one in world.agents[:4]:
        one.accuse()
    world.run(600)
    assert world.board.asked() == ["worker-0"]
    refused = [one for one in world.decider.happenings if one.kind == kinds.REMEDY_REFUSED]
    assert [one.detail["host"] for one in refused] == ["worker-1", "worker-2", "worker-3"], "once, not each second"
    assert {(one.detail["why"], one.node) for one in refused} == {("breaker", f"i-worker-{n}") for n in (1, 2, 3)}
    assert all("worker-0 of 5 nodes within an hour" in one.evidence for one in refused)


def test_with_a_share_of_one_everybody_goes_and_nobody_waits() -> None:
    world = World()
    for one in world.agents:
        one.accuse()
    world.run(8)
    assert sorted(world.board.asked()) == NAMES


@given(
    size=st.integers(1, 8),
    share=st.sampled_from([0.0, 0.1, 0.2, 0.34, 0.5]),
    turns=st.lists(st.integers(0, 30), max_size=60),
    starts=st.lists(st.sampled_from([0.0, 0.0, 1.0, 5.0, 60.0]), min_size=8, max_size=8),
)
def test_however_two_deciders_meet_never_more_go_than_may(
    size: int, share: float, turns: list[int], starts: list[float]
) -> None:
    """Whenever one reads or writes, the other may have done any of its own passes in between."""
    world = World(share, names=[f"n{number}" for number in range(size)])
    other = Controller(world.board, share=share)
    left = list(turns)

    def between() -> None:
        if left and left.pop(0) % 3 == 0:
            world.decider.marks.between, before = (lambda: None), world.decider.marks.between
            other.consider()
            world.decider.marks.between = before

    world.decider.marks.between = between
    pending = dict(zip(world.agents, starts, strict=False))

    def accuse(now_s: float) -> None:
        for one in [one for one, at_s in pending.items() if at_s <= now_s]:
            del pending[one]
            one.accuse()

    run([*world.agents, world.decider, other], for_s=200, at=accuse)
    asked = world.board.asked()
    assert 1 <= len(set(asked)) <= max(1, int(size * share + 1e-9))
    assert len(asked) == len(set(asked)), "nothing is requested twice"


def test_an_hour_later_there_is_room_but_a_person_has_to_look() -> None:
    world = World(0.1)
    for one in world.agents[:2]:
        one.accuse()
    world.run(3 * 3600, each_s=10)
    assert world.board.asked() == ["worker-0"]
    world.board.orders["worker-1"] = Order(Stage.ALLOW)
    world.run(60)
    assert world.board.asked() == ["worker-0", "worker-1"]


def test_claims_of_two_deciders_that_are_too_many_yield_and_one_goes() -> None:
    world = World(0.1)
    for name in NAMES[:2]:
        world.board.orders[name] = Order(Stage.CLAIM, "replace", incident="i1")
    for one in world.agents[:2]:
        one.accuse()
    world.run(60)
    assert len(world.board.asked()) == 1


def test_a_node_that_leaves_for_hours_counts_for_as_long() -> None:
    report = Report("i", "gpu-lost", Remedy.REPLACE, When.BOUNDARY)
    going = NodeState("a", report=report, order=Order(Stage.GO, "replace", 0.0, "i"))
    (step,) = decide([going, NodeState("b", report=report)], share=0.1, way="label", now_s=1e6)
    assert (step.node, step.order and step.order.stage) == ("b", Stage.REFUSED)


def test_a_request_counts_for_an_hour_whatever_becomes_of_a_later_incident_of_its_node() -> None:
    world = World(0.1)
    world.board.orders["worker-0"] = Order(Stage.ASKED, "reboot", 1e9 - 600, "earlier")
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(10)
    assert world.board.orders["worker-0"].stage is Stage.GO
    world.one.accuse(withdrawn=True)
    world.run(10)
    world.agents[1].accuse()
    world.run(60)
    assert (world.board.asked(), world.refusals()) == ([], ["breaker"])


def test_a_node_that_others_request_counts() -> None:
    world = World(0.1)
    world.board.foreign["worker-3"] = "the node is IDLE+FAIL with the reason 'Action:Replace' (root), which is not ours"
    world.one.accuse()
    world.run(30)
    assert world.board.asked() == []
    assert world.refusals() == ["breaker"]


# --- who is taken for what


@pytest.mark.parametrize(
    "more",
    [
        {"remedy": Remedy.NONE},
        {"remedy": Remedy.RESTART_PROCESS, "severity": Severity.PROCESS},
        {"remedy": Remedy.REPLACE, "severity": Severity.PROCESS},
        {"remedy": Remedy.REBOOT, "severity": Severity.INFO},
        {"withdrawn": True},
    ],
)
def test_what_is_no_fault_of_the_node_never_takes_it(more: dict[str, Any]) -> None:
    world = World()
    world.one.accuse(**more)
    world.run(60)
    assert (world.board.deeds, world.happenings(), world.board.reports) == ([], [], {})


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"mode": "observe"}, "observe"), ({"way": "none"}, "no-way"), ({"is_controller": True}, "controller")],
)
def test_where_nothing_may_be_done_it_is_said_once_and_nothing_is_touched(settings: dict[str, Any], why: str) -> None:
    world = World(**settings)
    world.one.accuse()
    world.run(60)
    assert (world.board.deeds, world.board.reports) == ([], {})
    assert world.refusals() == [why]
    world.one.accuse(remedy=Remedy.REBOOT)
    world.run(60)
    assert world.refusals() == [why, why], "another remedy is said once more"


def test_of_several_faults_the_strongest_remedy_is_requested() -> None:
    world = World()
    world.one.accuse(incident="a", remedy=Remedy.REBOOT)
    world.one.accuse(incident="b", remedy=Remedy.REPLACE)
    world.run(10)
    assert world.deeds("ask") == [("ask", "replace")]
    assert [one.detail["incident"] for one in world.happenings(kinds.REMEDY_REQUESTED)] == ["b"]


def test_a_gpu_that_cannot_be_reset_is_a_reboot() -> None:
    world = World()
    world.one.accuse(remedy=Remedy.RESET_GPU)
    world.run(20)
    assert world.deeds("ask") == [("ask", "reboot")]


def test_a_gpu_that_is_reset_keeps_its_node_unless_the_fault_stays() -> None:
    world = World()
    world.one.reset_code = 0
    world.one.accuse(remedy=Remedy.RESET_GPU)
    world.run(50)
    assert [one.detail["way"] for one in world.happenings()] == ["driver"]
    assert world.board.asked() == []
    world.run(60)
    assert world.deeds("ask") == [("ask", "reboot")]


# --- hand-over first, the node second


def test_ranks_leave_before_the_node_is_requested_and_their_task_is_requeued_after() -> None:
    world = World()
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(8)
    ((_, order),) = world.one.orders
    assert order.command == "hand-over"
    assert world.board.asked() == [], "the ranks have not left"
    world.answer("begun")
    world.run(5)
    assert world.board.asked() == []
    world.answer("done", ranks=(0,), step=9, seconds=0.4)
    world.one.jobs = []
    world.run(5)
    assert world.deeds() == [("ask", "replace"), ("requeue", "13")]
    assert [(one.kind, one.detail.get("way")) for one in world.happenings()] == [
        (kinds.REMEDY_REQUESTED, "runtime"),
        (kinds.HANDED_OVER, None),
        (kinds.REMEDY_REQUESTED, "slurm"),
    ]


def test_no_rank_leaves_a_node_that_the_breaker_keeps() -> None:
    """A mistaken verdict on all nodes evicts nobody."""
    world = World(0.1)
    for one in world.agents:
        one.jobs = [job()]
        one.accuse()
    world.run(60)
    assert [one.name for one in world.agents if one.orders] == ["worker-0"]


def test_without_a_spare_a_fault_of_now_says_what_is_lost_and_goes_on() -> None:
    world = World()
    world.one.jobs = [job(spares=0)]
    world.one.accuse()
    world.run(10)
    assert [order.command for _, order in world.one.orders] == ["abandon"], "before Slurm's SIGTERM, which ends a job"
    (happening,) = world.happenings(kinds.REMEDY_REQUESTED)
    assert "job 12 loses its ranks on this node: no spare has capacity" in happening.evidence
    assert world.deeds("requeue") == [("requeue", "13")]


@pytest.mark.parametrize("when", [When.NOW, When.BOUNDARY])
@pytest.mark.parametrize("first", ["ours", "HyperPod's own agent"])
def test_a_spare_on_the_node_ends_and_its_task_waits_elsewhere(when: When, first: str) -> None:
    """Slurm would keep a failed node for as long as the spare waits there."""
    world = World()
    if first != "ours":
        world.board.foreign["worker-0"] = "the node is IDLE+FAIL with the reason 'Action:Replace' (root), not ours"
    world.one.jobs = [job(ranks=0, spare=True)]
    world.one.accuse(when=when)
    world.run(20)
    assert [order.command for _, order in world.one.orders] == ["abandon"]
    assert world.deeds("requeue") == [("requeue", "13")]
    assert not any("loses its ranks" in one.evidence for one in world.happenings(kinds.REMEDY_REQUESTED))


def test_a_hand_over_that_never_ends_does_not_keep_a_broken_node() -> None:
    world = World()
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(50)
    assert world.board.asked() == []
    world.run(30)
    assert world.board.asked() == ["worker-0"]
    assert "did not leave in time" in world.happenings(kinds.REMEDY_REQUESTED)[-1].evidence


def test_a_fault_that_can_wait_is_requested_at_once_on_slurm_which_waits_for_the_jobs() -> None:
    world = World()
    world.one.jobs = [job(spares=0)]
    world.one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    world.run(30)
    assert world.deeds() == [("ask", "reboot")], "the job goes on"


@pytest.mark.parametrize("way", ["label", "api"])
def test_a_fault_that_can_wait_waits_where_the_node_would_be_taken_at_once(way: str) -> None:
    world = World(way=way)
    world.one.jobs = [job(spares=0)]
    world.board.jobs["worker-0"] = [frozenset({"team/pod"})]
    world.one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    world.run(3600, each_s=5)
    assert world.board.asked() == []
    world.one.jobs, world.board.jobs = [], {}
    world.run(40)
    assert world.board.asked() == ["worker-0"]


def test_a_spare_that_comes_later_takes_the_ranks_of_a_node_that_waits() -> None:
    world = World(way="label")
    world.one.jobs = [job(spares=0)]
    world.one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    world.run(60)
    assert world.one.orders == []
    world.one.jobs = [job(spares=1)]
    world.run(10)
    assert [command.command for _, command in world.one.orders] == ["hand-over"]


@pytest.mark.parametrize("outcome", ["later", "failed"])
def test_a_launcher_that_had_no_room_is_asked_again_when_it_reports_room(outcome: str) -> None:
    """It reported room before it knew that the spare was taken."""
    world = World(way="label")
    world.one.jobs = [job(received_s=1.0)]
    world.one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    world.run(5)
    world.answer(outcome, reason="0 are there")
    world.run(5)
    assert len(world.one.orders) == 1, "nothing newer was reported"
    world.one.jobs = [job(received_s=2.0, spares=0)]
    world.run(5)
    assert len(world.one.orders) == 1
    world.one.jobs = [job(received_s=3.0)]
    world.run(5)
    assert [command.command for _, command in world.one.orders] == ["hand-over"] * 2
    assert len(world.happenings(kinds.REMEDY_REQUESTED)) == 1


def test_a_launcher_that_can_never_give_its_ranks_away_is_asked_once() -> None:
    world = World(way="label")
    world.one.jobs = [job(received_s=1.0)]
    world.one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    world.run(5)
    world.answer("refused", reason="the job ends")
    world.one.jobs = [job(received_s=2.0)]
    world.run(60)
    assert len(world.one.orders) == 1


def test_down_comes_only_where_nothing_but_what_was_handed_over_is_left() -> None:
    world = World()
    world.one.jobs = [job()]
    world.board.jobs["worker-0"] = [frozenset({"12_0", "13"}), frozenset({"99"})]
    world.one.accuse()
    world.run(5)
    world.answer("done", ranks=(0,), step=9)
    world.one.jobs = []
    world.run(300)
    assert world.deeds("force") == [], "job 99 still runs"
    world.board.jobs["worker-0"] = world.board.jobs["worker-0"][:1]
    world.run(30)
    assert world.deeds("force") == [("force", "replace")]


# --- beside HyperPod's own agent and people


def test_hyperpods_mark_is_respected_and_ranks_still_leave() -> None:
    world = World()
    world.board.foreign["worker-0"] = "the node is IDLE+FAIL with the reason 'Action:Replace' (root), which is not ours"
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(1200, each_s=2)
    assert world.board.asked() == []
    assert len(world.one.orders) >= 1
    assert world.refusals() == ["under-way"]
    world.run(1200, each_s=2)
    assert world.refusals() == ["under-way", "stalled"]


@pytest.mark.parametrize("stage", [Stage.ASKED, None])
def test_a_request_of_others_after_an_earlier_remedy_of_the_node_is_theirs(stage: Stage | None) -> None:
    """The mark of an earlier remedy stays with the node's name."""
    world = World()
    if stage is not None:
        world.board.orders["worker-0"] = Order(stage, "replace", 1e9 - 600, "earlier")
    world.board.requests["worker-0"] = "replace"
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(30)
    assert [order.command for _, order in world.one.orders][:1] == ["hand-over"]
    assert (world.board.asked(), world.refusals()) == ([], ["under-way"])


def test_a_persons_reason_is_never_overwritten_and_the_node_is_requested_when_it_is_gone() -> None:
    world = World()
    world.board.foreign["worker-0"] = "the node is IDLE+DRAIN with the reason 'new cables' (eve), which is not ours"
    world.one.accuse()
    world.run(200)
    assert world.board.asked() == []
    assert world.refusals() == ["foreign"]
    world.board.foreign.clear()
    world.run(60)
    assert world.board.asked() == ["worker-0"]


def test_what_a_person_takes_back_is_not_requested_again() -> None:
    world = World()
    world.one.accuse()
    world.run(20)
    world.board.requests.clear()
    world.run(600)
    assert world.board.asked() == ["worker-0"]
    assert world.refusals() == ["taken-back"]


@pytest.mark.parametrize("after_s", [0.0, 1.0, 2.0, 3.0])
def test_a_verdict_that_is_withdrawn_before_the_node_is_requested_changes_nothing(after_s: float) -> None:
    world = World(0.1)
    world.one.jobs = [job()]
    world.one.accuse()
    world.run(after_s)
    world.one.accuse(withdrawn=True)
    world.run(120)
    assert world.board.asked() == []
    assert (world.board.reports, world.board.orders) == ({}, {})


def test_a_verdict_that_is_withdrawn_while_its_request_is_computed_is_left_alone() -> None:
    """Withdrawn between the look that led to the request and the next access."""
    world = World()
    report = Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, has_left=True)
    world.board.orders["worker-0"] = Order(Stage.GO, "replace", incident="i1")
    accesses: list[int] = []

    def between() -> None:
        accesses.append(len(accesses))
        world.board.reports = {"worker-0": report} if len(accesses) == 1 else {}

    world.decider.marks.between = between
    run([world.decider], for_s=1)
    assert (world.board.deeds, world.board.orders, world.decider.happenings) == ([], {}, [])


def test_a_request_that_fails_is_reported_once_and_retried_and_keeps_no_other_node() -> None:
    world = World()
    world.board.refuses = {"worker-0"}
    for one in world.agents[:2]:
        one.accuse()
    world.run(120)
    assert world.board.asked() == ["worker-1"]
    world.board.refuses.clear()
    world.run(10)
    assert world.board.asked() == ["worker-1", "worker-0"]
    assert [one.detail["host"] for one in world.happenings(kinds.REMEDY_REQUESTED)] == ["worker-0", "worker-1"]
    assert world.refusals() == ["unanswered"]


def test_a_report_that_no_decider_answers_is_reported_once() -> None:
    world = World()
    world.one.accuse()
    run(world.agents, for_s=600)
    (happening,) = world.happenings(kinds.REMEDY_REFUSED)
    assert (happening.detail["why"], "the decider has not answered" in happening.evidence) == ("unanswered", True)
    world.run(10)
    assert world.board.asked() == ["worker-0"]


def test_a_verdict_that_is_withdrawn_after_the_request_changes_nothing_of_it() -> None:
    world = World()
    world.one.jobs = [job(spares=0)]
    world.board.refuses = {"worker-0"}
    world.one.accuse()
    world.run(10)
    world.board.refuses.clear()
    world.decider.consider()
    world.one.mark.look()
    world.one.accuse(withdrawn=True)
    world.run(10)
    assert world.deeds() == [("ask", "replace"), ("requeue", "13")]
    world.board.requests.clear()
    world.run(10)
    assert (world.board.reports, world.refusals()) == ({}, [])


def test_an_incident_that_outlives_its_reboot_and_needs_more_is_requested_again() -> None:
    world = World()
    world.one.accuse(remedy=Remedy.REBOOT)
    world.run(20)
    world.board.requests.clear()
    world.one.reboot()
    world.one.accuse(remedy=Remedy.REPLACE)
    world.run(20)
    assert world.deeds("ask") == [("ask", "reboot"), ("ask", "replace")]


def test_slurm_away_for_ten_minutes_is_said_once_and_waited_for() -> None:
    world = World()
    world.board.away = True
    world.one.accuse()
    world.run(600)
    assert world.refusals() == ["unanswered"]
    world.board.away = False
    world.run(60)
    assert world.board.asked() == ["worker-0"]


# --- killed at any moment


@given(
    kills=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=4),
    share=st.sampled_from([0.1, 1.0]),
    way=st.sampled_from(["slurm", "label", "api"]),
)
def test_an_agent_that_is_killed_at_any_moment_loses_and_doubles_no_remedy(
    kills: list[float], share: float, way: str
) -> None:
    world = World(share, way=way)
    world.board.is_blind = way == "api"
    pending = sorted(kills)

    def kill(now_s: float) -> None:
        while pending and pending[0] <= now_s:
            pending.pop(0)
            world.one.kill()

    world.one.jobs = [job()]
    world.one.accuse()
    world.run(120, at=kill)
    assert world.board.asked() == ["worker-0"]
    assert world.board.requests == {"worker-0": "replace"}
    assert [one.detail["way"] for one in world.happenings(kinds.REMEDY_REQUESTED)] == ["runtime", way]


@pytest.mark.parametrize("way", ["slurm", "label"])
@pytest.mark.parametrize("access", range(40))
def test_a_decider_that_is_killed_before_any_access_leaves_the_rest_to_its_successor(access: int, way: str) -> None:
    """Every read and write of a whole remedy: nothing is requested, forced or requeued twice."""
    world = World(0.1, way=way)
    world.decider.marks.kill_at = access
    world.one.jobs = [job()]
    world.board.jobs["worker-0"] = [frozenset({"12_0", "13"})]
    world.one.accuse()
    world.run(10)
    if world.one.orders:
        world.answer("done", ranks=(0,), step=9)
        world.one.jobs = []
    world.board.jobs = {} if way == "label" else world.board.jobs
    world.run(100)
    assert world.board.asked() == ["worker-0"]
    tasks = [("requeue", "13"), ("force", "replace")] if way == "slurm" else []
    assert sorted(set(world.deeds()) - {("ask", "replace")}) == sorted(tasks)
    assert len(world.deeds("force")) <= 1
    assert world.decider.marks.kill_at < 0 or access > 20, "it was killed"


@pytest.mark.parametrize("access", range(20))
def test_a_task_is_requeued_also_where_the_node_and_its_report_are_gone_before_the_successor(access: int) -> None:
    """HyperPod takes the node as soon as it is requested, and the agent of the new one has no report."""
    world = World(0.1)
    world.one.jobs = [job(spares=0)]
    world.decider.marks.kill_at = access
    world.one.accuse()

    def take(_: float) -> None:
        if world.decider.marks.kill_at < 0 and world.board.requests:
            world.board.requests.clear()
            world.board.reports.clear()
            world.one.jobs = []
            world.one.reboot()

    world.run(60, at=take)
    assert world.board.asked() == ["worker-0"]
    assert set(world.deeds("requeue")) == {("requeue", "13")}
    assert world.board.orders["worker-0"].stage is Stage.ASKED, "it counts"


def test_a_node_that_was_rebooted_with_its_agent_is_not_requested_again() -> None:
    world = World()
    world.one.accuse(remedy=Remedy.REBOOT)
    world.run(20)
    assert world.board.requests == {"worker-0": "reboot"}
    world.board.requests.clear()
    world.one.reboot()
    world.run(600)
    assert world.board.asked() == ["worker-0"]
    assert (world.board.reports, world.refusals(), world.one.remediator.phase) == ({}, [], "idle")


def test_a_snapshot_that_is_none_is_not_taken() -> None:
    one = World().one
    bad_ones: list[dict[str, Any]] = [{}, {"reports": [], "leaving": {}}, {"reports": {}, "leaving": {"dancing": 1}}]
    for bad in bad_ones:
        assert not one.remediator.restore(bad)


@given(st.text())
def test_a_mark_that_is_none_is_no_mark(text: str) -> None:
    report = Report("i:1", "gpu-lost", Remedy.REPLACE, When.NOW, lost=(("12", "why"),), tasks=("1_2",))
    assert Report.from_json(report.to_json()) == report
    order = Order(Stage.ASKED, "replace", 17.0, "i:1", ("breaker",), ("1_2",), ("1_2", "1_3"))
    assert Order.from_text(order.to_text()) == order
    assert Order.from_text("allow") == Order(Stage.ALLOW)
    if not text.startswith("{"):
        assert Report.from_json(text) is None
    if text.partition(":")[0] not in {stage.value for stage in Stage}:
        assert Order.from_text(text) is None


# --- a process that has to begin anew


CRASHED: dict[str, Any] = {
    "fault": "gpu-application-error",
    "remedy": Remedy.RESTART_PROCESS,
    "severity": Severity.PROCESS,
    "pids": (101,),
}


def with_step(step: int) -> JobReport:
    before = job()
    return replace(before, ranks=tuple(replace(rank, step=step) for rank in before.ranks))


def test_a_process_that_the_kernel_named_and_that_stands_still_is_started_anew_by_its_launcher() -> None:
    world = World()
    world.one.jobs = [with_step(5)]
    world.one.accuse(**CRASHED)
    world.run(29)
    assert world.one.orders == []
    world.run(600)
    ((_, order),) = world.one.orders
    assert (order.command, order.ranks) == ("restart", (0,))
    (happening,) = world.happenings(kinds.REMEDY_REQUESTED)
    assert (happening.action, happening.detail["way"], happening.job) == ("restart-process", "runtime", "12")
    assert world.board.deeds == [], "the node is nowhere asked for"


def test_a_process_that_makes_steps_is_left_alone_whatever_the_kernel_said() -> None:
    world = World()
    world.one.jobs = [with_step(5)]
    world.one.accuse(**CRASHED)
    world.run(20)
    world.one.jobs = [with_step(6)]
    world.run(600)
    assert (world.one.orders, world.happenings()) == ([], [])


@pytest.mark.parametrize("pids", [(), (1,), (99999,)])
def test_a_process_that_no_launcher_owns_is_nobodys(pids: tuple[int, ...]) -> None:
    world = World()
    world.one.jobs = [with_step(5)]
    world.one.accuse(**{**CRASHED, "pids": pids})
    world.run(900)
    assert (world.one.orders, world.happenings()) == ([], [])


def test_who_only_observes_says_which_rank_would_begin_anew() -> None:
    world = World(mode="observe")
    world.one.jobs = [with_step(5)]
    world.one.accuse(**CRASHED)
    world.run(60)
    assert world.one.orders == []
    (happening,) = world.happenings()
    assert (happening.kind, happening.detail["why"]) == (kinds.REMEDY_REFUSED, "observe")


def test_killed_meanwhile_a_process_is_started_anew_once() -> None:
    world = World()
    world.one.jobs = [with_step(5)]
    world.one.accuse(**CRASHED)
    for _ in range(6):
        world.run(10)
        world.one.kill()
        world.one.accuse(**CRASHED)
    assert len(world.one.orders) == 1


# --- a task of Slurm's


STARTED_S = 1e9


class Scontrol(Program):
    """Answers as Slurm 22.05 does for an array of two, whose last task has the array's number."""

    def __init__(self) -> None:
        super().__init__()
        self.requeued: list[str] = []

    def run(self, argv: Sequence[str]) -> str:
        if argv[1] == "requeue":
            self.requeued.append(argv[2])
            return ""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(STARTED_S))
        shared = f"Requeue=1 NumNodes=1 StartTime={stamp}"
        return "".join(
            f"JobId={number} ArrayJobId=1 ArrayTaskId={task} JobState={state} NodeList={host} {shared}\n"
            for number, task, state, host in ((1, 1, "FAILED", "worker-1"), (2, 0, "RUNNING", "worker-0"))
            if argv[-1] in ("1", str(number))
        )


@pytest.mark.parametrize(("task", "host", "name"), [("1", "worker-1", "1_1"), ("2", "worker-0", "1_0")])
def test_one_task_of_an_array_is_requeued_and_never_all_of_them(task: str, host: str, name: str) -> None:
    program = Scontrol()
    marks = SlurmMarks(program=program)
    marks.requeue(NodeState(host), task)
    assert program.requeued == [name]
    with pytest.raises(RefusedError):
        marks.requeue(NodeState("worker-7"), task)
    marks.requeue(NodeState(host, order=Order(Stage.ASKED, since_s=STARTED_S - 1)), task)
    assert program.requeued == [name], "Slurm has restarted it on the new node of this name"
    marks.requeue(NodeState(host, order=Order(Stage.ASKED, since_s=STARTED_S)), task)
    assert program.requeued == [name, name]


def test_labels_are_of_kubernetes_and_slurm_knows_short_names() -> None:
    slurm = RemedySettings.of(Configuration(remedies_way="slurm", node_host="ip-10-1-0-4.ec2.internal"))
    label = RemedySettings.of(Configuration(remedies_way="label", node_host="hyperpod-i-1"))
    assert (slurm.orchestrator, slurm.host) == ("slurm", "ip-10-1-0-4")
    assert (label.orchestrator, label.host) == ("eks", "hyperpod-i-1")
