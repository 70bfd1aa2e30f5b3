"""What follows from verdicts, in virtual time: claimed, handed over, asked for, and left alone where nothing is due."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_nodes import Agent, Board, job, run

from holdfast_agent.configuration import Configuration
from holdfast_agent.launchers import JobReport
from holdfast_agent.remedies import (
    Hands,
    Job,
    Mark,
    RemedySettings,
    Request,
    Stage,
    WordsError,
    parse_request,
)
from holdfast_agent.slurm import Program
from holdfast_common import Remedy, Severity, When, kinds, node_socket

NAMES = [f"worker-{number}" for number in range(5)]


def agents(share: float, *, names: list[str] = NAMES, **more: Any) -> tuple[Board, list[Agent]]:
    board = Board(names)
    return board, [Agent(board, name, share=share, **more) for name in names]


def asked(board: Board) -> list[str]:
    return [node for node, deed, _ in board.deeds if deed == "ask"]


# --- the breaker


def test_of_four_of_five_accused_at_once_the_breaker_lets_one_go() -> None:
    board, all_of_them = agents(0.1)
    for one in all_of_them[:4]:
        one.accuse()
    run(all_of_them, for_s=600)
    assert asked(board) == ["worker-0"]
    refused = [one.name for one in all_of_them if one.kinds(kinds.REMEDY_REFUSED)]
    assert refused == ["worker-1", "worker-2", "worker-3"]
    for one in all_of_them[1:4]:
        told = one.kinds(kinds.REMEDY_REFUSED)
        assert len(told) == 1, "once, not each second"
        assert told[0].detail["why"] == "breaker"
        assert "worker-0 of 5 nodes within an hour" in told[0].evidence


def test_with_a_share_of_one_everybody_goes_and_nobody_waits() -> None:
    board, all_of_them = agents(1.0)
    for one in all_of_them:
        one.accuse()
    run(all_of_them, for_s=6)
    assert sorted(asked(board)) == NAMES


@given(
    size=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.1, 0.2, 0.34, 0.5]),
    data=st.data(),
)
def test_however_slow_anybody_is_never_more_go_than_may(size: int, share: float, data: st.DataObject) -> None:
    board, all_of_them = agents(share, names=[f"n{number:02}" for number in range(size)])
    most = max(1, int(size * share + 1e-9))
    starts = {}
    for one in all_of_them:
        one.hands.before_s = data.draw(st.sampled_from([0.0, 0.3, 1.0, 4.0, 9.0]))
        one.hands.after_s = data.draw(st.sampled_from([0.0, 0.3, 4.0]))
        starts[one.name] = data.draw(st.sampled_from([0.0, 0.1, 1.0, 2.0, 5.0, 60.0]))

    def accuse(now_s: float) -> None:
        for one in all_of_them:
            if starts.get(one.name, 1e9) <= now_s:
                del starts[one.name]
                one.accuse()

    run(all_of_them, for_s=400, each_s=0.5, at=accuse)
    assert 1 <= len(set(asked(board))) <= most


@pytest.mark.parametrize("later_s", [9.0, 9.75, 10.5, 12.0, 13.25])
def test_a_mark_that_arrives_late_lets_no_second_one_go(later_s: float) -> None:
    """The slow one is ruled to go before the quick one, whose name is smaller, claims; and marks that after it."""
    board, (quick, slow, *_) = agents(0.1)
    slow.hands.before_s = 4.0
    slow.accuse()
    run([slow, quick], for_s=later_s)
    assert board.marks.get("worker-0") is None
    quick.accuse()
    run([slow, quick], for_s=600)
    assert len(asked(board)) == 1


def test_an_hour_later_there_is_room_but_a_person_has_to_look() -> None:
    board, all_of_them = agents(0.1)
    for one in all_of_them[:2]:
        one.accuse()
    run(all_of_them, for_s=3 * 3600, each_s=5)
    assert asked(board) == ["worker-0"]
    board.marks["worker-1"] = Mark(node="worker-1", stage=Stage.ALLOW)
    run(all_of_them, for_s=60)
    assert asked(board) == ["worker-0", "worker-1"]


def test_an_agent_that_ended_with_a_claim_holds_up_nobody_for_ever() -> None:
    board, all_of_them = agents(0.1)
    board.marks["worker-0"] = Mark(node="worker-0", stage=Stage.CLAIM, since_s=1e9)
    all_of_them[1].accuse()
    run(all_of_them, for_s=60)
    assert asked(board) == []
    run(all_of_them, for_s=120)
    assert asked(board) == ["worker-1"]


def test_a_verdict_that_is_withdrawn_while_others_come_first_leaves_no_mark() -> None:
    board, all_of_them = agents(0.1)
    board.marks["worker-0"] = Mark(node="worker-0", stage=Stage.CLAIM, since_s=1e9)
    all_of_them[1].accuse()
    run(all_of_them, for_s=20)
    all_of_them[1].accuse(withdrawn=True)
    run(all_of_them, for_s=400)
    assert "worker-1" not in board.marks
    assert asked(board) == []


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
    board, (one, *_) = agents(1.0)
    one.accuse(**more)
    run([one], for_s=60)
    assert board.deeds == []
    assert one.told == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"mode": "observe"}, "observe"), ({"way": "none"}, "no-way"), ({"is_controller": True}, "controller")],
)
def test_where_nothing_may_be_done_it_is_said_once_and_nothing_is_touched(settings: dict[str, Any], why: str) -> None:
    board, (one, *_) = agents(1.0, **settings)
    one.accuse()
    run([one], for_s=60)
    assert board.deeds == []
    assert [told.detail["why"] for told in one.told] == [why]
    assert one.told[0].kind == kinds.REMEDY_REFUSED
    one.accuse(remedy=Remedy.REBOOT)
    run([one], for_s=60)
    assert len(one.told) == 2, "another remedy is said once more"


def test_of_several_faults_the_strongest_remedy_is_asked_for() -> None:
    board, (one, *_) = agents(1.0)
    one.accuse(incident="a", remedy=Remedy.REBOOT)
    one.accuse(incident="b", remedy=Remedy.REPLACE)
    run([one], for_s=10)
    assert [subject for _, deed, subject in board.deeds if deed == "ask"] == ["replace"]
    assert [told.detail["incident"] for told in one.kinds(kinds.REMEDY_REQUESTED)] == ["b"]


def test_a_gpu_that_cannot_be_reset_is_a_reboot() -> None:
    board, (one, *_) = agents(1.0)
    one.accuse(remedy=Remedy.RESET_GPU)
    run([one], for_s=20)
    assert [(deed, subject) for _, deed, subject in board.deeds if deed in ("reset", "ask")] == [
        ("reset", "0000:18:00"),
        ("ask", "reboot"),
    ]


# --- hand-over first, the node second


def test_ranks_leave_before_the_node_is_asked_for_and_their_task_is_requeued_after() -> None:
    board, (one, *_) = agents(1.0)
    one.jobs = [job()]
    one.accuse()
    run([one], for_s=8)
    (order,) = one.orders
    assert order[1].command == "hand-over"
    assert asked(board) == [], "the ranks have not left"
    one.answers = [(order[0], node_socket.Answer(order[1].id, "hand-over", "begun"))]
    run([one], for_s=5)
    assert asked(board) == []
    done = node_socket.Answer(order[1].id, "hand-over", "done", ranks=(0,), step=9, seconds=0.4)
    one.answers, one.jobs = [(order[0], done)], []
    run([one], for_s=5)
    assert [(deed, subject) for _, deed, subject in board.deeds if deed in ("ask", "requeue")] == [
        ("ask", "replace"),
        ("requeue", "13"),
    ]
    assert [(told.kind, told.detail.get("way")) for told in one.told] == [
        (kinds.REMEDY_REQUESTED, "runtime"),
        (kinds.HANDED_OVER, None),
        (kinds.REMEDY_REQUESTED, "slurm"),
    ]


def test_without_a_spare_a_fault_of_now_says_what_is_lost_and_goes_on() -> None:
    board, (one, *_) = agents(1.0)
    one.jobs = [job(spares=0)]
    one.accuse()
    run([one], for_s=10)
    assert [order.command for _, order in one.orders] == ["abandon"], "before Slurm's SIGTERM, which ends a job"
    (told,) = one.kinds(kinds.REMEDY_REQUESTED)
    assert "job 12 loses its ranks on this node: no spare has capacity" in told.evidence
    assert ("worker-0", "requeue", "13") in board.deeds


@pytest.mark.parametrize("when", [When.NOW, When.BOUNDARY])
@pytest.mark.parametrize("first", ["ours", "HyperPod's own agent"])
def test_a_spare_on_the_node_ends_and_its_task_waits_elsewhere(when: When, first: str) -> None:
    """Slurm would keep a failed node for as long as the spare waits there."""
    board, (one, *_) = agents(1.0)
    if first != "ours":
        board.foreign["worker-0"] = "the node is IDLE+FAIL with the reason 'Action:Replace' (root), which is not ours"
    one.jobs = [job(ranks=0, spare=True)]
    one.accuse(when=when)
    run([one], for_s=20)
    assert [order.command for _, order in one.orders] == ["abandon"]
    assert ("worker-0", "requeue", "13") in board.deeds
    assert not any("loses its ranks" in told.evidence for told in one.kinds(kinds.REMEDY_REQUESTED))


def test_a_hand_over_that_never_ends_does_not_keep_a_broken_node() -> None:
    board, (one, *_) = agents(1.0)
    one.jobs = [job()]
    one.accuse()
    run([one], for_s=50)
    assert asked(board) == []
    run([one], for_s=30)
    assert asked(board) == ["worker-0"]
    assert "did not leave in time" in one.kinds(kinds.REMEDY_REQUESTED)[-1].evidence


def test_a_fault_that_can_wait_is_asked_for_at_once_on_slurm_which_waits_for_the_jobs() -> None:
    board, (one, *_) = agents(1.0)
    one.jobs = [job(spares=0)]
    one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    run([one], for_s=30)
    assert asked(board) == ["worker-0"]
    assert ("worker-0", "requeue", "13") not in board.deeds, "the job goes on"
    assert not any(deed == "force" for _, deed, _ in board.deeds)


@pytest.mark.parametrize("way", ["label", "api"])
def test_a_fault_that_can_wait_waits_where_the_node_would_be_taken_at_once(way: str) -> None:
    board, (one, *_) = agents(1.0, way=way)
    one.jobs = [job(spares=0)]
    board.jobs["worker-0"] = [Job("12", "12_0", "13", "ubuntu")]
    one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    run([one], for_s=3600, each_s=2)
    assert asked(board) == []
    one.jobs, board.jobs = [], {}
    run([one], for_s=40)
    assert asked(board) == ["worker-0"]


def test_a_spare_that_comes_later_takes_the_ranks_of_a_node_that_waits() -> None:
    _, (one, *_) = agents(1.0, way="label")
    one.jobs = [job(spares=0)]
    one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    run([one], for_s=60)
    assert one.orders == []
    one.jobs = [job(spares=1)]
    run([one], for_s=10)
    assert [command.command for _, command in one.orders] == ["hand-over"]


@pytest.mark.parametrize("outcome", ["later", "failed"])
def test_a_launcher_that_had_no_room_in_the_end_is_asked_again_when_it_says_that_it_has(outcome: str) -> None:
    """It said so before it knew that the spare was taken."""
    _, (one, *_) = agents(1.0, way="label")
    one.jobs = [job(received_s=1.0)]
    one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    run([one], for_s=5)
    one.answers = [(one.jobs[0], node_socket.Answer(one.orders[0][1].id, "hand-over", outcome, reason="0 are there"))]
    run([one], for_s=5)
    assert len(one.orders) == 1, "nothing newer was said"
    one.jobs = [job(received_s=2.0, spares=0)]
    run([one], for_s=5)
    assert len(one.orders) == 1
    one.jobs = [job(received_s=3.0)]
    run([one], for_s=5)
    assert [command.command for _, command in one.orders] == ["hand-over"] * 2
    assert len(one.kinds(kinds.REMEDY_REQUESTED)) == 1, "one wish, told once"


def test_a_launcher_that_can_never_give_its_ranks_away_is_asked_once() -> None:
    _, (one, *_) = agents(1.0, way="label")
    one.jobs = [job(received_s=1.0)]
    one.accuse(when=When.BOUNDARY, remedy=Remedy.REBOOT)
    run([one], for_s=5)
    one.answers = [
        (one.jobs[0], node_socket.Answer(one.orders[0][1].id, "hand-over", "refused", reason="the job ends"))
    ]
    one.jobs = [job(received_s=2.0)]
    run([one], for_s=60)
    assert len(one.orders) == 1


def test_down_comes_only_where_nothing_but_what_was_handed_over_is_left() -> None:
    board, (one, *_) = agents(1.0)
    one.jobs = [job()]
    board.jobs["worker-0"] = [Job("12", "12_0", "13", "ubuntu"), Job("99", "99", "99", "eve")]
    one.accuse()
    run([one], for_s=5)
    done = node_socket.Answer(one.orders[0][1].id, "hand-over", "done", ranks=(0,), step=9)
    one.answers, one.jobs = [(one.orders[0][0], done)], []
    run([one], for_s=300)
    assert not any(deed == "force" for _, deed, _ in board.deeds), "job 99 still runs"
    board.jobs["worker-0"] = board.jobs["worker-0"][:1]
    run([one], for_s=30)
    assert any(deed == "force" for _, deed, _ in board.deeds)


# --- beside HyperPod's own agent and people


def test_hyperpods_mark_is_respected_and_ranks_still_leave() -> None:
    board, (one, *_) = agents(1.0)
    board.foreign["worker-0"] = "the node is IDLE+FAIL with the reason 'Action:Replace' (root), which is not ours"
    one.jobs = [job()]
    one.accuse()
    run([one], for_s=1200, each_s=2)
    assert asked(board) == []
    assert len(one.orders) == 1
    assert [told.detail["why"] for told in one.kinds(kinds.REMEDY_REFUSED)] == ["under-way"]
    run([one], for_s=1200, each_s=2)
    assert [told.detail["why"] for told in one.kinds(kinds.REMEDY_REFUSED)] == ["under-way", "stalled"]


def test_a_persons_reason_is_never_overwritten_and_the_node_is_asked_for_when_it_is_gone() -> None:
    board, (one, *_) = agents(1.0)
    board.foreign["worker-0"] = "the node is IDLE+DRAIN with the reason 'new cables' (eve), which is not ours"
    one.accuse()
    run([one], for_s=200)
    assert asked(board) == []
    assert [told.detail["why"] for told in one.told] == ["foreign"]
    board.foreign.clear()
    run([one], for_s=60)
    assert asked(board) == ["worker-0"]


def test_what_a_person_takes_back_is_not_asked_for_again() -> None:
    board, (one, *_) = agents(1.0)
    one.accuse()
    run([one], for_s=20)
    board.reasons.clear()
    run([one], for_s=600)
    assert asked(board) == ["worker-0"]
    assert [told.detail["why"] for told in one.kinds(kinds.REMEDY_REFUSED)] == ["taken-back"]


def test_a_verdict_that_is_withdrawn_before_the_node_is_asked_for_changes_nothing() -> None:
    board, (one, *_) = agents(0.1)
    one.accuse()
    run([one], for_s=0.6)
    one.accuse(withdrawn=True)
    run([one], for_s=120)
    assert asked(board) == []
    assert board.marks == {}
    assert one.kinds(kinds.REMEDY_REQUESTED) == []


def test_slurm_away_for_ten_minutes_is_said_once_and_waited_for() -> None:
    board, (one, *_) = agents(1.0)
    board.away = True
    one.accuse()
    run([one], for_s=600)
    assert [told.detail["why"] for told in one.told] == ["unanswered"]
    board.away = False
    run([one], for_s=60)
    assert asked(board) == ["worker-0"]


# --- killed at any moment


@given(
    kills=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=4),
    share=st.sampled_from([0.1, 1.0]),
    way=st.sampled_from(["slurm", "label", "api"]),
)
def test_killed_at_any_moment_a_remedy_is_neither_lost_nor_doubled(kills: list[float], share: float, way: str) -> None:
    board, (one, *_) = agents(share, way=way)
    board.is_blind = way == "api"
    one.hands.after_s = 0.3
    pending = sorted(kills)

    def kill(now_s: float) -> None:
        while pending and pending[0] <= now_s:
            pending.pop(0)
            one.kill()

    one.accuse()
    run([one], for_s=120, at=kill)
    assert set(asked(board)) == {"worker-0"}
    assert board.reasons == {"worker-0": "replace"}
    assert len(one.kinds(kinds.REMEDY_REQUESTED)) == 1


def test_a_node_that_was_rebooted_with_its_agent_does_not_ask_again() -> None:
    board, (one, *_) = agents(1.0)
    one.accuse(remedy=Remedy.REBOOT)
    run([one], for_s=20)
    assert board.reasons == {"worker-0": "reboot"}
    board.reasons.clear()
    one.kill()
    run([one], for_s=600)
    assert asked(board) == ["worker-0"]
    assert one.remediator.phase == "idle"


def test_a_snapshot_that_is_none_is_not_taken() -> None:
    _, (one, *_) = agents(1.0)
    bad_ones: list[dict[str, Any]] = [{}, {"needs": [], "plan": {}}, {"needs": {}, "plan": {"phase": "dancing"}}]
    for bad in bad_ones:
        assert not one.remediator.restore(bad)


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
    board, (one, *_) = agents(1.0)
    one.jobs = [with_step(5)]
    one.accuse(**CRASHED)
    run([one], for_s=29)
    assert one.orders == []
    run([one], for_s=600)
    ((_, order),) = one.orders
    assert (order.command, order.ranks) == ("restart", (0,))
    (told,) = one.kinds(kinds.REMEDY_REQUESTED)
    assert (told.action, told.detail["way"], told.job) == ("restart-process", "runtime", "12")
    assert board.deeds == [], "the node is nowhere asked for"


def test_a_process_that_makes_steps_is_left_alone_whatever_the_kernel_said() -> None:
    _, (one, *_) = agents(1.0)
    one.jobs = [with_step(5)]
    one.accuse(**CRASHED)
    run([one], for_s=20)
    one.jobs = [with_step(6)]
    run([one], for_s=600)
    assert (one.orders, one.told) == ([], [])


@pytest.mark.parametrize("pids", [(), (1,), (99999,)])
def test_a_process_that_no_launcher_owns_is_nobodys(pids: tuple[int, ...]) -> None:
    _, (one, *_) = agents(1.0)
    one.jobs = [with_step(5)]
    one.accuse(**{**CRASHED, "pids": pids})
    run([one], for_s=900)
    assert (one.orders, one.told) == ([], [])


def test_who_only_observes_says_which_rank_would_begin_anew() -> None:
    _, (one, *_) = agents(1.0, mode="observe")
    one.jobs = [with_step(5)]
    one.accuse(**CRASHED)
    run([one], for_s=60)
    assert one.orders == []
    (told,) = one.told
    assert (told.kind, told.detail["why"]) == (kinds.REMEDY_REFUSED, "observe")


def test_killed_meanwhile_a_process_is_started_anew_once() -> None:
    _, (one, *_) = agents(1.0)
    one.jobs = [with_step(5)]
    one.accuse(**CRASHED)
    for _ in range(6):
        run([one], for_s=10)
        one.kill()
        one.accuse(**CRASHED)
    assert len(one.orders) == 1


# --- a task of Slurm's


class Scontrol(Program):
    """Answers as Slurm 22.05 does for an array of two, whose last task has the array's number."""

    def __init__(self) -> None:
        super().__init__()
        self.requeued: list[str] = []

    def run(self, argv: Sequence[str]) -> str:
        if argv[1] == "requeue":
            self.requeued.append(argv[2])
            return ""
        shared = "Requeue=1 NumNodes=1"
        return "".join(
            f"JobId={number} ArrayJobId=1 ArrayTaskId={task} JobState={state} NodeList={host} {shared}\n"
            for number, task, state, host in ((1, 1, "FAILED", "worker-1"), (2, 0, "RUNNING", "worker-0"))
            if argv[-1] in ("1", str(number))
        )


