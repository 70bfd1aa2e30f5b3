"""
``holdfast-run`` on one node: starts ranks and spares, sees what breaks, and carries each view to its processes.

Whether and which view follows is decided by ``membership``; this file connects it with processes, links and store. A
script that says nothing on its control socket is restarted as a whole, as torchrun does; one that says hello keeps
running while others are replaced under it.
"""

import asyncio
import contextlib
import signal
import socket
import time
import traceback
from collections.abc import Coroutine

from holdfast_common import EventLog, kinds
from holdfast_runtime import control
from holdfast_runtime.control import Change, Fault, FromRank, Hello, Keys, Progress, Put, Raised, Ready
from holdfast_runtime.launcher.generation import Agreement, Asks, Effects, Ending, Journal, Witnessing
from holdfast_runtime.launcher.keys import KeyPost
from holdfast_runtime.launcher.links import (
    ChangeAt,
    ChangedAt,
    Done,
    Handlers,
    Identity,
    LinkMessage,
    Links,
    RaisedAt,
    Trouble,
    Warm,
)
from holdfast_runtime.launcher.links import Hello as PeerHello
from holdfast_runtime.launcher.ranks import (
    LAST_ONES,
    ForkError,
    LocalSlot,
    LocalSlots,
    Process,
    Processes,
    Program,
    rank_views,
)
from holdfast_runtime.launcher.settings import Options, master_port, variables
from holdfast_runtime.launcher.watch import Judgement, Watch
from holdfast_runtime.membership import Message, Policy, Slot, View

LAST_WORDS_S = 0.02
"""For what a process said before its end to be read."""
REFILL_AFTER_S = 0.5
"""A spare's place is filled again when the recovery that took it is over."""
VOTE_AFTER_S = 0.3
"""Time for a launcher that is back to meet all the others."""
BEGINNINGS = 10
"""How often a launcher may begin anew; two that live in one place would else take it from each other for ever."""
GRACE_S = 10.0
"""Once enough launchers are there, how long the job waits for the others before it begins."""


