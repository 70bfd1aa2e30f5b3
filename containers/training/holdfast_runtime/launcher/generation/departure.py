"""
The planned hand-over: the ranks of this node go to warm processes of others, between two steps.

The launcher that gives its ranks away announces it to all, and each tells its ranks. Once all of them know, which they
see in the votes of a step, they leave after that step, and the view that follows has ranks for none of this node. Its
processes give their state until every launcher of that view says that its ranks are there; then the launcher ends. If
anything breaks meanwhile, the view that follows that is the one.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast_common import node_socket
from holdfast_runtime import control
from holdfast_runtime.launcher.generation.building import Building
from holdfast_runtime.launcher.generation.part import Context, Part
from holdfast_runtime.launcher.links import HandOverAt, Settled, Spares
from holdfast_runtime.launcher.ranks import Process
from holdfast_runtime.membership import View

HANDED_OVER = 75
"""The exit code of a launcher whose ranks went to another node; EX_TEMPFAIL of sysexits.h: start it again elsewhere."""
STEPS_OF_NOTICE = 2
LOOK_S = 0.5
STILL_S = 2.0
STILL_STEPS = 5.0
"""So many times the longest step that was seen, no step has been made."""
UNENDED_S = 3.0


@dataclass(frozen=True)
class _Asked:
    command: node_socket.Command
    answer: Callable[[node_socket.Answer], None]
    asked_s: float
    ranks: tuple[int, ...] = ()
    announced: int = 0
    """The generation in which it was announced; 0 while it waits for a recovery to end."""
    left: bool = False
    """Whether the committed view has nothing of this node."""


class Departure(Part):
    """
    One launcher's part in its own hand-over and in those of others.

    Args:
        failed: Called when this node keeps its ranks after all.
        clock: Seconds. Default: the machine's
    """

    def __init__(
        self,
        context: Context,
        *,
        building: Building,
        failed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(context)
        self._nodes = self._options.nodes
        self._least = min(self._options.world_sizes, default=0)
        """Ranks that the job may go on with; 0 for as many as it has."""
        self._building = building
        self._failed = failed
        self._clock = clock
        self._asked: _Asked | None = None
        self._step, self._step_s, self._longest_s = 0, clock(), 0.0
        self._spares: dict[int, int] = {}
        self._own_spares = 0
        self._others: set[int] = set()
        """That have announced in this generation that they give their ranks away, too."""

    @property
    def spares(self) -> int:
        return sum(self._spares.values())

    def announce(self, reason: str, *, leaving: bool = False) -> None:
        after_step, generation = self._slots.known_step + STEPS_OF_NOTICE, self._slots.view.generation
        message = HandOverAt(generation=generation, after_step=after_step, reason=reason, leaving=leaving)
        self._links.broadcast(message)
        self.announced(self._slots.node, message)

    def ask(self, command: node_socket.Command, answer: Callable[[node_socket.Answer], None]) -> None:
        asked = _Asked(command=command, answer=answer, asked_s=time.monotonic())
        if self._asked is not None:
            # Somebody who asks again, such as an agent that was started anew, hears of what there is.
            self._asked = replace(self._asked, command=command, answer=answer)
            self._say(self._asked, "begun")
            return
        if self._slots.requested and not self._hopeless():
            self._asked = asked
            self._say(asked, "begun", reason="after the recovery in progress")
            return
        refusal = self._refusal()
        if refusal:
            outcome = "refused" if self._hopeless() else "later"
            self._say(asked, outcome, reason=refusal, step=self._slots.known_step, steps_lost=self._would_be_lost())
            return
        self._asked = asked
        self._begin()

    def abandon(self, reason: str) -> None:
        self._ending.depart(HANDED_OVER, f"abandoned by request, this launcher exits: {reason}")

    def stepped(self) -> None:
        if self._slots.known_step == self._step:
            return
        now_s = self._clock()
        if self._step:
            # An old record counts for less and less: the first step of a generation takes longer than others.
            self._longest_s = max(0.9 * self._longest_s, now_s - self._step_s)
        self._step, self._step_s = self._slots.known_step, now_s

    def quarantine(self, reason: str) -> None:
        if not self._slots.quarantined:
            self._slots.quarantined = True
            self._journal.say(f"node excluded from this run: {reason}")
            self.warm_changed()

    def announced(self, node: int, message: HandOverAt) -> None:
        if message.generation != self._slots.view.generation:
            return
        who = f"node {node} hands over its ranks" if message.leaving else "all ranks leave"
        self._journal.tell(f"{who} after step {message.after_step}: {message.reason}")
        for slot in self._slots.in_view:
            slot.send(control.HandOver(generation=message.generation, after_step=message.after_step))
        if message.leaving and node != self._slots.node:
            self._others.add(node)
            self._look_who_is_left()

    def installed(self, view: View) -> None:
        self.warm_changed()
        self._others.clear()
        asked = self._asked
        self._step_s = self._clock()
        if asked is None or not asked.announced or view.generation <= asked.announced:
            return
        kept = any(item.slot.node == self._slots.node for item in view.ranks)
        if kept or view.nodes[self._slots.node] >= 0:
            self._asked, self._slots.leaving = None, False
            lost = "too few processes or votes remain without this node"
            self._journal.say(f"hand-over failed: this node keeps its ranks: {lost}")
            self._say(asked, "failed", reason=lost, step=view.resume_step, steps_lost=view.lost_steps)
            self._failed()
        else:
            self._asked = replace(asked, left=True)

    def settled(self, view: View, _reports: Mapping[int, Settled]) -> None:
        asked = self._asked
        if asked is None:
            return
        if asked.left:
            self._say(asked, "done", step=view.resume_step, steps_lost=view.lost_steps)
            which = f"handed over ranks [{', '.join(map(str, asked.ranks))}]"
            self._ending.depart(HANDED_OVER, f"{which} at step {view.resume_step}; this launcher exits")
        elif not asked.announced:
            refusal = self._refusal()
            if refusal:
                self._asked = None
                self._say(asked, "failed", reason=refusal, step=view.resume_step, steps_lost=self._would_be_lost())
            else:
                self._begin()

    def up(self, node: int) -> None:
        if self._own_spares:
            self._links.send(node, Spares(ready=self._own_spares))

    def down(self, node: int) -> None:
        self._spares.pop(node, None)

    def spares_of(self, node: int, ready: int) -> None:
        self._spares[node] = ready

    def warm_changed(self) -> None:
        ready = self._slots.warm
        if ready != self._own_spares:
            self._own_spares = ready
            self._links.broadcast(Spares(ready=ready))

    def _begin(self) -> None:
        asked = self._asked
        if asked is None:
            return
        self._say(asked, "begun")
        if asked.command.urgent:
            self._leave()
        else:
            self._building.for_others([slot.rank for slot in self._slots.in_view], self._spares, self._leave)

    def _leave(self) -> None:
        asked = self._asked
        if asked is None or asked.announced or self._slots.requested:
            return
        if refusal := self._refusal():
            self._asked = None
            self._say(asked, "failed", reason=refusal, step=self._slots.known_step, steps_lost=self._would_be_lost())
            return
        ranks = tuple(slot.rank for slot in self._slots.in_view)
        self._asked = asked = replace(asked, ranks=ranks, announced=self._slots.view.generation)
        self._slots.leaving = True
        self.warm_changed()
        self.announce(asked.command.reason, leaving=True)
        if asked.command.urgent:
            self._step_s = self._clock()
            self._later(LOOK_S, self._look)

    def _look_who_is_left(self) -> None:
        asked = self._asked
        if asked is None or not asked.announced or asked.left:
            return
        there = {item.slot.node for item in self._slots.view.ranks} | {
            node for node, ready in self._spares.items() if ready
        }
        if not there - self._others - {self._slots.node}:
            self._asked, self._slots.leaving = None, False
            self._say(asked, "failed", reason="all other nodes leave too", step=self._slots.known_step)

    def _look(self) -> None:
        asked = self._asked
        if asked is None or asked.left or self._ending.begun or self._slots.view.generation != asked.announced:
            return
        self.stepped()
        still_s = self._clock() - self._step_s
        if self._slots.requested or still_s < max(STILL_S, STILL_STEPS * self._longest_s):
            self._later(LOOK_S, self._look)
            return
        self._journal.say(f"hand-over: no step for {still_s:.1f} s, killing the ranks of this node")
        ended = [slot.process for slot in self._slots.in_view if slot.process is not None]
        for process in ended:
            process.kill()
        self._later(UNENDED_S, self._leave_behind, ended)

    def _leave_behind(self, ended: Sequence[Process]) -> None:
        asked, there = self._asked, [slot.process for slot in self._slots.in_view]
        held = any(process in there for process in ended)
        if asked is not None and held and not asked.left and self._slots.view.generation == asked.announced:
            self.abandon("its processes do not end")

    def _hopeless(self) -> str:
        if self._ending.begun or self._ending.some_finished or self._slots.some_finished:
            return "the job ends"
        if not self._slots.in_process:
            return "the script does not use holdfast_runtime: all ranks restart if a node is lost"
        return ""

    def _refusal(self) -> str:
        refusal = self._hopeless()
        if refusal:
            return refusal
        view, held = self._slots.view, len(self._slots.in_view)
        if not any(item.port for item in view.ranks):
            return "the ranks are not connected yet"
        needed = held if not self._least else held - (len(view.ranks) - self._least)
        if self.spares < needed:
            return f"{self.spares} warm processes on other nodes, {needed} required"
        majority = self._nodes // 2 + 1
        voters = len(self._links.up) + (self._nodes % 2 == 0 and view.witness >= 0)
        if voters < majority:
            return f"{voters} votes would remain, {majority} required"
        return ""

    def _would_be_lost(self) -> int:
        if any(item.slot.node != self._slots.node for item in self._slots.view.ranks):
            return 0  # replicas: the others have it
        return max(0, self._slots.known_step - max(0, self._slots.checkpoint_step))

    def _say(self, asked: _Asked, outcome: str, *, reason: str = "", step: int = 0, steps_lost: int = 0) -> None:
        asked.answer(
            node_socket.Answer(
                id=asked.command.id,
                command=asked.command.command,
                outcome=outcome,
                reason=reason,
                ranks=asked.ranks or tuple(slot.rank for slot in self._slots.in_view),
                step=step,
                steps_lost=steps_lost,
                seconds=time.monotonic() - asked.asked_s,
            )
        )
