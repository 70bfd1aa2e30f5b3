"""Reports to the node's health agent, and its requests."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from holdfast_common import job_name, kinds, node_socket
from holdfast_runtime import control
from holdfast_runtime.launcher.generation import Context, Departure, Part
from holdfast_runtime.launcher.ranks import DUMP_S, kernel_state

EVIDENCE = 400


class ForAgent(Part):
    def __init__(self, context: Context, *, departure: Departure) -> None:
        super().__init__(context)
        self._departure = departure
        self._job = job_name(os.environ)
        self._task = os.environ.get("SLURM_JOB_ID", "")

    def report(self) -> node_socket.LauncherReport:
        now_s = time.monotonic()
        return node_socket.LauncherReport(
            job=self._job,
            task=self._task,
            run=self._options.run_id,
            node=self._slots.node,
            generation=self._slots.view.generation,
            step=self._slots.known_step,
            spares=self._departure.spares,
            ranks=tuple(
                node_socket.RankReport(
                    rank=slot.rank,
                    pid=slot.process.pid,
                    step=slot.progress.step if slot.progress else 0,
                    phase=slot.progress.phase if slot.progress else "spare" if slot.ready else "start",
                    phase_s=max(0.0, now_s - slot.heard_s),
                )
                for slot in self._slots
                if slot.process is not None
            ),
        )

    def command(self, command: node_socket.Command, answer: Callable[[node_socket.Answer], None]) -> None:
        self._journal.say(f"health agent requested {command.command}: {command.reason}")
        if command.command == "hand-over":
            self._departure.ask(command, answer)
        elif command.command == "quarantine":
            self._departure.quarantine(command.reason)
            answer(self._done(command, ""))
        elif command.command == "abandon":
            answer(self._done(command, ""))
            self._departure.abandon(command.reason)
        elif command.command == "restart":
            self._restart(command, answer)
        else:
            self._dump(command, answer)

    def _done(self, command: node_socket.Command, reason: str) -> node_socket.Answer:
        return node_socket.Answer(
            id=command.id, command=command.command, outcome="done", reason=reason, step=self._slots.known_step
        )

    def _restart(self, command: node_socket.Command, answer: Callable[[node_socket.Answer], None]) -> None:
        found = [slot for slot in self._slots.in_view if slot.rank in command.ranks and slot.process is not None]
        for slot in found:
            if slot.process is not None:
                slot.process.kill()
        ranks = tuple(slot.rank for slot in found)
        step = self._slots.known_step
        outcome, reason = ("done", "") if found else ("refused", "none of these ranks is here any more")
        answer(
            node_socket.Answer(
                id=command.id, command=command.command, outcome=outcome, reason=reason, ranks=ranks, step=step
            )
        )

    def _dump(self, command: node_socket.Command, answer: Callable[[node_socket.Answer], None]) -> None:
        """Ask all ranks where they are, and look after a while which of them have said it."""
        try:
            if self._options.log_dir is not None:
                self._options.log_dir.mkdir(parents=True, exist_ok=True)
            folder = Path(mkdtemp(prefix=f"holdfast-dump-{self._slots.node}-", dir=self._options.log_dir))
        except OSError as error:
            answer(
                node_socket.Answer(id=command.id, command=command.command, outcome="failed", reason=f"no dump: {error}")
            )
            return
        asked = {
            slot.rank: (folder / f"rank{slot.rank}.txt", slot.process.pid)
            for slot in self._slots.in_view
            if slot.process
        }
        for slot in self._slots.in_view:
            if slot.process is not None and slot.speaks:
                slot.send(control.Dump(path=str(asked[slot.rank][0])))
        self._later(DUMP_S, self._collect, command, answer, folder, asked)

    def _collect(
        self,
        command: node_socket.Command,
        answer: Callable[[node_socket.Answer], None],
        folder: Path,
        asked: dict[int, tuple[Path, int]],
    ) -> None:
        for rank, (path, pid) in asked.items():
            try:
                text = path.read_text(errors="replace")
            except OSError:
                text = ""
            stack = text[:EVIDENCE] or f"no report; the kernel: {kernel_state(pid)}"
            self._journal.event(kinds.STACKS_DUMPED, evidence=stack, rank=rank, path=str(path) if text else "", pid=pid)
        answer(self._done(command, str(folder)))
