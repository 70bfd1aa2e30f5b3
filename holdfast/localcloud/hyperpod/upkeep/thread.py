"""Thread that watches daemons of nodes, from ``roster``."""

import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from holdfast.localcloud.hyperpod.logs import EventSink
from holdfast.localcloud.hyperpod.upkeep.decisions import Condition, Daemon, Decision, condition, decide
from holdfast.localcloud.nodes import Node, NodeError, ProgramQuery, census
from holdfast.localcloud.roster import Place, SystemProcess, upkept
from holdfast.localcloud.supervision import Worker
from holdfast_common import kinds

LOOK_S = 1.0
AGAIN_AFTER_S: dict[Decision, float] = {"report": 2.0, "start": 10.0, "end": 10.0}
COMMAND_TIMEOUT_S = 60.0
_PLACES = (Place.CONTROLLER, Place.COMPUTE, Place.WORKER)
_DAEMONS = {place: {one.name: one for one in upkept(place)} for place in _PLACES}
_SOUGHT = tuple(
    ProgramQuery(
        name=name,
        shown=tuple(sorted({shown for one in same for shown in one.shown})),
        marks=tuple(sorted({mark for one in same for mark in one.marks})),
    )
    for name in sorted({name for daemons in _DAEMONS.values() for name in daemons})
    for same in ([daemons[name] for daemons in _DAEMONS.values() if name in daemons],)
)

_SCRIPTS: dict[Decision, str] = {
    # One that is being started is its unit's, whose Restart= says so.
    "start": '[ "$(systemctl is-active "$1")" = activating ] || systemctl restart "$1" 2>&1',
    "end": 'systemctl kill -s KILL "$1" 2>/dev/null || pkill -KILL -x "$2"; true',
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class WatchedNode:
    node: Node
    cluster: str
    place: Place


@dataclass(kw_only=True)
class _Trouble:
    condition: Condition
    since: float
    reported: bool = False
    next_at: float = 0.0
    left_alone: bool = False


class Upkeep:
    """Upkeep thread. ``kept`` returns the nodes at each pass; ``pool`` runs slow work."""

    def __init__(
        self, *, kept: Callable[[], Iterable[WatchedNode]], events: EventSink, pool: ThreadPoolExecutor
    ) -> None:
        self._kept, self._events, self._pool = kept, events, pool
        self._troubles: dict[tuple[str, int, str], _Trouble] = {}
        self._ran: set[tuple[str, int, str]] = set()
        """Daemons that were seen to run: what was never started is not missed."""
        self._stopping = threading.Event()
        self.worker = Worker(name="daemons", work=self._run, stopping=self._stopping, problem=self.problem)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self.worker.join(5.0)

    def problem(self) -> str:
        now = time.monotonic()
        lines = [
            f"{program} of {instance_id} is {trouble.condition} since {now - trouble.since:.0f} s"
            for (instance_id, _, program), trouble in list(self._troubles.items())
            if trouble.reported and not trouble.left_alone
        ]
        return "; ".join(lines)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self.look()
            self.worker.passed()

    def look(self) -> None:
        kept = list(self._kept())
        found = census((one.node for one in kept), sought=_SOUGHT)
        present: set[tuple[str, int, str]] = set()
        for one in kept:
            running = found.get(one.node.spec.instance_id)
            if running is None:
                continue
            for program in _DAEMONS[one.place]:
                key = (one.node.spec.instance_id, one.node.pid, program)
                present.add(key)
                if program in running:
                    self._ran.add(key)
                if key in self._ran:
                    now_is = condition(program, place=one.place, running=running.get(program))
                    self._consider(one, key, now_is)
        self._troubles = {key: trouble for key, trouble in self._troubles.items() if key in present}
        self._ran &= present

    def _consider(self, kept: WatchedNode, key: tuple[str, int, str], now_is: Condition) -> None:
        now, program = time.monotonic(), key[2]
        trouble = self._troubles.get(key)
        if now_is == "well":
            if trouble is not None:
                del self._troubles[key]
                if trouble.reported:
                    self._report(kinds.DAEMON_RESTORED, kept, program, trouble, since_s=now - trouble.since)
            return
        if trouble is None or trouble.condition != now_is:
            trouble = self._troubles[key] = _Trouble(
                condition=now_is, since=now, reported=bool(trouble and trouble.reported)
            )
        seen = Daemon(program=program, condition=now_is, for_s=now - trouble.since, reported=trouble.reported)
        decision = decide(seen)
        if not decision or trouble.left_alone or trouble.next_at > now:
            return
        trouble.next_at = now + AGAIN_AFTER_S[decision]
        self._pool.submit(self._act, kept, program, trouble, decision)

    def _act(self, kept: WatchedNode, program: str, trouble: _Trouble, decision: Decision) -> None:
        try:
            if not trouble.reported and trouble.condition == "gone" and self._was_stopped(kept, program):
                trouble.left_alone = True
                return
            if not trouble.reported:
                trouble.reported = True
                self._report(kinds.DAEMON_LOST, kept, program, trouble)
            if decision in _SCRIPTS:
                done = self._on_node(kept, _SCRIPTS[decision], program)
                if done.returncode:
                    words = (done.stdout + done.stderr).strip()[-300:]
                    _log.warning("%s of %s is not started again: %s", program, kept.node.spec.hostname, words)
        except (NodeError, OSError, subprocess.SubprocessError) as error:
            _log.warning("%s of %s cannot be looked after: %s", program, kept.node.spec.hostname, error)

    def _was_stopped(self, kept: WatchedNode, program: str) -> bool:
        return self._on_node(kept, 'systemctl is-active "$1"', program).stdout.strip() in ("inactive", "unknown")

    @staticmethod
    def _on_node(kept: WatchedNode, script: str, program: str) -> "subprocess.CompletedProcess[str]":
        argv = ["/bin/sh", "-c", script, "holdfast", _daemon(kept, program).unit, program]
        return kept.node.run(argv, timeout_s=COMMAND_TIMEOUT_S)

    def _report(
        self, kind: str, kept: WatchedNode, program: str, trouble: _Trouble, *, since_s: float | None = None
    ) -> None:
        host = kept.node.spec.hostname
        words = {"gone": "has ended", "stopped": "is stopped by a signal", "well": ""}[trouble.condition]
        back = kind == kinds.DAEMON_RESTORED
        self._events.emit(
            kind,
            cluster=kept.cluster,
            node=kept.node.spec.instance_id,
            evidence=f"{program} on {host} runs again" if back else f"{program} on {host} {words}",
            action="" if back else _action(program, trouble.condition),
            duration_s=since_s,
            detail={"program": program},
        )


def _daemon(kept: WatchedNode, program: str) -> SystemProcess:
    return _DAEMONS[kept.place][program]


def _action(program: str, now_is: Condition) -> str:
    if now_is == "gone":
        return "it restarts, unless its unit was stopped on purpose"
    if program == "slurmd":
        return "Slurm sets the node DOWN after SlurmdTimeout, and it is rebooted"
    return "it is killed and restarted if it stays stopped"
