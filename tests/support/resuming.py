"""
A pytest plugin for runs that are resumed: cases that passed at a commit are not run again at it.

One line of JSON a case: ``{"case": node id, "outcome": ..., "seconds": ..., "commit": ...}``.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from run_parts import CHANGED


def shard_of(cases: Sequence[str], *, shard: int, shards: int) -> Sequence[str]:
    """Return the cases of shard 1 to ``shards``: neighbours, since those share what a module makes for them."""
    first, last = ((len(cases) * edge) // shards for edge in (shard - 1, shard))
    return cases[first:last]


def passed_at(results: Path, commit: str) -> set[str]:
    """Return the cases whose newest line of this commit is a pass; none of a checkout with changes."""
    newest: dict[str, str] = {}
    if commit.endswith(CHANGED) or not results.exists():
        return set()
    for line in results.read_text().splitlines():
        try:
            case = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        if case["commit"] == commit:
            newest[case["case"]] = case["outcome"]
    return {name for name, outcome in newest.items() if outcome == "passed"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("resuming")
    group.addoption("--results", type=Path, required=True, help="file of results, read and appended to")
    group.addoption("--commit", required=True, help="commit that is tested")
    group.addoption("--shard", default="1/1", help="N/M: the N-th of M shards of the cases")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    shard, _, shards = config.getoption("--shard").partition("/")
    own = set(shard_of([item.nodeid for item in items], shard=int(shard), shards=int(shards)))
    done = passed_at(config.getoption("--results"), config.getoption("--commit"))
    left_out = [item for item in items if item.nodeid not in own or item.nodeid in done]
    items[:] = [item for item in items if item.nodeid in own and item.nodeid not in done]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


class Recorder:
    """Write the result of each case when its last phase has ended."""

    def __init__(self, results: Path, commit: str) -> None:
        self._results = results
        self._commit = commit
        self._outcomes: dict[str, str] = {}
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = report.nodeid
        self._seconds[case] = self._seconds.get(case, 0.0) + report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[case] = report.outcome
        if report.when == "teardown":
            line = {
                "case": case,
                "outcome": self._outcomes.pop(case),
                "seconds": round(self._seconds.pop(case), 1),
                "commit": self._commit,
            }
            with self._results.open("a") as file:
                file.write(json.dumps(line) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config.getoption("--results"), config.getoption("--commit")))
