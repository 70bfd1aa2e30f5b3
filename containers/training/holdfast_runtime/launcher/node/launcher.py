"""
``holdfast-run`` on one node: makes the parts, connects them, and runs until the job has ended.

A script that sends nothing on its control socket is restarted as a whole, as torchrun does; one that sends hello keeps
running while others are replaced.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from holdfast_common import EventLog, instance_id
from holdfast_runtime.launcher.allocation import Expansion, read_submitted, survival
from holdfast_runtime.launcher.generation import (
    Building,
    Context,
    Departure,
    Ending,
    Journal,
    Notice,
    Record,
    Resizing,
    Witnessing,
)
from holdfast_runtime.launcher.keys import KeyRelay
from holdfast_runtime.launcher.links import Handlers, Identity, Links, Settled
from holdfast_runtime.launcher.node.agent_link import AgentLink
from holdfast_runtime.launcher.node.carrier import Carrier
from holdfast_runtime.launcher.node.for_agent import ForAgent
from holdfast_runtime.launcher.node.generations import Generations
from holdfast_runtime.launcher.node.parts import Parts
from holdfast_runtime.launcher.node.peers import Peers
from holdfast_runtime.launcher.node.places import Places
from holdfast_runtime.launcher.node.ranks import Ranks
from holdfast_runtime.launcher.node.settling import Settling
from holdfast_runtime.launcher.node.tasks import Tasks
from holdfast_runtime.launcher.ranks import LocalSlots, Processes, Program
from holdfast_runtime.launcher.settings import Options, log_file
from holdfast_runtime.launcher.watch import Judgement, Watch
from holdfast_runtime.membership import View


class Launcher:
    """The launcher of one node: makes its parts in the order in which they need each other, and starts what listens."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._loop = asyncio.get_running_loop()
        self.slots = LocalSlots(
            node=options.node_rank,
            ranks=options.processes,
            spares=options.spares,
            world_size=options.world_size,
            nodes=options.nodes,
        )
        self.links = Links(
            Identity(node=options.node_rank, run_id=options.run_id, token=options.token),
            host=options.peers.host,
            deadlines=options.deadlines,
            size=options.nodes,
        )
        self.journal = self._make_journal()
        instance = instance_id(os.environ)
        self.record = Record(slots=self.slots, journal=self.journal, instance=instance, sizes=options.sizes)
        self.ending = Ending(
            slots=self.slots, links=self.links, journal=self.journal, record=self.record, deadlines=options.deadlines
        )
        self.tasks = Tasks(ending=self.ending, journal=self.journal)
        context = Context(
            options=options,
            slots=self.slots,
            links=self.links,
            journal=self.journal,
            ending=self.ending,
            later=self._loop.call_later,
        )
        self.expansion = self._make_expansion()
        self.witness = Witnessing(context)
        self._keys = KeyRelay(slots=self.slots, links=self.links)
        self._processes = self._make_processes()
        self.places = Places(context, processes=self._processes, tasks=self.tasks)
        self.building = Building(context, replace=self.places.replace)
        self.departure = Departure(context, building=self.building, failed=self.places.fill_spares)
        self.resizing = Resizing(context, departure=self.departure)
        self._notice = Notice(context, leave=self.departure.ask)
        agent = ForAgent(context, departure=self.departure)
        self.agent_link = AgentLink(
            path=options.agent_socket, report=agent.report, command=agent.command, journal=self.journal
        )
        self._settling = Settling(context, instance=instance, settled=self._settled)
        self._watch = Watch(context, processes=self._processes)
        self._judgement = Judgement(context)
        self.generations = Generations(
            context,
            witness=self.witness,
            judgement=self._judgement,
            carrier=Carrier(context, places=self.places, keys=self._keys),
            begins=self._generation_begins,
            began=self._generation_began,
            record=self.record,
        )
        parts = Parts(
            building=self.building,
            departure=self.departure,
            generations=self.generations,
            judgement=self._judgement,
            keys=self._keys,
            places=self.places,
            record=self.record,
            resizing=self.resizing,
            settling=self._settling,
            tasks=self.tasks,
            watch=self._watch,
            witness=self.witness,
        )
        self.ranks = Ranks(context, parts)
        self.peers = Peers(context, parts)

    @property
    def forker_pid(self) -> int | None:
        """Of the process that forks ranks; None where there is none."""
        return self._processes.forker_pid

    @property
    def silence_s(self) -> float:
        return self._watch.silence_s

    @property
    def deadlines(self) -> dict[str, float | None]:
        """Seconds for ``holdfast-run status``: of watched ranks, since the last step, and of the longest one."""
        age_s, longest_s = self._watch.step_s
        limits = self.options.deadlines
        return {"frozen_s": limits.frozen, "progress_s": limits.progress, "step_age_s": age_s, "longest_s": longest_s}

    def metrics(self) -> str:
        """Return Prometheus' text of this node."""
        slots = [slot for slot in self.slots if slot.alive]
        gauges = {
            "generation": self.slots.view.generation,
            "local_ranks": sum(slot.rank >= 0 for slot in slots),
            "local_spares": sum(slot.rank < 0 and slot.ready is not None for slot in slots),
            "step": self.slots.known_step,
        }
        return self.journal.metrics(gauges | self.record.gauges)

    async def run(self) -> int:
        self._notice.listen()
        try:
            handlers = Handlers(
                up=self.peers.up,
                down=self.peers.down,
                message=self.peers.receive,
                taken=self.ending.give_up,
                restart=self.peers.restart,
                stranger=self.journal.say,
                linked=self.peers.linked,
            )
            await self.links.open(port=self.options.peers.port, known=self.options.peers.known, handlers=handlers)
            self.witness.start(self.generations)
            self.tasks.spawn(self._begin())
            self.tasks.spawn(self._watch.run(trouble=self.generations.trouble, unended=self.ranks.unended))
            self.tasks.spawn(self.agent_link.run())
            code = await self.ending.exit_code
            if code in (0, 1) and self.options.metrics_file is not None:
                # The shell that started it may end with the code of another program, as behind a pipe.
                last = f"the job ends: {self.ending.reason}\n" if code else self.metrics()
                self._keep(self.options.metrics_file, last)
            return code
        finally:
            await self.agent_link.close()
            self.tasks.cancel()
            self.generations.close()
            await self.witness.close()
            await self.links.close()
            self._processes.close()
            await self.expansion.close()

    def _keep(self, path: Path, last: str) -> None:
        try:
            path.write_text(last)
        except OSError as error:
            self.journal.say(f"the last metrics were not written to {path}: {error.strerror}")

    async def _begin(self) -> None:
        preparing = self._loop.create_task(self._processes.prepare())
        if self.options.node_rank == 0 and self.options.expansion.job and not self.options.is_brought:
            submitted = await self._loop.run_in_executor(None, read_submitted, os.environ)
            self.journal.say(survival(submitted).sentence)
        if await self.peers.come():
            await preparing
            self.places.prepared(self.ranks)
            self.generations.begin()

    def _leads(self) -> bool:
        me, up, view = self.options.node_rank, self.links.up, self.slots.view
        if self.options.is_brought and not view.generation:
            return False  # the job that it joins has its leader
        named = [node for node, name in enumerate(view.nodes) if name >= 0]
        found = (node for node in named if node == me or node in up or self.ending.has_finished(node))
        return next(found, me) == me

    def _forker_lost(self, how: str) -> None:
        write = self.journal.note if self.ending.begun else self.journal.say
        write(f"{how}; restarting it")

    def _make_journal(self) -> Journal:
        return Journal(
            node=self.options.node_rank,
            as_json=self.options.log_json,
            events=EventLog.from_environment(source="job"),
            debug=self.options.log_debug,
            file=log_file(self.options),
            leads=self._leads,
            answer=self.options.expansion.answer,
        )

    def _make_expansion(self) -> Expansion:
        return Expansion(
            self.options.expansion,
            token=self.options.token,
            slots=self.slots,
            links=self.links,
            host=self.options.peers.host,
            leads=self._leads,
            tell=self.journal.say,
        )

    def _make_processes(self) -> Processes:
        options = self.options
        program = Program(
            arguments=options.program,
            module=options.module,
            python=options.python,
            preload=options.preload,
            log_dir=options.log_dir,
        )
        return Processes(program, deadlines=options.deadlines, on_forker_lost=self._forker_lost)

    def _settled(self, view: View, reports: Mapping[int, Settled]) -> None:
        self.record.settled(view, reports)
        self.agent_link.changed()
        self.departure.settled(view, reports)
        self.resizing.settled(view)
        self.building.settled(view)

    def _generation_begins(self, view: View) -> None:
        if any(item.port for item in view.ranks):
            self.places.warm()  # who comes back in the middle of an agreement hears of the view first
        self._keys.begin(view)
        self._watch.installed(view)
        self.resizing.installed(view)
        self.building.installed(view)

    def _generation_began(self, view: View) -> None:
        self.ranks.installed(view)
        self.expansion.installed()
        self.departure.installed(view)
        self._settling.installed(view)
        self.agent_link.changed()
