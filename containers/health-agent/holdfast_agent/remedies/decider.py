"""The decider: one process of a cluster that orders hand-overs and requests remedies, within one breaker."""

import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Optional, Union

from holdfast_agent.remedies.seams import ClusterMarks, RefusedError
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.signals import Happening
from holdfast_common import kinds
from holdfast_common.decisions import NodeState, Stage, Step, decide

EVERY_S = 1.0
LOOKS_SHARE = 0.1
"""Most of the time that is spent on reading: a large cluster is read less often."""
SAVED_S = 10.0


class Decider:
    """
    Args:
        may_act: Returns True while this process is the one that decides.
        report: Receives each event, before its step is carried out. Default: ``happenings`` returns them.
    """

    name = "decider"

    def __init__(
        self,
        *,
        settings: RemedySettings,
        marks: ClusterMarks,
        may_act: "Callable[[], bool]" = lambda: True,
        report: "Optional[Callable[[Happening], None]]" = None,
        clock: "Callable[[], float]" = time.time,
    ) -> None:
        self._settings, self._marks, self._may_act = settings, marks, may_act
        self._reported: queue.SimpleQueue[tuple[Happening, threading.Event]] = queue.SimpleQueue()
        self._unsaved: list[threading.Event] = []
        self._report = report or self._put
        self._clock = clock
        self._steps = 0
        self.problem = ""
        """Last error; empty where marks can be read and written."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decider", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()

    def numbers(self) -> "dict[str, float]":
        return {"decider_steps_total": float(self._steps)}

    def happenings(self) -> "list[Happening]":
        """Return events since the last call; their steps wait until ``saved``."""
        found = []
        while not self._reported.empty():
            happening, is_saved = self._reported.get_nowait()
            found.append(happening)
            self._unsaved.append(is_saved)
        return found

    def saved(self) -> None:
        for one in self._unsaved:
            one.set()
        self._unsaved.clear()

    def _put(self, happening: Happening) -> None:
        is_saved = threading.Event()
        self._reported.put((happening, is_saved))
        is_saved.wait(SAVED_S)

    def look(self) -> bool:
        """
        Decide, and carry out each step that the fresh state of its node confirms; return True if there was one.

        Raises the last error, after the steps of the other nodes.
        """
        if not self._may_act():
            return False
        nodes, now_s = self._marks.look(), self._clock()
        results = [self._try(step, nodes, now_s) for step in self._decided(nodes, now_s)]
        failed = [result for result in results if isinstance(result, Exception)]
        if failed:
            raise failed[-1]
        return True in results

    def _try(self, step: Step, nodes: "list[NodeState]", now_s: float) -> "Union[bool, Exception]":
        """Return whether the step was carried out, or its error: the other nodes get their steps."""
        try:
            fresh = self._marks.node(step.node)
            current = [fresh if node.name == fresh.name else node for node in nodes]
            if step not in self._decided(current, now_s) or not self._may_act():
                return False
            self._carry_out(step, fresh)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is retried
            return error
        return True

    def _decided(self, nodes: "list[NodeState]", now_s: float) -> "tuple[Step, ...]":
        return decide(nodes, share=self._settings.share, way=self._settings.way, now_s=now_s)

    def _carry_out(self, step: Step, node: NodeState) -> None:
        self._steps += 1
        order, remedy = step.order, node.report.remedy.value if node.report is not None else ""
        if step.event is not None:
            self._log(step, node, step.event.kind, step.event.evidence, step.event.why)
        try:
            if step.effect == "requeue":
                self._marks.requeue(node, step.task)
            elif step.effect == "force":
                self._marks.force(node, remedy)
            elif step.effect == "ask":
                self._marks.ask(node, remedy)
        except RefusedError as error:
            if step.effect == "ask" and order is not None:
                why = "under-way" if error.in_use else "foreign"
                self._log(step, node, kinds.REMEDY_REFUSED, str(error), why)
                order = replace(order, reported=(*order.reported, why))
                if not error.in_use:
                    order = replace(order, stage=Stage.REFUSED)
        self._marks.write(node, order)

    def _log(self, step: Step, node: NodeState, kind: str, evidence: str, why: str) -> None:
        if node.report is None:
            return
        detail = {"incident": node.report.incident, "way": self._settings.way, "host": step.node}
        if why:
            detail["why"] = why
        self._report(
            Happening(
                kind=kind,
                fault=node.report.fault,
                evidence=evidence[:500],
                action=node.report.remedy.value,
                detail=detail,
                node=node.report.instance or None,
            )
        )

    def _run(self) -> None:
        more, wait_s = False, EVERY_S
        while not self._ending.wait(0.0 if more else wait_s):
            more, problem, began_s = False, "", time.monotonic()
            try:
                more = self.look()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is retried
                problem = f"{type(error).__name__}: {error}"
            wait_s = max(EVERY_S, (time.monotonic() - began_s) * (1 / LOOKS_SHARE - 1))
            if problem and problem != self.problem:
                print(f"decider: {problem}; retrying", file=sys.stderr, flush=True)
            self.problem = problem
