"""From verdicts to remedies: called by the service at each verdict and once a second; never waits."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.launchers import JobReport, RestartRequests
from holdfast_agent.remedies.hands_line import HandsLine
from holdfast_agent.remedies.leaving import Departure
from holdfast_agent.remedies.need import Need, need_of, strongest
from holdfast_agent.remedies.plan import Plan, Situation
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.signals import Happening
from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy, node_socket

MOST_NEEDS = 256


class Remediator:
    """
    Remedies of one node.

    Args:
        tell: Sends a command to a launcher, such as ``LauncherSocket.tell``; False where it is gone.
        config: The agent's file, which the executor reads, too.
        overrides: KEY=VALUE pairs of its command line.
        leave: Request file of ``holdfast-agent leave``.
    """

    def __init__(
        self,
        *,
        settings: RemedySettings,
        tell: Callable[[JobReport, node_socket.Command], bool],
        boot_s: float,
        config: Path = Path("/etc/holdfast/agent.json"),
        overrides: Sequence[str] = (),
        hands: Optional[HandsLine] = None,
        leave: Optional[Path] = None,
    ) -> None:
        self._tell = tell
        self._hands = hands or HandsLine(config=config, overrides=overrides)
        self._plan = Plan(settings=settings, started_s=boot_s)
        self._restarting = RestartRequests(acts=settings.mode == "act", host=settings.host)
        self._departure = Departure(request=leave, host=settings.host)
        self._needs: dict[str, Need] = {}

    @property
    def phase(self) -> str:
        return self._plan.phase.value

    @property
    def problem(self) -> str:
        """Reason why it is stuck; else empty."""
        return self._plan.problem

    @property
    def leaving(self) -> "dict[str, Any]":
        return self._departure.status()

    def consider(
        self,
        verdicts: Sequence[Verdict],
        *,
        jobs: "Sequence[JobReport]",
        boot_s: float,
        answers: "Sequence[tuple[JobReport, node_socket.Answer]]" = (),
    ) -> "tuple[Happening, ...]":
        """Take verdicts and answers since the last call (the last verdict on an incident counts); do the next step."""
        for verdict in verdicts:
            need = need_of(verdict)
            self._needs.pop(verdict.incident, None)
            if need is not None:
                self._needs[verdict.incident] = need
            self._accuse(verdict, boot_s=boot_s)
        while len(self._needs) > MOST_NEEDS:
            del self._needs[next(iter(self._needs))]
        decision = self._plan.step(
            Situation(
                boot_s=boot_s,
                need=strongest(self._needs.values()),
                jobs=tuple(jobs),
                hands=self._hands.receive(boot_s=boot_s),
                launchers=tuple(answers),
            )
        )
        if decision.is_cured:
            self._needs.clear()
        orders, reported = self._restarting.step(tuple(jobs), boot_s=boot_s)
        leaving, left = self._departure.step(tuple(jobs), tuple(answers))
        for job, command in [*decision.orders, *orders, *leaving]:
            self._tell(job, command)
        if decision.request is not None:
            self._hands.send(decision.request, boot_s=boot_s)
        return (*decision.events, *reported, *left)

    def _accuse(self, verdict: Verdict, *, boot_s: float) -> None:
        """Restart processes that the kernel named; other sources are not trusted."""
        if verdict.withdrawn:
            self._restarting.withdraw(verdict.incident)
        elif verdict.remedy is Remedy.RESTART_PROCESS and verdict.pids:
            evidence = verdict.evidence[-1].text[:300] if verdict.evidence else ""
            self._restarting.accuse(
                verdict.pids, incident=verdict.incident, fault=verdict.fault, evidence=evidence, boot_s=boot_s
            )

    def snapshot(self) -> "dict[str, Any]":
        needs = {name: need.to_json() for name, need in self._needs.items()}
        return {"needs": needs, "plan": self._plan.snapshot(), "restarting": self._restarting.snapshot()}

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Resume the state of an agent of the same boot and instance; False if the snapshot is invalid."""
        try:
            needs = {str(name): Need.from_json(need) for name, need in snapshot["needs"].items()}
            self._restarting.restore(snapshot.get("restarting") or {"accused": {}, "done": []})
            self._plan.restore(snapshot["plan"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return False
        self._needs = needs
        return True

    def close(self) -> None:
        """Stop the executor; requests stay."""
        self._hands.close()
