"""Agents of many nodes with one board that all see, in virtual time: what the breaker and the plan are tried on."""

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from holdfast_agent.launchers import JobReport
from holdfast_agent.remedies import Answer, Job, Mark, Remediator, RemedySettings, Request, Stage, View
from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Evidence, Verdict
from holdfast_common import Remedy, Severity, When, node_socket


class Board:
    """The marks and states of all nodes; every read and write happens at one instant."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.marks: dict[str, Mark] = {}
        self.reasons: dict[str, str] = {}
        self.foreign: dict[str, str] = {}
        self.jobs: dict[str, list[Job]] = {}
        self.now_s = 0.0
        self.deeds: list[tuple[str, str, str]] = []
        self.away = False
        self.is_blind = False
        """What is asked for is not to be seen at the node, as with the API."""

    def view(self, me: str) -> View:
        ours = me in self.marks and self.marks[me].stage is Stage.ASKED
        asked = "" if self.is_blind else self.reasons.get(me, "")
        return View(
            me=me,
            nodes=len(self.names),
            marks=tuple(self.marks.values()),
            now_s=1e9 + self.now_s,
            jobs=tuple(self.jobs.get(me, [])),
            foreign=self.foreign.get(me, ""),
            asks=asked or ("replace" if "Action:Replace" in self.foreign.get(me, "") else ""),
            is_asked=bool(ours and asked),
        )

    def do(self, me: str, request: Request) -> Answer:
        answer: dict[str, Any] = {"number": request.number, "deed": request.deed}
        if self.away:
            return Answer(**answer, outcome="failed", why="slurmctld does not answer")
        self.deeds.append((me, request.deed, request.remedy or request.subject))
        if request.deed == "ask":
            self.deeds += [(me, "requeue", task) for task in request.subject.split(",") if task]
        view = self.view(me)
        if request.deed == "claim":
            if view.foreign:
                return Answer(**answer, outcome="in-use" if view.asks else "refused", why=view.foreign, view=view)
            if view.is_asked:
                return Answer(**answer, outcome="in-use", why="request already pending for this node", view=view)
            if me not in self.marks or self.marks[me].stage is not Stage.ALLOW:
                self._mark(me, Stage.CLAIM)
        elif request.deed == "go":
            self._mark(me, Stage.ASKED)
        elif request.deed == "refuse":
            self._mark(me, Stage.REFUSED)
        elif request.deed == "clear":
            self.marks.pop(me, None)
        elif request.deed in ("ask", "force"):
            self.reasons[me] = request.remedy
        elif request.deed == "reset":
            return Answer(**answer, outcome="refused", why="nvidia-smi: no such program")
        return Answer(**answer, outcome="done", view=view if request.deed in ("look", "claim") else None)

    def _mark(self, me: str, stage: Stage) -> None:
        self.marks[me] = Mark(node=me, stage=stage, since_s=1e9 + self.now_s)


class Hands:
    """Of one node: requests take effect after ``before_s``, answers arrive ``after_s`` later."""

    def __init__(self, board: Board, name: str, *, before_s: float = 0.0, after_s: float = 0.0) -> None:
        self.board, self.name, self.before_s, self.after_s = board, name, before_s, after_s
        self.due: list[tuple[float, Request]] = []
        self.ready: list[tuple[float, Answer]] = []

    def send(self, request: Request, *, boot_s: float) -> None:
        self.due.append((boot_s + self.before_s, request))

    def receive(self, *, boot_s: float) -> tuple[Answer, ...]:
        found = tuple(answer for time_s, answer in self.ready if time_s <= boot_s)
        self.ready = [one for one in self.ready if one[0] > boot_s]
        return found

    def act(self, now_s: float) -> None:
        for time_s, request in [*self.due]:
            if time_s <= now_s:
                self.due.remove((time_s, request))
                self.ready.append((now_s + self.after_s, self.board.do(self.name, request)))

    def close(self) -> None: ...


class Agent:
    """The remedies of one node, as its service would call them."""

    def __init__(self, board: Board, name: str, *, share: float = 0.1, way: str = "slurm", **more: Any) -> None:
        self.board, self.name = board, name
        self.settings = RemedySettings(mode=more.pop("mode", "act"), way=way, share=share, host=name, **more)
        self.hands = Hands(board, name)
        self.told: list[Happening] = []
        self.orders: list[tuple[JobReport, node_socket.Command]] = []
        self.jobs: list[JobReport] = []
        self.answers: list[tuple[JobReport, node_socket.Answer]] = []
        self.verdicts: list[Verdict] = []
        self.remediator = self._new()

    def _new(self) -> Remediator:
        return Remediator(settings=self.settings, tell=self._tell, boot_s=self.board.now_s, hands=self.hands)

    def _tell(self, job: JobReport, command: node_socket.Command) -> bool:
        self.orders.append((job, command))
        return True

    def kill(self) -> None:
        """SIGKILL, and started again from the last snapshot."""
        snapshot = self.remediator.snapshot()
        before = self.hands
        self.hands = Hands(self.board, self.name, before_s=before.before_s, after_s=before.after_s)
        self.remediator = self._new()
        assert self.remediator.restore(snapshot)

    def accuse(self, **more: Any) -> None:
        self.verdicts.append(verdict(**more))

    def consider(self) -> None:
        self.hands.act(self.board.now_s)
        verdicts, self.verdicts = self.verdicts, []
        answers, self.answers = self.answers, []
        now = self.board.now_s
        self.told += self.remediator.consider(verdicts, jobs=self.jobs, boot_s=now, answers=answers)

    def kinds(self, kind: str) -> list[Happening]:
        return [one for one in self.told if one.kind == kind]


def run(
    agents: Sequence[Agent], *, for_s: float, each_s: float = 0.25, at: Callable[[float], None] | None = None
) -> None:
    """Let time pass; every agent looks every ``each_s``, the first ones first."""
    board = agents[0].board
    until = board.now_s + for_s
    queue = [(board.now_s, number) for number in range(len(agents))]
    heapq.heapify(queue)
    while queue[0][0] <= until:
        board.now_s, number = heapq.heappop(queue)
        if at is not None:
            at(board.now_s)
        agents[number].consider()
        heapq.heappush(queue, (board.now_s + each_s, number))
    board.now_s = until


def verdict(
    *,
    incident: str = "i1",
    fault: str = "gpu-lost",
    remedy: Remedy = Remedy.REPLACE,
    when: When = When.NOW,
    severity: Severity = Severity.DEVICE,
    device: str = "0000:18:00",
    withdrawn: bool = False,
    pids: tuple[int, ...] = (),
) -> Verdict:
    return Verdict(
        incident=incident,
        fault=fault,
        code=79,
        device=device,
        severity=severity,
        remedy=remedy,
        when=when,
        evidence=(Evidence(line=1, text="NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."),),
        withdrawn=withdrawn,
        pids=pids,
    )


def job(
    *,
    name: str = "12",
    task: str = "13",
    spares: int = 1,
    ranks: int = 1,
    pid: int = 100,
    uid: int = 1000,
    received_s: float = 0.0,
    spare: bool = False,
) -> JobReport:
    held = tuple(
        node_socket.RankReport(rank=number, pid=pid + 1 + number, step=5, phase="forward", phase_s=0.1)
        for number in range(ranks)
    ) + ((node_socket.RankReport(rank=-1, pid=pid + 9, step=0, phase="spare", phase_s=9.0),) if spare else ())
    return JobReport(
        connection=1,
        uid=uid,
        pid=pid,
        received_s=received_s,
        job=name,
        task=task,
        run="run",
        node=0,
        generation=1,
        step=5,
        spares=spares,
        ranks=held,
    )
