"""Write the tables of docs/events.md, docs/lifecycle.md and docs/health/metrics.md: ``make schema``."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from holdfast_agent.metrics import NAMES
from holdfast_common import FAULTS, SOURCES, kinds
from holdfast_lifecycle import Step
from holdfast_lifecycle.model import HOOKS, KUBERNETES, ON_CREATE, SLURM
from holdfast_lifecycle.steps import STEPS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "events.md", DOCS / "lifecycle.md", DOCS / "health" / "metrics.md")

STEP_COLUMNS = ("step", "extension", "custom", "EKS", "what is true afterwards")

Row = tuple[str, ...]


def kind_rows() -> Iterator[tuple[str, str, str]]:
    """Kind, source and meaning of each constant of ``kinds``, by the text below it."""
    body = ast.parse(Path(kinds.__file__).read_text()).body
    for constant, text in pairwise([*body, ast.Pass()]):
        if not isinstance(constant, ast.Assign):
            continue
        name = ast.unparse(constant.targets[0])
        documented = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        words = " ".join(str(text.value.value).split()) if documented else ""  # type: ignore[attr-defined]
        source, _, meaning = words.partition(": ")
        if source not in SOURCES or not meaning:
            raise SystemExit(
                f"kinds.{name} is not documented: got {words!r} below it; write '<source>: <meaning>', "
                f"the source one of {', '.join(SOURCES)}"
            )
        yield getattr(kinds, name), source, meaning


def fault_rows() -> Iterator[Row]:
    for one in FAULTS:
        yield one.name, one.signal, one.severity.value, one.remedy.value


def metric_rows() -> Iterator[Row]:
    for name, (kind, meaning) in NAMES.items():
        yield name, kind, meaning.removesuffix(".")


def step_rows() -> Iterator[Row]:
    """Steps with their nodes in extension mode, in custom mode and under Kubernetes, and their goals."""
    for step in STEPS:
        later = next(hook for hook in HOOKS if hook != ON_CREATE)
        under_kubernetes = "all" if KUBERNETES in step.roles and ON_CREATE in step.hooks else ""
        text = (inspect.getdoc(step.load()) or "").partition("\n\n")[0]
        what = " ".join(text.split()).replace("``", "`")
        yield step.name, _nodes(step, later), _nodes(step, ON_CREATE), under_kubernetes, what


def _nodes(step: Step, hook: str) -> str:
    roles = [role for role in SLURM if role in step.roles and hook in step.hooks]
    return "all" if len(roles) == len(SLURM) else ", ".join(roles).lower()


def table(head: Row, rows: Iterable[Row]) -> str:
    lines = [_line(head), "|---" * len(head) + "|", *(_line((f"`{row[0]}`", *row[1:])) for row in rows)]
    return "\n".join(lines)


def _line(cells: Row) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def tables() -> dict[str, dict[str, str]]:
    """Page -> heading -> table."""
    return {
        "events.md": {
            "Kinds": table(("kind", "source", "meaning"), kind_rows()),
            "Faults": table(("name", "signal", "severity", "least remedy"), fault_rows()),
        },
        "lifecycle.md": {"Steps": table(STEP_COLUMNS, step_rows())},
        "metrics.md": {"Names": table(("name", "kind", "meaning"), metric_rows())},
    }


def written(page: Path) -> str:
    text = page.read_text()
    for heading, rows in tables()[page.name].items():
        text, count = re.subn(rf"(\n## {heading}\n(?:(?!\|).*\n)*)(?:\|.*\n)+", partial(_with_table, rows), text)
        if count != 1:
            raise SystemExit(f"{page.name} has no table below the heading '{heading}'; put one there")
    return text


def _with_table(rows: str, found: "re.Match[str]") -> str:
    return f"{found[1]}{rows}\n"


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(written(each))
