"""What is done with a node that nobody needs: it is tried out, left at once, and believed when it fails twice."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_parts import instant, told
from simulated_nodes import job
from waiting import eventually

from holdfast_agent.idle import Agreement, IdleCheck, IdleSchedule, Look, Turn, needed_by
from holdfast_agent.launchers import JobReport
from holdfast_agent.signals import Happening, Signal
from holdfast_agent.verdicts import Engine, Policy
from holdfast_common import Remedy, When, kinds

HOUR_S = 3600.0


def spare(**more: Any) -> JobReport:
    return job(ranks=0, **more)


# --- when


def turns(time: IdleSchedule, looks: list[Look], *, running: bool = False) -> list[Turn]:
    return [time.decide(look, running=running) for look in looks]


def test_an_idle_node_is_tried_out_again_after_an_hour_and_not_in_a_pause_between_jobs() -> None:
    time = IdleSchedule(repeat_s=HOUR_S, began_s=0.0)
    assert set(turns(time, [Look(boot_s=second) for second in range(0, 3600, 60)])) == {Turn.NOTHING}
    assert time.decide(Look(boot_s=3600.0), running=False) is Turn.START
    busy = IdleSchedule(repeat_s=HOUR_S, began_s=0.0)
    busy.decide(Look(boot_s=3700.0, needed="job 1"), running=False)
    assert turns(busy, [Look(boot_s=3701.0), Look(boot_s=3900.0)]) == [Turn.NOTHING, Turn.NOTHING]
    assert busy.decide(Look(boot_s=4001.0), running=False) is Turn.START


def test_what_a_verdict_asks_for_is_done_at_the_boundary_and_once() -> None:
    time, due = IdleSchedule(repeat_s=0.0, began_s=0.0), frozenset({"i1"})
    assert time.decide(Look(boot_s=1.0, needed="job 1", due=due), running=False) is Turn.NOTHING
    assert turns(time, [Look(boot_s=2.0, due=due), Look(boot_s=7.0, due=due)]) == [Turn.NOTHING, Turn.START]
    time.ended((), Look(boot_s=12.0, due=due))
    assert set(turns(time, [Look(boot_s=second, due=due) for second in range(13, 9000, 60)])) == {Turn.NOTHING}
    assert time.decide(Look(boot_s=9001.0, due=frozenset({"i1", "i2"})), running=False) is Turn.START


def test_it_is_left_at_once_and_begun_again_at_the_next_boundary() -> None:
    time, due = IdleSchedule(repeat_s=0.0, began_s=0.0), frozenset({"i1"})
    turns(time, [Look(boot_s=0.0, due=due), Look(boot_s=5.0, due=due)])
    assert time.decide(Look(boot_s=6.0, needed="job 2", due=due), running=True) is Turn.LEAVE
    assert time.left == 1
    assert turns(time, [Look(boot_s=7.0, due=due), Look(boot_s=12.0, due=due)]) == [Turn.NOTHING, Turn.START]


def test_a_node_of_which_something_else_is_asked_is_not_tried_out() -> None:
    time, due = IdleSchedule(repeat_s=HOUR_S, began_s=0.0), frozenset({"i1"})
    looks = [Look(boot_s=second, due=due, is_sound=False) for second in range(0, 9000, 60)]
    assert set(turns(time, looks)) == {Turn.NOTHING}


def test_one_failure_is_no_finding_and_two_in_a_row_are() -> None:
    time = IdleSchedule(repeat_s=HOUR_S, began_s=0.0)
    time.decide(Look(boot_s=3000.0), running=False)
    time.ended(("memory: 1 block",), Look(boot_s=3600.0))
    assert not time.found
    assert time.decide(Look(boot_s=3601.0), running=False) is Turn.START, "again at once"
    time.ended((), Look(boot_s=3610.0))
    assert not time.found
    for boot_s in (7300.0, 7310.0):
        time.ended(("memory: 1 block",), Look(boot_s=boot_s))
    assert time.found == ("memory: 1 block",)


def test_after_a_restart_of_the_agent_nothing_is_done_twice() -> None:
    time, due = IdleSchedule(repeat_s=HOUR_S, began_s=0.0), frozenset({"i1"})
    time.ended((), Look(boot_s=100.0, due=due))
    again = IdleSchedule(repeat_s=HOUR_S, began_s=200.0)
    again.restore(json.loads(json.dumps(time.snapshot())))
    assert not again.is_due(Look(boot_s=300.0, due=due))


# --- who needs a node


def process(proc: Path, pid: int, *, name: str, line: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    (proc / str(pid) / "cmdline").write_text(line)


def test_ranks_and_jobs_that_say_nothing_need_a_node_and_a_spare_does_not(tmp_path: Path) -> None:
    process(tmp_path, 9, name="slurmd", line="slurmd\0-D")
    process(tmp_path, 10, name="slurmstepd", line="/usr/sbin/slurmstepd\0infinity")
    assert needed_by([], proc=str(tmp_path)) == ""
    process(tmp_path, 11, name="slurmstepd", line="slurmstepd: [13.batch]\0")
    assert needed_by([], proc=str(tmp_path)) == "job 13 runs here"
    assert needed_by([spare(task="13")], proc=str(tmp_path)) == ""
    assert needed_by([job(name="12", task="13")], proc=str(tmp_path)) == "job 12 has ranks on this node"
    process(tmp_path, 12, name="slurmstepd", line="slurmstepd: [14.0]\0")
    assert needed_by([spare(task="13")], proc=str(tmp_path)) == "job 14 runs here"


# --- the check as a program


def check_of(tmp_path: Path, script: str, **more: Any) -> IdleCheck:
    (tmp_path / "check.py").write_text(script)
    given: dict[str, Any] = {
        "command": [sys.executable, str(tmp_path / "check.py")],
        "seconds": 1.0,
        "repeat_s": 0.0,
        "why_not": "",
        "jobs": tuple,
        "due": lambda: frozenset({"i1"}),
        "is_sound": lambda: True,
        "began_s": 0.0,
        "needed": lambda jobs: "",
    }
    return IdleCheck(**{**given, **more})


def looked(check: IdleCheck, until: Callable[[list[Any]], bool], *, from_s: float) -> list[Any]:
    seen: list[Any] = []
    time_s = [from_s]

    def look() -> bool:
        seen.extend(check.look(instant(time_s[0])))
        time_s[0] += 0.01
        return until(seen)

    eventually(look, "not seen")
    return seen


def test_a_check_that_passes_qualifies_the_node_and_names_what_it_was_due_for(tmp_path: Path) -> None:
    check = check_of(tmp_path, "import json; print(json.dumps({'trial_problems': []}))")
    check.look(instant(0.0))
    seen = looked(check, lambda seen: any(isinstance(one, Happening) for one in seen), from_s=5.0)
    (qualified,) = [one for one in seen if isinstance(one, Happening)]
    assert (qualified.kind, qualified.detail["incident"]) == (kinds.NODE_QUALIFIED, "i1")
    check.close()


def test_only_what_the_trials_found_twice_takes_the_node(tmp_path: Path) -> None:
    script = (
        "import json, sys; print(json.dumps({'problems': ['check-failed: fan'], 'trial_problems': sys.argv[1:]})); "
        "sys.exit(1)"
    )
    check = check_of(tmp_path, script, command=[sys.executable, str(tmp_path / "check.py"), "compute: wrong"])
    check.look(instant(0.0))
    seen = looked(check, lambda seen: bool(told(seen)), from_s=5.0)
    assert told(seen) == [("burn-in-failed", "", False)]
    (found,) = [one for one in seen if isinstance(one, Signal)]
    (verdict,) = Engine(policy=Policy.standard()).see(found)
    assert (verdict.remedy, verdict.when) == (Remedy.REPLACE, When.NOW)
    check.close()


@pytest.mark.parametrize("script", ["import sys; sys.exit(1)", "import sys; sys.exit(3)", "print('[]')", "1 / 0"])
def test_a_check_that_cannot_be_done_accuses_nobody(tmp_path: Path, script: str) -> None:
    due = [frozenset({"i1"})]
    check = check_of(tmp_path, script, due=lambda: due[0])
    check.look(instant(0.0))
    check.look(instant(5.0))
    eventually(lambda: not check.look(instant(5.1)) and not check.processes(), "it does not end")
    assert told(check.look(instant(900.0))) == []
    check.close()


def test_somebody_who_needs_the_node_has_it_at_once(tmp_path: Path) -> None:
    needed = [""]
    check = check_of(tmp_path, "import time; time.sleep(600)", needed=lambda jobs: needed[0])
    check.look(instant(0.0))
    check.look(instant(5.0))
    assert check.processes()
    needed[0] = "job 12 has ranks on this node"
    assert check.due_in_s(instant(5.0)) <= 0.2
    check.look(instant(5.2))
    eventually(lambda: not check.look(instant(5.4)) and not check.processes(), "it goes on")
    assert check.numbers["holdfast_idle_checks_total", (("outcome", "left"),)] == 1.0
    check.close()


# --- jobs that agree


def restarted(number: int, *, uid: int, name: str, pid: int) -> list[JobReport]:
    """The same launcher before and after one of its processes ended."""
    before = job(name=name, pid=pid, uid=uid)
    after = job(name=name, pid=pid + 50, uid=uid)
    return [replace(one, connection=number, pid=pid) for one in (before, after)]


def heard(agreement: Agreement, reports: list[JobReport], *, boot_s: float) -> str:
    said = ""
    for report in reports:
        said = agreement.hear([report], boot_s=boot_s)
    return said


def test_jobs_of_two_users_agree_and_two_of_one_user_do_not() -> None:
    agreement = Agreement()
    assert heard(agreement, restarted(1, uid=1000, name="12", pid=100), boot_s=10.0) == ""
    assert heard(agreement, restarted(2, uid=1000, name="13", pid=300), boot_s=20.0) == ""
    said = heard(agreement, restarted(3, uid=1001, name="14", pid=500), boot_s=30.0)
    assert "13 of user 1000, 14 of user 1001" in said


def test_jobs_of_two_users_an_hour_apart_say_nothing() -> None:
    agreement = Agreement()
    heard(agreement, restarted(1, uid=1000, name="12", pid=100), boot_s=0.0)
    assert heard(agreement, restarted(2, uid=1001, name="13", pid=300), boot_s=3700.0) == ""


def test_jobs_that_end_or_hand_over_have_lost_nothing() -> None:
    agreement = Agreement()
    for number, uid in ((1, 1000), (2, 1001)):
        runs = replace(job(uid=uid, pid=100 * number), connection=number)
        gives = replace(runs, ranks=tuple(replace(rank, rank=-1) for rank in runs.ranks))
        ends = replace(runs, ranks=())
        assert heard(agreement, [runs, gives, ends], boot_s=number) == ""


def test_agreeing_jobs_have_the_node_measured_and_never_taken() -> None:
    signal = Signal(condition="jobs-agree", boot_s=5.0, evidence="processes of jobs 12 and 13 ended here")
    (verdict,) = Engine(policy=Policy.standard()).see(signal)
    assert (verdict.remedy, verdict.check, verdict.when) == (Remedy.NONE, True, When.BOUNDARY)
