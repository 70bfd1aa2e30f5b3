"""
State of a job's log rules.

A match in any pod is one of the job: scripts print on one rank. Times are those of looks at the logs, on one clock, so
clocks of nodes do not count. Where lines are read late or not at all, timers start again: a rule trips late rather than
wrongly.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast_operator.jobs import LogRule
from holdfast_operator.logs.matching import Match

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "gt": operator.gt, "gteq": operator.ge, "lt": operator.lt, "lteq": operator.le, "eq": operator.eq,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Trip:
    rule: str
    state: str
    """HANGING, SLOW or FAULTED."""
    what: str
    pods: frozenset[str]
    """UIDs of the pods that it was observed in."""
    uid: str = ""
    """Pod of the line that is a fault."""


@dataclass(kw_only=True)
class _Rule:
    rule: LogRule
    first_s: float | None
    """Deadline of the first match; None after it."""
    next_s: float | None = None
    """Deadline of the next match; None before the first one."""
    slow: dict[str, int] = field(default_factory=dict)
    """Consecutive slow metrics by pod."""
    is_stopped: bool = False
    found: tuple[str, str, str] | None = None
    """State, description and pod of a trip by lines."""


class LogWatch:
    """
    Rules of one run of a job, from the start of its pods to their common restart.

    Args:
        stopped: Names of rules that are off.
        is_new: False if lines may have been written before the first look: first matches then count as given.
    """

    def __init__(self, rules: Sequence[LogRule], *, stopped: Sequence[str], is_new: bool, now_s: float) -> None:
        self._rules = {
            rule.name: _Rule(rule=rule, first_s=None if rule.start_s is None or not is_new else now_s + rule.start_s)
            for rule in rules
            if rule.name not in stopped
        }

    @property
    def active(self) -> list[LogRule]:
        return [one.rule for one in self._rules.values() if not one.is_stopped]

    @property
    def stopped(self) -> list[str]:
        return [name for name, one in self._rules.items() if one.is_stopped]

    def stop(self, rule: str) -> None:
        """Switch a rule off for good."""
        one = self._rules[rule]
        one.is_stopped, one.first_s, one.next_s = True, None, None

    def saw(self, rule: str, *, uid: str, lines: Sequence[str], matches: Sequence[Match], now_s: float) -> None:
        """Apply the matches of a rule in new lines of a pod."""
        one = self._rules[rule]
        for match in matches:
            if one.is_stopped:
                return
            if match.is_stop:
                self.stop(rule)
                return
            one.first_s = None
            one.next_s = None if one.rule.every_s is None else now_s + one.rule.every_s
            line = lines[match.line].strip()[:200]
            if one.rule.faults_on_match:
                one.found = one.found or ("FAULTED", f"a line matched: {line}", uid)
            elif one.rule.threshold is not None and match.value is not None:
                is_slow = _COMPARED[one.rule.comparison](match.value, one.rule.threshold)
                one.slow[uid] = one.slow.get(uid, 0) + 1 if is_slow else 0
                if one.slow[uid] >= one.rule.points:
                    bound = f"{one.rule.comparison} {one.rule.threshold:g} in {one.rule.points} matches in a row"
                    one.found = one.found or ("SLOW", f"{bound}, the last one: {line}", "")

    def missed(self, *, now_s: float, are_lost: bool = False) -> None:
        """Start timers again: lines will be read later, are lost, or are not expected now."""
        for one in self._rules.values():
            if are_lost:
                one.first_s = None
            if one.first_s is not None and one.rule.start_s is not None:
                one.first_s = max(one.first_s, now_s + one.rule.start_s)
            if one.next_s is not None and one.rule.every_s is not None:
                one.next_s = now_s + one.rule.every_s

    def trip(self, *, pods: frozenset[str], now_s: float) -> Trip | None:
        """Return the first rule that trips, after a look at all of ``pods``."""
        for name, one in self._rules.items():
            found = one.found
            if found is None and one.first_s is not None and now_s >= one.first_s:
                found = ("HANGING", f"no line matched within {one.rule.start_s:g} s", "")
            if found is None and one.next_s is not None and now_s >= one.next_s:
                found = ("HANGING", f"no line matched for {one.rule.every_s:g} s", "")
            if found is not None:
                return Trip(rule=name, state=found[0], what=found[1], pods=pods, uid=found[2])
        return None
