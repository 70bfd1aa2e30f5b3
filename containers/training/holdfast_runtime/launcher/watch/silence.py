"""Watch over local processes: stopped, silent, or not ending after SIGKILL."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from holdfast_runtime.control import StoppedProcesses, is_stopped
from holdfast_runtime.launcher.generation import Context, Part
from holdfast_runtime.launcher.ranks import LAST_ONES, LocalSlot, Process, Processes, is_blocked
from holdfast_runtime.membership import View
from holdfast_runtime.patience import Limits, Pace, ProgressReport, hang, moved, paused, silence_s


class Watch(Part):
    def __init__(self, context: Context, *, processes: Processes) -> None:
        super().__init__(context)
        self._processes = processes
        self._stopped = StoppedProcesses(self._deadlines.frozen)
        self._pace = Pace()

    @property
    def silence_s(self) -> float:
        return silence_s(self._pace, least_s=self._deadlines.silence, most_s=self._deadlines.progress)

    @property
    def step_s(self) -> tuple[float | None, float | None]:
        """Seconds since the last finished step, and of the longest one; None before one."""
        since_s, longest = self._pace.since_s, self._pace.longest
        return None if since_s is None else time.monotonic() - since_s, longest[0][1] if longest else None

    def moved(self, step: int) -> None:
        if step > self._pace.step:
            self._pace = moved(self._pace, step=step, now_s=time.monotonic())

    def installed(self, view: View) -> None:
        self._pace = paused(self._pace, step=view.resume_step)

    async def run(self, *, trouble: Callable[[str], None], unended: Callable[[Process], Awaitable[None]]) -> None:
        """
        Look again and again.

        Args:
            trouble: Requests another view for a reason: all have to leave, and who does not is killed.
            unended: Called with a process that has not ended within ``Deadlines.unended`` after SIGKILL.
        """
        every_s = min(self._stopped.every_s, self._deadlines.progress / 4, self._deadlines.unended)
        while True:
            asked_s = time.monotonic()
            await asyncio.sleep(every_s)
            now_s = time.monotonic()
            self._look_for_stopped(now_s)
            # A launcher that was stopped itself has to read first what came meanwhile.
            if now_s - asked_s < 3 * every_s:
                for process in self._unended(now_s):
                    await unended(process)
                if why := self._look_for_silent(now_s):
                    trouble(why)

    def _look_for_stopped(self, now_s: float) -> None:
        names = {slot.process.pid: _name(slot) for slot in self._slots if slot.process is not None}
        forker = self._processes.forker_pid
        if forker is not None:
            names[forker] = "the process that forks ranks"
        for pid in self._stopped.look([pid for pid in names if is_stopped(pid)], now_s=now_s):
            for_s = f"{self._deadlines.frozen:g} s"
            self._journal.say(f"{names[pid]} (process {pid}) has been stopped for {for_s}, as by SIGSTOP; it is killed")
            for slot in self._slots:
                if slot.process is not None and slot.process.pid == pid:
                    slot.kill(f"it had been stopped for {for_s}")
            if pid == forker:
                self._processes.kill_forker()

    def _unended(self, now_s: float) -> list[Process]:
        processes = [slot.process for slot in self._slots if slot.process is not None]
        limit_s = self._deadlines.unended
        return [each for each in processes if each.killed_s is not None and now_s - each.killed_s > limit_s]

    def _look_for_silent(self, now_s: float) -> str:
        """Kill processes that do not start; return why all others have to leave, empty for no reason."""
        limits, reports = self._limits(), []
        for slot in self._slots:
            if slot.process is None or slot.ready is not None or not self._slots.in_process:
                continue
            if slot.process.killed_s is not None:
                continue
            silent_s = now_s - slot.heard_s
            if slot.finished:
                if self._others_have_ended and silent_s > self._deadlines.progress:
                    slot.kill(f"it had reported nothing for {self._deadlines.progress:g} s behind its last step")
                continue
            if slot.generation > 0 and slot.progress is not None:
                blocked = silent_s > limits.waiting_s / 2 and is_blocked(slot.process.pid)
                reports.append(ProgressReport(slot.rank, slot.progress.step, slot.progress.phase, silent_s, blocked))
                continue
            limit_s = self._place_s() if slot.generation else self._deadlines.start
            if silent_s > limit_s:
                what = f"{'taken its place in the view' if slot.generation else 'become ready'} within {limit_s:g} s"
                self._journal.say(f"{_name(slot)} has not {what} and is killed")
                slot.kill(f"it had not {what}")
        return hang(reports, limits=limits, world_size=self._slots.world_size)

    @property
    def _others_have_ended(self) -> bool:
        return self._ending.some_finished or any(slot.finished and not slot.alive for slot in self._slots)

    def _place_s(self) -> float:
        hope = self._slots.only_hope(reported=lambda slot: slot.progress is not None)
        return self._deadlines.leave * (LAST_ONES if hope else 1)

    def _limits(self) -> Limits:
        return Limits(
            waiting_s=self.silence_s,
            working_s=self._deadlines.progress,
            recovering_s=self._deadlines.transfer,
            sharded=self._slots.survives is not None and self._slots.world_size > 1,
        )


def _name(slot: LocalSlot) -> str:
    return f"rank {slot.rank}" if slot.rank >= 0 else f"the spare of slot {slot.index}"
