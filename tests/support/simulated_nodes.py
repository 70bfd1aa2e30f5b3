"""Agents of many nodes and their deciders with one board of marks, in virtual time."""

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from holdfast_agent.launchers import JobReport
from holdfast_agent.remedies import Decider, NodeMark, Remediator, RemedySettings
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import SlurmError
from holdfast_agent.verdicts import Evidence, Verdict
from holdfast_common import Remedy, Severity, When, node_socket
from holdfast_common.decisions import NodeState, Order, Report


class KilledError(BaseException):
    """The process was killed before this access to the board."""


class Board:
    """The marks and states of all nodes; every read and write happens at one instant."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.reports: dict[str, Report] = {}
        self.orders: dict[str, Order] = {}
        self.requests: dict[str, str] = {}
        self.foreign: dict[str, str] = {}
        self.jobs: dict[str, list[frozenset[str]]] = {}
        self.now_s = 0.0
        self.deeds: list[tuple[str, str, str]] = []
        """Node, deed and its subject: ask, force, requeue."""
        self.refuses: set[str] = set()
        """Nodes whose request fails."""
        self.away = self.is_blind = False
        """is_blind: what is asked for is not to be seen at the node, as with the API."""

    def state(self, name: str) -> NodeState:
        if self.away:
            raise SlurmError("slurmctld does not answer")
        foreign = self.foreign.get(name, "")
        request = "" if self.is_blind else self.requests.get(name, "")
        return NodeState(
            name=name,
            report=self.reports.get(name),
            order=self.orders.get(name),
            request=request or ("replace" if "Action:Replace" in foreign else ""),
            foreign=foreign,
            jobs=tuple(self.jobs.get(name, ())),
        )

    def asked(self) -> list[str]:
        return [node for node, deed, _ in self.deeds if deed == "ask"]


class Marks:
    """Marks as one process reads and writes them; ``kill_at`` counts its accesses down."""

    def __init__(self, board: Board, name: str = "") -> None:
        self.board, self.name = board, name
        self.kill_at = -1
        self.between: Callable[[], None] = lambda: None

    def _access(self) -> None:
        self.between()
        if self.board.away:
            raise SlurmError("slurmctld does not answer")
        if self.kill_at == 0:
            self.kill_at = -1
            raise KilledError
        self.kill_at -= 1

    def look(self) -> list[NodeState]:
        self._access()
        return [self.board.state(name) for name in self.board.names]

    def node(self, name: str) -> NodeState:
        self._access()
        return self.board.state(name)

    def own(self) -> NodeState:
        self._access()
        return self.board.state(self.name)

    def report(self, report: Report | None) -> None:
        self._access()
        if report is None:
            self.board.reports.pop(self.name, None)
        else:
            self.board.reports[self.name] = Report.from_json(report.to_json()) or report

    def write(self, node: NodeState, order: Order | None) -> None:
        self._access()
        if order is None:
            self.board.orders.pop(node.name, None)
        else:
            self.board.orders[node.name] = Order.from_text(order.to_text()) or order

    def ask(self, node: NodeState, remedy: str) -> None:
        self._access()
        if node.name in self.board.refuses:
            raise SlurmError("slurmctld does not answer")
        if self.board.requests.get(node.name) != remedy:  # one that stands is left as it is
            self.board.deeds.append((node.name, "ask", remedy))
        self.board.requests[node.name] = remedy

    def force(self, node: NodeState, remedy: str) -> None:
        self._access()
        self.board.deeds.append((node.name, "force", remedy))

    def requeue(self, node: NodeState, task: str) -> None:
        self._access()
        self.board.deeds.append((node.name, "requeue", task))


class Controller:
    """A decider, as its thread runs it."""

    def __init__(self, board: Board, *, share: float, way: str = "slurm") -> None:
        self.board, self.happenings = board, list[Happening]()
        self._settings = RemedySettings(mode="act", way=way, share=share, host="controller")
        self.marks = Marks(board)
        self.restart()

    def restart(self) -> None:
        """Start a successor, which has no memory but the marks."""
        self._decider = Decider(
            settings=self._settings,
            marks=self.marks,
            report=self.happenings.append,
            clock=lambda: 1e9 + self.board.now_s,
        )

    def consider(self) -> None:
        try:
            while self._decider.look():
                pass
        except SlurmError:
            pass
        except KilledError:
            self.restart()


class Agent:
    """The remedies of one node, as its service would call them."""

    def __init__(self, board: Board, name: str, *, way: str = "slurm", marks: Any = None, **more: Any) -> None:
        self.board, self.name = board, name
        self.settings = RemedySettings(
            mode=more.pop("mode", "act"), way=way, host=name, instance_id=f"i-{name}", **more
        )
        self.own: list[Happening] = []
        self.orders: list[tuple[JobReport, node_socket.Command]] = []
        self.jobs: list[JobReport] = []
        self.answers: list[tuple[JobReport, node_socket.Answer]] = []
        self.verdicts: list[Verdict] = []
        self.marks = marks or Marks(board, name)
        self.reset_code: int | None = 1
        self._new()

    def _new(self) -> None:
        self.mark: NodeMark = ThreadlessMark(marks=self.marks)
        self.remediator: Remediator = Remediator(
            settings=self.settings,
            tell=self._tell,
            boot_s=self.board.now_s,
            mark=self.mark,
            reset=lambda _: lambda: self.reset_code,
        )

    def _tell(self, job: JobReport, command: node_socket.Command) -> bool:
        self.orders.append((job, command))
        return True

    def kill(self) -> None:
        """SIGKILL, and started again from the last snapshot."""
        snapshot = self.remediator.snapshot()
        self._new()
        assert self.remediator.restore(snapshot)

    def reboot(self) -> None:
        """Start without a memory; the mark of the earlier boot is still there."""
        self._new()

    def accuse(self, **more: Any) -> None:
        self.verdicts.append(verdict(**more))

    def consider(self) -> None:
        verdicts, self.verdicts = self.verdicts, []
        answers, self.answers = self.answers, []
        self.own += self.remediator.consider(verdicts, jobs=self.jobs, boot_s=self.board.now_s, answers=answers)
        self.mark.look()

    def kinds(self, kind: str) -> list[Happening]:
        return [one for one in self.own if one.kind == kind]


class ThreadlessMark(NodeMark):
    def publish(self, report: Report | None) -> None:
        self._target = report


def run(
    parts: Sequence[Agent | Controller],
    *,
    for_s: float,
    each_s: float = 1.0,
    at: Callable[[float], None] | None = None,
) -> None:
    """Let time pass; every part looks every ``each_s``, the first ones first."""
    board = parts[0].board
    until = board.now_s + for_s
    queue = [(board.now_s, number) for number in range(len(parts))]
    heapq.heapify(queue)
    while queue[0][0] <= until:
        board.now_s, number = heapq.heappop(queue)
        if at is not None:
            at(board.now_s)
        parts[number].consider()
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
