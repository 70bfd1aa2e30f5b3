"""The log of a job is written once: so many lines at the start and per recovery, whatever its size."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast_common import EventLog
from holdfast_runtime.launcher.asking import Situation, default_job, find_sockets, spare_of, waits_for
from holdfast_runtime.launcher.generation import Journal, Record, describe_view, ranges
from holdfast_runtime.membership import RankStatus, Slot, View
from holdfast_runtime.patience import ProgressReport

SIZES = (5, 256, 1024)
AT_THE_START, PER_RECOVERY = 12, 6


class Job:
    """All launchers of a job, in one process, and what they write into its output."""

    def __init__(self, size: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.up, self._capsys = set(range(size)), capsys
        self.launchers = [
            Journal(node=node, as_json=False, events=EventLog(path=None, source="job"), leads=self._leads(node))
            for node in range(size)
        ]
        ranks = tuple(RankStatus(slot=Slot(node, 0), rank=node, port=1) for node in range(size - 1))
        self.view = View(generation=2, nodes=(0,) * size, ranks=ranks, spares=(Slot(size - 1, 0),))

    def _leads(self, node: int) -> Callable[[], bool]:
        return lambda: node == min(self.up)

    def lines(self) -> list[str]:
        return self._capsys.readouterr().err.splitlines()

    def begin(self) -> None:
        self.launchers[0].say("this allocation survives the loss of a node: yes")
        for launcher in self.launchers:
            launcher.tell("witness: connected")
            launcher.tell("state in memory: any one node may be lost")
            launcher.view(self.view, seconds=0.0, moved={}, recovered=False)
            launcher.tell("quorum: tolerates the loss of 2 of 5 launchers")

    def lose(self, gone: range) -> None:
        """All launchers that are left see the loss and agree on the view without those."""
        self.up -= set(gone)
        nodes = tuple(-1 if node in gone else 0 for node in range(len(self.launchers)))
        after = replace(self.view, generation=self.view.generation + 1, nodes=nodes, spares=(), resume_step=9)
        for node in sorted(self.up):
            for lost in gone:
                self.launchers[node].tell_lost(lost, f"node {lost} is lost: its connection was closed")
            self.launchers[node].tell(f"starting generation 3: node {gone[0]} is lost")
            moved = {rank: len(nodes) - 1 for rank in gone}
            self.launchers[node].view(after, seconds=0.1, moved=moved, recovered=True)
            self.launchers[node].tell("quorum: tolerates the loss of 1 of 5 launchers")


@pytest.mark.parametrize("size", SIZES)
def test_a_job_of_any_size_has_as_few_lines(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(size, capsys)
    job.begin()
    began = job.lines()
    assert 0 < len(began) <= AT_THE_START
    assert all("node 0: " in line for line in began)

    job.lose(range(1, 2) if size == SIZES[0] else range(16, 48))
    lost = job.lines()
    assert 0 < len(lost) <= PER_RECOVERY, lost
    assert max(map(len, began + lost)) < 250, "a list of nodes is ranges"
    assert ("lost nodes 1" if size == SIZES[0] else "lost nodes 16-47") in "".join(lost)


def test_another_launcher_is_the_leader_when_it_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(5, capsys)
    job.lose(range(1))
    assert {line.split("holdfast-run: ")[1].split(":")[0] for line in job.lines()} == {"node 1"}


def test_at_level_debug_and_in_a_file_each_launcher_writes_all(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "launcher-3.log").open("w") as file:
        events = EventLog(path=None, source="job")
        quiet = Journal(node=3, as_json=False, events=events, leads=lambda: False, file=file)
        quiet.tell("of the job")
        quiet.note("of this node")
        quiet.say("nobody else knows")
        Journal(node=4, as_json=False, events=events, leads=lambda: False, debug=True).note("all of it")
    written = capsys.readouterr().err
    assert [line.rpartition(": ")[2] for line in written.splitlines()] == ["nobody else knows", "all of it"]
    assert len((tmp_path / "launcher-3.log").read_text().splitlines()) == 3


def test_numbers_are_ranges() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([]) == ""
    view = View(generation=3, nodes=(0, -1, 0), resume_step=4, lost_steps=1)
    said = describe_view(view, seconds=0.05, moved={2: 0, 1: 0}, lost={1})
    assert said == (
        "generation 3: 0 ranks on nodes 0,2, 0 spares ready, step 4, 1 committed steps are done again; lost nodes 1; "
        "spares of nodes 0 take ranks 1-2; agreed in 50 ms"
    )


def test_metrics_have_all_digits_of_a_step() -> None:
    journal = Journal(node=2, as_json=False, events=EventLog(path=None, source="job"))
    assert 'holdfast_step{node="2"} 12345678\n' in journal.metrics({"step": 12345678})


def test_the_last_line_has_steps_time_goodput_and_faults() -> None:
    now_s = 0.0
    slots: Any = type("Slots", (list,), {})([SimpleNamespace(rank=0)])
    slots.in_process = True
    journal: Any = SimpleNamespace(event_at=lambda *_args, **_kw: None, recoveries=1, steps_lost=0)
    record = Record(slots=slots, journal=journal, instance="", clock=lambda: round(now_s * 1e9))
    assert record.summary() == "", "a job that never ran has none"
    assert record.gauges == {}
    view = View(generation=2, nodes=(0,), ranks=(RankStatus(slot=Slot(0, 0), rank=0, port=1),), sources=("memory",))
    said: Any = {0: SimpleNamespace(instance="", copy_s=0.0)}
    now_s = 10.0
    record.installed(view)
    record.settled(view, said)
    for step in range(1, 51):
        now_s += 1.0
        record.moved(step=step, loss=1.0, of_first=True)
    record.troubled(planned=False)
    now_s += 20.0
    record.installed(replace(view, generation=3, resume_step=50))
    record.settled(replace(view, generation=3, resume_step=50), said)
    now_s += 20.0
    record.moved(step=70, loss=1.0, of_first=True, total=105)
    assert record.gauges == {"goodput_ratio": pytest.approx(7 / 9), "steps": 105, "remaining_seconds": 45.0}
    assert record.summary() == "70 steps in 1 min 30 s, goodput 77.8 %, 1 fault survived, 0 steps done again"


def now(**known: Any) -> Situation:
    empty: dict[str, Any] = {"generation": 2, "missing": [], "requested": "", "staying": [], "starting": 0}
    return Situation(**{**empty, "unanswered": [], "reports": [], "world_size": 4, **known})


@pytest.mark.parametrize(
    ("situation", "says"),
    [
        (now(generation=0, missing=[3, 4]), "launchers of nodes 3-4"),
        (now(generation=0, starting=2), "2 processes of this node to be ready"),
        (now(requested="node 3 is lost", staying=[1]), "ranks 1 of this node to leave generation 2"),
        (now(requested="node 3 is lost", unanswered=[2, 4]), "answers of nodes 2,4"),
        (now(), ""),
    ],
)
def test_status_names_who_is_waited_for(situation: Situation, says: str) -> None:
    assert waits_for(situation) == says


def test_a_rank_that_waits_is_not_named_as_the_one_that_is_waited_for() -> None:
    reports = [
        ProgressReport(0, 7, "vote", 3.0),
        ProgressReport(1, 7, "forward", 2.5),
        ProgressReport(2, 7, "vote", 3.0),
    ]
    assert waits_for(now(reports=reports)) == "rank 1, in phase forward of step 7 for 2.5 s; ranks 0,2 wait for it"
    waiting = [report for report in reports if report.phase == "vote"]
    assert waits_for(now(reports=waiting)) == "ranks of other nodes; ranks 0,2 of this one have voted on step 7"


def test_status_says_how_a_lost_node_comes_back() -> None:
    assert "no spare until the job ends" in spare_of(lost=[2], spares=0, answer="none")
    assert spare_of(lost=[2], spares=0, answer="expand") == "waits for Slurm to give a node in place of 2"
    assert spare_of(lost=[2], spares=1, answer="none") == spare_of(lost=[], spares=0, answer="none") == ""


def test_status_finds_the_sockets_of_its_node(tmp_path: Any) -> None:
    for name in ("7-0.sock", "7-3.sock", "a-b-1.sock", "other.sock"):
        (tmp_path / name).touch()
    found = find_sockets([tmp_path])
    assert [(one.run, one.node) for one in found] == [("7", 0), ("7", 3), ("a-b", 1)]
    assert [one.node for one in find_sockets([tmp_path], job="7")] == [0, 3]
    assert [one.run for one in find_sockets([tmp_path], run="a-b")] == ["a-b"]
    assert len(find_sockets([tmp_path], job="9")) == 3, "those of other jobs where this one has none"
    assert default_job({"SLURM_JOB_ID": "8", "SLURM_ARRAY_JOB_ID": "7"}) == "7"


@pytest.mark.parametrize("module", ["runs", "launcher", "witness"])
def test_a_module_that_job_files_run_writes_no_warning_of_its_own(module: str, repository: Path) -> None:
    folders = [str(repository / "containers" / part) for part in ("training", "common")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", f"holdfast_runtime.{module}", "--help"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
