"""Refusals of constructs and stacks, each reported by a rule first: no traceback follows a clean check."""

import ast
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from holdfast.catalog import charts
from holdfast.validation.pages import Example, findings_of

ROOT = Path(__file__).parents[3]
ROWS: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests" / "cases" / "refusals.yaml").read_text())
AT_WORK = ("holdfast_constructs/helm_installer/",)
"""Code of functions that run in AWS."""


def raises() -> Iterator[str]:
    """``file:function`` of every raise in constructs and stacks, once for each."""
    for package in (ROOT / "constructs" / "holdfast_constructs", ROOT / "stacks" / "holdfast_stacks"):
        for path in sorted(package.rglob("*.py")):
            name = path.relative_to(package.parent).as_posix()
            if not name.startswith(AT_WORK):
                yield from (f"{name}:{function}" for function in raising(ast.parse(path.read_text()), ()))


def raising(node: ast.AST, names: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = (*names, child.name) if isinstance(child, ast.FunctionDef | ast.ClassDef) else names
        if isinstance(child, ast.Raise):
            yield ".".join(names)
        yield from raising(child, inner)


def test_every_refusal_of_a_construct_has_its_row() -> None:
    assert sorted(raises()) == sorted(name for name, rows in ROWS.items() for _ in rows)


def test_a_rule_reports_first_what_a_construct_would_refuse(tmp_path: Path) -> None:
    cases = [(name, row) for name, rows in ROWS.items() for row in rows if "never" not in row]
    missed = []
    for number, (name, row) in enumerate(cases):
        found = errors(tmp_path / str(number), row["base"], row["set"], row.get("files", {}))
        if row["code"] not in found:
            missed.append((name, row["code"], found))

    assert missed == []


def test_a_bucket_that_the_cdk_refuses_is_reported(tmp_path: Path) -> None:
    found = errors(tmp_path, "slurm.yaml", {"storage.data": {"bucket_name": "a.-b"}}, {})

    assert "HF656" in found


def test_a_folder_of_charts_has_all_that_the_cluster_needs(tmp_path: Path) -> None:
    closed = {"network.egress": "none", "eks.chart_archives": "charts"}
    paths: dict[str, list[str]] = {}
    for chart in charts().values():
        paths.setdefault(chart.repository.replace("/", "+"), []).append(chart.path)
    for number, name in enumerate(sorted(paths)):
        archive(tmp_path / "all" / "charts" / f"{name}{'' if number else '-' + '0a' * 20}.tar.gz", paths[name])
    (first, *others) = sorted((tmp_path / "all" / "charts").iterdir())
    for path in others:
        (tmp_path / "some" / "charts").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / "some" / "charts")
    shutil.copytree(tmp_path / "some", tmp_path / "broken")
    (tmp_path / "broken" / "charts" / first.name).write_text("no archive")

    assert "HF326" not in errors(tmp_path / "all", "eks.yaml", closed, {})
    assert "HF326" in errors(tmp_path / "some", "eks.yaml", closed, {})
    assert "HF326" in errors(tmp_path / "broken", "eks.yaml", closed, {})
    assert "HF326" in errors(tmp_path / "none", "eks.yaml", {"eks.chart_archives": "charts"}, {})
    assert "HF326" not in errors(tmp_path / "some", "eks.yaml", {"eks.chart_archives": "charts"}, {})


def archive(path: Path, folders: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as found:
        for folder in folders:
            found.addfile(tarfile.TarInfo(f"repository-main/{folder}/Chart.yaml"))


def errors(folder: Path, base: str, changes: dict[str, Any], files: dict[str, str]) -> set[str]:
    folder.mkdir(exist_ok=True)
    found = findings_of(Example(base=base, changes=changes, files=files), folder=folder)
    return {finding.code for finding in found if finding.severity == "error"}