class Launcher:
    """The launcher of one node."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.slots = LocalSlots(
            node=options.node_rank, ranks=options.processes, spares=options.spares, world_size=options.world_size
        )
        self.journal = Journal(
            node=options.node_rank, as_json=options.log_json, events=EventLog.from_environment(source="job")
        )
        identity = Identity(node=options.node_rank, run_id=options.run_id, token=options.token)
        handlers = Handlers(
            up=self._peer_up,
            down=self._peer_down,
            message=self._peer_says,
            taken=lambda reason: self._ending.give_up(reason),
            anew=self._begin_anew,
            stranger=self.journal.say,
        )
        self.links = Links(identity, host=options.peers.host, deadlines=options.deadlines, handlers=handlers)
        self._ending = Ending(slots=self.slots, links=self.links, journal=self.journal, deadlines=options.deadlines)
        self.witness = Witnessing(
            options,
            links=self.links,
            journal=self.journal,
            asks=Asks(
                view=lambda: self.view,
                found=self._witness_found,
                lost=lambda: self._agreement.witness_lost() if self._agreement is not None else None,
                message=lambda message: self.agreement.message(options.nodes, message),
                interrupt=self._interrupt,
            ),
        )
        self._keys = KeyPost(slots=self.slots, links=self.links)
        self._loop = asyncio.get_running_loop()
        self._processes = Processes(
            Program(
                arguments=options.program,
                module=options.module,
                python=options.python,
                preload=options.preload,
                log_dir=options.log_dir,
            ),
            deadlines=options.deadlines,
            on_exit=lambda *how: self._spawn(self._process_ended(*how)),
            on_forker_lost=lambda how: self.journal.say(f"{how}; another one is started"),
        )
        self._watch = Watch(
            slots=self.slots,
            processes=self._processes,
            journal=self.journal,
            deadlines=options.deadlines,
            trouble=self._trouble,
        )
        self._judgement = Judgement(
            slots=self.slots,
            links=self.links,
            journal=self.journal,
            ending=self._ending,
            nodes=options.nodes,
            world_size=options.world_size,
            stop_s=options.deadlines.stop,
            trouble=self._trouble,
        )
        self._agreement: Agreement | None = None
        self._beginnings = BEGINNINGS
        self._prepared = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._troubled_s = 0.0
        self._deaths = 0
        self._deaths_step = -1
        self._why = ""
        """Why the newest generation was wanted."""
        self._port = 0
        """Where ranks of a script that makes its own groups meet in this generation."""
        self._first = True
        """No view of live processes was committed yet."""

    @property
    def view(self) -> View:
        """The committed view; generation 0 before there is one."""
        if self._agreement is None:
            return View(epoch=0, nodes=(0,) * self.options.nodes)
        return self._agreement.committed

    @property
    def forker_pid(self) -> int | None:
        """Of the process that forks ranks; None where there is none."""
        return self._processes.forker_pid

    @property
    def silence_s(self) -> float:
        """How long a rank may wait for the others now."""
        return self._watch.silence_s

    @property
    def wanted(self) -> str:
        """Why another view is wanted; empty when it is not."""
        return self._agreement.wanted if self._agreement is not None else ""

    @property
    def agreement(self) -> Agreement:
        """Made when the others can be told apart: a launcher that replaces another learns that from them."""
        if self._agreement is None:
            self._agreement = Agreement(
                me=self.options.node_rank,
                size=self.options.nodes,
                incarnation=self.links.incarnation,
                identity=self.links.identity,
                deadlines=self.options.deadlines,
                effects=Effects(
                    send=self._send,
                    leave=self._leave,
                    install=self._install,
                    stop=self._ending.give_up,
                    policy=self._policy,
                ),
            )
            self._witness_found(self.witness.link.identity)
        return self._agreement

    async def run(self) -> int:
        """Until the job has ended; its exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._ending.signalled, number)
        try:
            await self.links.open(port=self.options.peers.port, known=self.options.peers.known)
            self.witness.start()
            self._spawn(self._begin())
            self._spawn(self._watch.run())
            return await self._ending.exit_code
        finally:
            for task in self._tasks:
                task.cancel()
            if self._agreement is not None:
                self._agreement.close()
            await self.witness.close()
            await self.links.close()
            self._processes.close()

    # -- the beginning ------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Wait for the others, then ask for the first view; one that joins a running job is told what there is."""
        preparing = self._loop.create_task(self._processes.prepare())
        began, enough_s = time.monotonic(), 0.0
        while len(self.links.up) + 1 < self.options.nodes and not self.view.epoch:
            await asyncio.sleep(0.01)
            waited = time.monotonic() - began
            if waited > self.options.deadlines.start:
                missing = sorted(set(range(self.options.nodes)) - self.links.up - {self.options.node_rank})
                why = "; ".join(("", *self.links.strangers))
                self._ending.give_up(f"nodes {missing} did not come within {self.options.deadlines.start:g} s{why}")
                return
            enough = len(self.links.up) + 1 >= self.options.nodes - self.options.spare_nodes
            enough_s = enough_s or (waited if enough else 0.0)
            if enough and waited - enough_s > GRACE_S:
                break
        await preparing
        self._prepared.set()
        if not self.view.epoch:
            self.agreement.trouble("the job begins")
            self._left()

    def _begin_anew(self) -> bool:
        """There was a launcher in this place before. One that no view names has nothing to lose by being another."""
        if self._ending.begun or (self.view.epoch and self._belongs_to(self.view)) or not self._beginnings:
            return False
        self._beginnings -= 1
        if self._agreement is not None:
            self._agreement.close()
            self._agreement = None
        self._loop.call_later(self.options.deadlines.start, self._expect_company)
        return True

    def _expect_company(self) -> None:
        if not self.links.up and not self._ending.begun:
            self._ending.give_up(f"no launcher let this one in again within {self.options.deadlines.start:g} s")

    def _peer_up(self, peer: PeerHello) -> None:
        self._ending.forget(peer.node)
        self.witness.link.claim_changed()
        if self.slots.in_process:
            self.links.send(peer.node, Warm())
        self.agreement.found(peer.node, peer.identity)

    def _send(self, to: int, message: Message) -> None:
        """To a launcher, or to the witness, which has the seat after the last of them."""
        if to == self.options.nodes:
            self.witness.link.send(message)
        else:
            self.links.send(to, message)

    def _witness_found(self, identity: int) -> None:
        if self._agreement is not None and identity >= 0:
            self._agreement.witness_found(identity)

    def _interrupt(self, reason: str) -> bool:
        """Ask for a view that nothing else calls for, where processes live through it."""
        if self.slots.in_process and not self._first:
            self._trouble(reason)
        return self.slots.in_process

    def _peer_down(self, node: int, why: str) -> None:
        if self._ending.has_finished(node) or self._ending.begun:
            return
        in_view = self.view.nodes[node] >= 0 and self.view.epoch > 0
        self.journal.say(f"node {node} is lost: {why}")
        if in_view:
            self.journal.died("node")
            self.journal.event(kinds.LAUNCHER_LOST, evidence=why, lost=node)
            self._note_trouble()
        self.agreement.lost(node)

    def _peer_says(self, node: int, message: LinkMessage) -> None:
        if isinstance(message, Trouble):
            if message.epoch == self.view.epoch and not self._ending.begun:
                self._note_trouble()
                self.agreement.trouble(message.reason)
        elif isinstance(message, RaisedAt):
            self._judgement.heard(message.error)
        elif isinstance(message, Warm):
            self._warm()
        elif isinstance(message, Keys | ChangeAt | ChangedAt):
            self._keys.from_launcher(message)
        elif isinstance(message, Done):
            self._ending.peer_done(node, message, view=self.view)
        else:
            self.agreement.message(node, message)  # type: ignore[arg-type]  # Beat never gets here

    # -- processes ----------------------------------------------------------------------------------------------------

    def _fill(self, slot: LocalSlot) -> None:
        if not (slot.alive or slot.starting or self._ending.begun or slot.finished):
            slot.starting = True
            self._spawn(self._start(slot))

    async def _start(self, slot: LocalSlot) -> None:
        await self._prepared.wait()
        first = self.view.ranks[0].slot.node if self.view.ranks else self.slots.node
        environment = variables(
            self.options,
            rank=slot.rank,
            slot=slot.index,
            generation=self.view.epoch,
            restarts=max(0, self.view.epoch - 1),
            master=(self.links.address_of(first), self._port),
        )
        try:
            process = await self._processes.start(environment, name=f"node{self.options.node_rank}-slot{slot.index}")
        finally:
            slot.starting = False
        slot.process = process
        slot.heard_s = time.monotonic()
        if self._ending.begun:
            process.kill()
        await slot.listen(process, self._rank_says)

    def _rank_says(self, slot: LocalSlot, message: FromRank) -> None:
        if isinstance(message, Put | Change):
            self._keys.from_rank(slot.index, message)
        elif isinstance(message, Progress):
            self.slots.learn(message.step)
            self._watch.moved(message.step)
        elif isinstance(message, Raised):
            self._judgement.raised(slot, message)
        elif isinstance(message, Hello):
            self._warm()
        elif isinstance(message, Ready):
            self._rank_ready(slot, message)
        elif isinstance(message, Fault):
            reason = f"rank {slot.rank} of node {self.slots.node}: {message.reason}"
            if message.fatal:
                self._ending.end(1, reason)
            elif self.slots.some_finished:
                # A rank that passed the last barrier has closed its connections before this one had passed it.
                slot.finished = True
                slot.send(control.Stop(reason="all ranks have finished", exit_code=0))
            else:
                self._trouble(reason)

    def _warm(self) -> None:
        """
        Processes live through faults: spares are of use.

        Each launcher tells it on before it says anything of views, so that nobody ends its processes to get one.
        """
        if self.slots.in_process:
            return
        self.slots.in_process = True
        self.links.broadcast(Warm())
        for slot in self.slots:
            if slot.rank < 0:
                self._fill(slot)

    def _rank_ready(self, slot: LocalSlot, ready: Ready) -> None:
        self.slots.learn(ready.committed_step)
        new = slot.epoch == 0
        if self.wanted:
            self._left()
            if new and not self._first:
                self.agreement.changed()
        elif self._first and self.slots.all_left(first=True) and self.slots.in_view:
            self._trouble("the processes are there")
        elif not self._belongs_to(self.view):
            self._back()

    def _back(self) -> None:
        """This launcher took the place of one that was lost, and its processes are warm."""
        self.journal.event(kinds.SPARE_READY, spares=sum(slot.ready is not None for slot in self.slots))

    def _ask_for_a_vote(self) -> None:
        """This launcher is back: where every vote counts it does not wait for its processes to be warm."""
        if not self._belongs_to(self.view) and self._vote_is_needed():
            self._trouble(f"node {self.slots.node} is back, and without its vote the next loss could not be survived")

    def _vote_is_needed(self) -> bool:
        """Whether the launchers that may vote are just enough: then one that came back is made one of them at once."""
        return not self.witness.may_be_lost

    async def _process_ended(self, process: Process, code: int, how: str) -> None:
        slot = self.slots.of(process)
        if slot is None:
            return
        # A process that has finished says so just before it ends; a child of it may keep the socket open.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(slot.silent.wait(), LAST_WORDS_S)
        rank, finished = slot.rank, slot.finished or (code == 0 and not slot.speaks and slot.rank >= 0)
        in_training, step = slot.epoch > 0 or not self.slots.in_process, self.slots.known_step
        if rank >= 0 and slot.epoch > 0 and not finished:
            self._judgement.died(code, epoch=self.view.epoch, step=step)
        slot.vacate()
        if self._ending.begun:
            self._ending.end_if_empty()
        elif finished and code == 0:
            slot.finished = True
            self._ending.finish_if_all_have(self.view)
            self._left()
        elif not self.slots.in_process and self.wanted:
            self._left()
        else:
            self._process_died(slot, rank=rank, how=how, in_training=in_training, step=step)

    def _process_died(self, slot: LocalSlot, *, rank: int, how: str, in_training: bool, step: int) -> None:
        who = f"rank {rank}" if rank >= 0 else "a spare"
        reason = f"{who} of node {self.slots.node} is lost: {how}"
        self.journal.say(reason)
        self.journal.died(how.removeprefix("it "))
        self.journal.event(kinds.RANK_LOST, evidence=how, rank=rank, step=step)
        if self.slots.in_process and (self._ending.some_finished or self.slots.some_finished):
            self._ending.end(1, f"{reason}; others have finished already")
            return
        if rank >= 0 and in_training and not self.wanted:  # all that die of one fault count once
            self._deaths = self._deaths + 1 if step <= self._deaths_step else 1
            self._deaths_step = step if self.slots.in_process else 1 << 62
        if self._deaths > self.options.max_restarts or slot.deaths > self.options.max_restarts:
            limit = f"--max-restarts allows {self.options.max_restarts} without progress in between"
            self._ending.end(1, f"{reason}; {limit}")
            return
        if rank >= 0:
            self._trouble(reason)
        if self.slots.in_process:
            spare = self.view.spares or any(other.ready is not None and other.rank < 0 for other in self.slots)
            self._loop.call_later(REFILL_AFTER_S if spare else 0.0, self._fill, slot)
            self._left()

    # -- views --------------------------------------------------------------------------------------------------------

    def _policy(self) -> Policy:
        return Policy(
            world_size=self.options.world_size,
            sharded=self.slots.sharded,
            lost_steps_allowed=self.options.lost_steps_allowed,
        )

    def _trouble(self, reason: str) -> None:
        """Another view is wanted, and everybody should know at once."""
        if self._ending.begun or self.wanted or (self.slots.in_process and self.slots.some_finished):
            return
        self._note_trouble()
        self.links.broadcast(Trouble(epoch=self.view.epoch, reason=reason))
        self.agreement.trouble(reason)

    def _note_trouble(self) -> None:
        if not self.wanted:
            self._troubled_s = time.monotonic()

    def _leave(self, epoch: int, reason: str) -> None:
        """Every local rank has to leave its collectives."""
        self._why = reason
        if epoch > 1:
            self.journal.say(f"generation {epoch} is wanted: {reason}")
        for slot in self.slots:
            if not self.slots.in_process and slot.process is not None:
                slot.process.kill(signal.SIGTERM)
            elif slot.alive and slot.ready is None:
                slot.send(control.Leave(epoch=epoch, reason=reason))
        self._loop.call_later(self.options.deadlines.leave, self._kill_those_that_stay, epoch)
        self._loop.call_soon(self._left)

    def _kill_those_that_stay(self, epoch: int, passed: int = 1) -> None:
        if self.view.epoch >= epoch or self._ending.begun:
            return
        hope = self.slots.in_process and self.slots.only_hope(said=lambda slot: slot.ready is not None)
        if hope and passed < LAST_ONES:
            self._loop.call_later(self.options.deadlines.leave, self._kill_those_that_stay, epoch, passed + 1)
            return
        for slot in self.slots.unresponsive() if self.slots.in_process else self.slots:
            if slot.process is not None:
                late = f"rank {slot.rank} has not left within {passed * self.options.deadlines.leave:g} s and is killed"
                self.journal.say(late)
                slot.process.kill()

    def _left(self) -> None:
        """Say how the local processes are, once none of them is in a collective."""
        met = self._prepared.is_set() or self.view.epoch
        if met and self.wanted and not self._ending.begun and self.slots.all_left(first=self._first):
            host = self.options.peers.host
            self.agreement.ready(self.slots.status(incarnation=self.links.identity, host=host))

    def _install(self, view: View) -> None:
        """Give the view to the local processes."""
        me = self.slots.node
        self._keys.begin(view)
        self._watch.installed(view)
        # A launcher that took another's place has none of its ranks.
        mine = [item for item in view.ranks if item.slot.node == me] if self._belongs_to(view) else []
        before = [slot.rank for slot in self.slots]
        for slot in self.slots:
            slot.rank = next((item.rank for item in mine if item.slot.index == slot.index), -1)
        self._tell(view, before)
        self.witness.installed()
        if not self._belongs_to(view):
            self._loop.call_later(VOTE_AFTER_S, self._ask_for_a_vote)
        if not self.slots.in_process:
            # All begin again, those that had finished too.
            self._ending.forget_all()
            for slot in self.slots:
                slot.finished = False
            self._port = _free_port() if self.options.nodes == 1 else master_port(self.options.run_id, view.epoch)
            for slot in self.slots.in_view:
                self._fill(slot)
            return
        if any(item.port for item in view.ranks):
            self._first = self.agreement.patient = False
            self._judgement.installed(view, reason=self._why)
        for place, told in rank_views(view, node=me) if mine else ():
            self._give(told, place)
        self._keys.share()
        for slot in self.slots:
            if slot.rank < 0:
                self._loop.call_later(REFILL_AFTER_S, self._fill, slot)

    def _belongs_to(self, view: View) -> bool:
        if not view.epoch:
            return self.links.incarnation == 0
        return view.nodes[self.slots.node] == self.links.identity

    def _give(self, view: control.View, place: Slot) -> None:
        """Tell a rank its place; one that died meanwhile is the reason for the next view."""
        rank, slot = view.rank, self.slots[place.index]
        if not slot.alive or self.slots.place_of(slot, launcher=self.links.identity) != place:
            self._loop.call_soon(self._trouble, f"rank {rank} of node {self.slots.node} died while it was chosen")
            self._fill(slot)
            return
        slot.ready, slot.epoch, slot.progress, slot.heard_s = None, view.epoch, None, time.monotonic()
        slot.send(view)

    def _tell(self, view: View, before: list[int]) -> None:
        """Log what the view changes."""
        taken = [slot.rank for slot, rank in zip(self.slots, before, strict=True) if rank < 0 <= slot.rank]
        self.journal.view(
            view,
            seconds=time.monotonic() - self._troubled_s if self._troubled_s else 0.0,
            taken=[] if self._first else taken,
            recovered=view.epoch > 1 and not self._first,
        )

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """What fails here would leave the job waiting for something that never comes."""
        self._tasks.discard(task)
        error = task.exception() if not task.cancelled() else None
        if isinstance(error, ForkError | OSError):
            self._ending.give_up(str(error))
        elif error is not None:
            self.journal.say("".join(traceback.format_exception(error)).rstrip())
            self._ending.give_up(f"the launcher failed: {type(error).__name__}: {error}; see the traceback above")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
