import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.cli.deployed import (
    Context,
    job_outcome,
    job_output,
    kubernetes_outcome,
    kubernetes_output,
    read_events,
)
from holdfast.cli.kubernetes import COMPLETE
from holdfast.cli.terminal import CommandError, Step

if TYPE_CHECKING:
    from holdfast_common import Event

POLL_S = 0.3
EVENTS_WITHIN_S = 10.0
"""After the end of a job, until its last events are read."""
LAST_LINES = 12
JOB_TIMEOUT_S = 600.0
"""Longest wait for any one thing: the first step, the replacement, the end of the job."""


class Watch:
    """Events since the start of the rehearsal, and the state of its job."""

    def __init__(self, *, context: Context, job_id: str, since_ns: int) -> None:
        self._context, self._since_ns = context, since_ns
        self.job_id = job_id
        self.events: list[Event] = []

    def until(
        self,
        reached: "Callable[[list[Event]], bool]",
        *,
        what: str,
        progress: Step,
        job_may_end: bool = False,
    ) -> bool:
        """
        Wait for events; False if the job completed without. Raises: CommandError: it failed, or took more than 600 s.
        """
        deadline = time.monotonic() + JOB_TIMEOUT_S
        over_since: float | None = None
        while not reached(self._read()):
            progress.update(self._newest())
            if self._job_has_ended() and not job_may_end:
                # What it wrote last is still on its way.
                over_since = over_since or time.monotonic()
                if time.monotonic() > over_since + EVENTS_WITHIN_S:
                    return False
            if time.monotonic() > deadline:
                raise CommandError(f"waited {JOB_TIMEOUT_S:g} s for {what}; see: holdfast events", exit_code=1)
            time.sleep(POLL_S)
        progress.update(self._newest())
        return True

    def _read(self) -> "list[Event]":
        events = read_events(self._context, since_ns=self._since_ns)
        self.events = [e for e in events if e.source != "job" or e.job == self.job_id]
        return self.events

    def _newest(self) -> str:
        for event in reversed(self.events):
            if event.kind == "job_progress":
                return f"step {event.detail.get('step')}, loss {float(event.detail.get('loss', 0)):.3f} nats per byte"
        return f"job {self.job_id} is starting"

    def _job_has_ended(self) -> bool:
        """Return True if the job has completed. Raises: CommandError: it has failed."""
        try:
            state = _outcome(self._context, job=self.job_id)
        except CommandError:
            return False  # a controller that does not answer now says it later
        if state in ("", "COMPLETED", COMPLETE):
            return bool(state)
        try:
            ending = "\n".join(_output(self._context, job=self.job_id)[-LAST_LINES:])
        except CommandError as error:
            ending = f"({error})"
        raise CommandError(
            f"job {self.job_id} is {state}; its output ends with:\n{ending}\n"
            f"all of it: holdfast logs --job {self.job_id}",
            exit_code=1,
        )


def _outcome(context: Context, *, job: str) -> str:
    return (kubernetes_outcome if context.orchestrator == "eks" else job_outcome)(context, job=job)


def _output(context: Context, *, job: str) -> list[str]:
    if context.orchestrator == "slurm":
        return job_output(context, job=job)
    return [line for _, lines in kubernetes_output(context, job=job) for line in lines[-LAST_LINES:]]
