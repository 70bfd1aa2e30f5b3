"""The README is two screens, and what it shows is what was recorded."""

import re
from io import StringIO
from pathlib import Path

from rich.console import Console

from holdfast.cli.deployed import StatusView
from holdfast.cli.views import summary
from holdfast_common import Event

ROOT = Path(__file__).parents[4]
README = (ROOT / "README.md").read_text()


def test_the_first_page_is_two_screens() -> None:
    assert len(README.splitlines()) <= 80


def test_the_summary_on_the_first_page_is_that_of_the_recorded_rehearsal() -> None:
    recorded = (ROOT / "tests" / "cases" / "events" / "rehearsal.jsonl").read_text().splitlines()
    console = Console(file=StringIO(), width=110)
    texts = "environment cloud endpoint problem stack_name stack_status cluster_name cluster_status cluster_message"
    view = StatusView(
        **dict.fromkeys([*texts.split(), "orchestrator"], ""),
        stack_outputs={},
        nodes=[],
        jobs=[],
        file_system=None,
        stand_ins={},
    )
    names = {"1": "bytelm", "2": "bytelm-resilient"}
    console.print(summary(view, [Event.from_json(line) for line in recorded], names=names))
    assert isinstance(console.file, StringIO)
    printed = {line.rstrip() for line in console.file.getvalue().splitlines()}
    (shown,) = re.findall(r"```\n(incident .*?)```", README, re.DOTALL)

    assert [line for line in shown.splitlines() if line not in printed] == []
