import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Optional

from holdfast_agent.configuration import Configuration
from holdfast_agent.detectors import Detector
from holdfast_agent.idle import IdleCheck, JobAgreementDetector
from holdfast_agent.launchers import LauncherSocket
from holdfast_agent.service.interfaces import Remedies
from holdfast_agent.service.service import clocks
from holdfast_agent.verdicts import Verdict
from holdfast_common import Remedy

_PROGRAM = (
    "import json, sys; sys.path[:0] = json.loads(sys.argv.pop(1)); "
    "from holdfast_agent.__main__ import main; sys.exit(main())"
)


def idling(
    configuration: Configuration,
    launchers: Optional[LauncherSocket],
    remedies: Remedies,
    *,
    file: Path,
    assignments: Sequence[str],
    standing: "Callable[[], tuple[Verdict, ...]]",
) -> "tuple[Detector, ...]":
    """Detectors of idle time; ``standing`` returns the last verdict on each open incident."""
    if launchers is None:
        return ()
    path = json.dumps([entry for entry in sys.path if entry])
    pairs = [f"--set={pair}" for pair in assignments]
    check = ["check", "--deep", "--idle", "--json", "--config", str(file), *pairs]
    idle = IdleCheck(
        command=[sys.executable, "-IS", "-c", _PROGRAM, path, *check],
        seconds=configuration.burn_in_seconds,
        repeat_s=configuration.burn_in_repeat_s,
        why_not="" if configuration.remedies_way == "slurm" else "jobs of this node are not visible from here",
        jobs=launchers.jobs,
        due=lambda: frozenset(verdict.incident for verdict in standing() if verdict.check),
        is_sound=lambda: remedies.phase == "idle" and not any(map(_asks, standing())),
        began_s=clocks().boot_s,
    )
    return (JobAgreementDetector(jobs=launchers.jobs), idle)


def _asks(verdict: Verdict) -> bool:
    return verdict.remedy not in (Remedy.NONE, Remedy.RESTART_PROCESS) and verdict.fault != "burn-in-failed"