@pytest.mark.parametrize(("task", "host", "name"), [("1", "worker-1", "1_1"), ("2", "worker-0", "1_0")])
def test_one_task_of_an_array_is_requeued_and_never_all_of_them(task: str, host: str, name: str) -> None:
    program = Scontrol()
    hands = Hands(settings=RemedySettings(mode="act", way="slurm", host=host), program=program)
    answer = hands.do(Request(number=1, deed="requeue", subject=task))
    assert (answer.outcome, program.requeued) == ("done", [name])
    other = Hands(settings=RemedySettings(mode="act", way="slurm", host="worker-7"), program=program)
    assert other.do(Request(number=1, deed="requeue", subject=task)).outcome == "refused"
    assert program.requeued == [name]


# --- words and settings


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"number": 1, "deed": "ask", "remedy": "replace"}',
        b'{"number": 1, "deed": "ask", "remedy": "replace", "subject": "", "node": "worker-7"}',
        b'{"number": 1, "deed": "ask", "remedy": "explode", "subject": ""}',
        b'{"number": 1, "deed": "ask", "remedy": "replace", "subject": "worker-7"}',
        b'{"number": 1, "deed": "run", "remedy": "", "subject": "rm"}',
        b'{"number": 1, "deed": "requeue", "remedy": "", "subject": "13; reboot"}',
        b'{"number": 1, "deed": "reset", "remedy": "", "subject": "../../x"}',
        b'{"number": true, "deed": "look", "remedy": "", "subject": ""}',
    ],
)
def test_the_hands_know_few_words_and_none_for_another_node(line: bytes) -> None:
    with pytest.raises(WordsError):
        parse_request(line)


def test_labels_are_of_kubernetes_and_slurm_knows_short_names() -> None:
    slurm = RemedySettings.of(Configuration(remedies_way="slurm", node_host="ip-10-1-0-4.ec2.internal"))
    label = RemedySettings.of(Configuration(remedies_way="label", node_host="hyperpod-i-1"))
    assert (slurm.orchestrator, slurm.host) == ("slurm", "ip-10-1-0-4")
    assert (label.orchestrator, label.host) == ("eks", "hyperpod-i-1")
