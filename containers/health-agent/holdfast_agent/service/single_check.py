"""One check of a node without a running agent: each detector until it has answered or its deadline has passed."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast_agent.configuration import Configuration
from holdfast_agent.detectors import Detector, Support
from holdfast_agent.service.composition import detectors_of
from holdfast_agent.service.service import clocks
from holdfast_agent.service.verdict_events import verdict_status
from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import Engine, Policy
from holdfast_common import Remedy

LONGEST_S = 12.0
TURN_S = 0.05
_OF_THE_NODE = (Remedy.RESET_GPU, Remedy.REBOOT, Remedy.REPLACE)


@dataclass(frozen=True)
class CheckResult:
    """
    Args:
        incidents: Those that require something of the node.
        supported: Detectors that ran.
        unsupported: Those that could not, and why.
    """

    incidents: "Sequence[dict[str, Any]]"
    supported: "Sequence[str]"
    unsupported: "Mapping[str, str]"


def check_once(configuration: Configuration) -> CheckResult:
    """Last verdict on all signals; conditions that need two polls are left to the running agent."""
    detectors = detectors_of(configuration)
    engine = Engine(policy=Policy.standard(), node=configuration.node_instance_id)
    failed: dict[str, str] = {}
    waiting = {one.name: one for one in detectors}
    until_s = clocks().boot_s + LONGEST_S
    try:
        while waiting and clocks().boot_s < until_s:
            for one in [*waiting.values()]:
                if _look(one, engine, failed):
                    del waiting[one.name]
            time.sleep(TURN_S if waiting else 0.0)
    finally:
        for one in detectors:
            one.close()
    at = clocks()
    engine.advance(boot_s=at.boot_s, time_ns=at.time_ns)
    asks = [
        verdict for verdict in engine.standing() if verdict.remedy in _OF_THE_NODE or verdict.fault == "check-failed"
    ]
    return CheckResult(
        incidents=[verdict_status(verdict) for verdict in asks],
        supported=[one.name for one in detectors if one.support is Support.YES and one.name not in failed],
        unsupported={
            one.name: failed.get(one.name) or one.reason for one in detectors if one.support is not Support.YES
        },
    )


def _look(one: Detector, engine: Engine, failed: "dict[str, str]") -> bool:
    try:
        for seen in one.look(clocks()):
            if isinstance(seen, Signal):
                engine.see(seen)
    except Exception as problem:  # noqa: BLE001 - the others go on
        failed[one.name] = f"{type(problem).__name__}: {problem}"
        return True
    return one.hung > 0 or (one.support is not Support.UNKNOWN and not one.asking() and one.due_in_s(clocks()) > 0)
