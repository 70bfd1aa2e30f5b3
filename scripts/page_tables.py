"""Tables that pages of the site get from the code: events, faults, metrics, lifecycle steps, wheels, packages."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import distributions
import gpu_table
import local_tables
import package_tables
from holdfast_agent.metrics import NAMES
from holdfast_common import FAULTS, SOURCES, kinds
from holdfast_lifecycle import Step
from holdfast_lifecycle.model import HOOKS, KUBERNETES, ON_CREATE, SLURM
from holdfast_lifecycle.steps import STEPS
from markdown_table import Row, table

STEP_COLUMNS = ("step", "extension", "custom", "EKS", "what is true afterwards")


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


def _coded(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows with their first cell as code."""
    for first, *others in rows:
        yield f"`{first}`", *others


def tables() -> dict[str, str]:
    """Each table by the name that pages have in ``<!-- table: NAME -->``."""
    return {
        "kinds": table(("kind", "source", "meaning"), _coded(kind_rows())),
        "faults": table(("name", "signal", "severity", "least remedy"), _coded(fault_rows())),
        "steps": table(STEP_COLUMNS, _coded(step_rows())),
        "metrics": table(("name", "kind", "meaning"), _coded(metric_rows())),
        "gpu": gpu_table.markdown(),
        "wheels": distributions.table(),
        "floors": package_tables.floors_table(package_tables.read_tree()),
        **local_tables.markdown(),
    }
