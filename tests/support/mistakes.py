"""
Mistakes that teams make, written from AWS's pages alone: entries in ``tests/cases/mistakes`` and how they are applied.

An entry changes one of the files in ``clean/``. The data are read strictly, and every problem names its entry.
A mistake is found when ``holdfast check --offline`` says something about it that it does not say about the clean file.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import typer
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typer.testing import CliRunner
from unlinted import unlinted

from holdfast.cli.commands.environment import check
from holdfast.cli.terminal import CommandError

CASES = Path(__file__).parents[1] / "cases" / "mistakes"
CLEAN = CASES / "clean"
Kind = Literal["environment", "yaml template", "json template"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Replacement(_Model):
    """A text that occurs once in the base, and what stands there instead."""

    old: str = Field(min_length=1)
    new: str


class Files(_Model):
    """Files beside the base, by their path from its folder."""

    files: dict[str, str] = Field(min_length=1)


class Mistake(_Model):
    """One mistake: what a team changes, and how a right finding is recognised."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    base: str
    what: str = Field(min_length=10)
    change: tuple[Replacement | Files, ...] = Field(min_length=1)
    about: tuple[str, ...] = Field(min_length=1)
    source: str = Field(pattern=r".+\.(md|json): .+")

    @property
    def kind(self) -> Kind:
        """Whether the base is an environment file or a template, and how that is written."""
        return kind_of(Path(self.base))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A mistake and the subject under which it is listed."""

    subject: str
    mistake: Mistake


def kind_of(path: Path) -> Kind:
    """The kind of a file in ``clean/``, from its folder and suffix."""
    if "environments" in path.parts:
        return "environment"
    return "json template" if path.suffix == ".json" else "yaml template"


@cache
def load(cases: Path = CASES) -> tuple[Entry, ...]:
    """All entries, by subject. Raises ValueError with every problem and the entry that has it."""
    entries: list[Entry] = []
    problems: list[str] = []
    for path in sorted(cases.glob("*.yaml")):
        for number, raw in enumerate(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader), start=1):
            try:
                mistake = TypeAdapter(Mistake).validate_python(raw)
            except ValidationError as error:
                name = raw.get("id", f"entry {number}") if isinstance(raw, dict) else f"entry {number}"
                problems += [f"{path.name}: {name}: {_place(one)}: {one['msg']}" for one in error.errors()]
                continue
            entries.append(Entry(subject=path.stem, mistake=mistake))
    seen: set[str] = set()
    for one in entries:
        if one.mistake.id in seen:
            problems.append(f"{one.subject}.yaml: {one.mistake.id}: the id is there twice; give one of them another")
        seen.add(one.mistake.id)
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(entries)


def clean_files() -> tuple[Path, ...]:
    """The files that are right: environments and templates, without what lies beside them."""
    return tuple(sorted(p for d in ("environments", "templates") for p in (CLEAN / d).iterdir() if p.is_file()))


def apply(mistake: Mistake, *, folder: Path) -> Path:
    """Write the base with its mistake into an empty folder, with all that lies beside it; return the changed file."""
    path = copy(CLEAN / mistake.base, folder=folder)
    text = path.read_text(encoding="utf-8")
    for change in mistake.change:
        if isinstance(change, Files):
            _write(change, beside=path)
            continue
        if (count := text.count(change.old)) != 1:
            raise ValueError(
                f"{mistake.id}: {change.old!r} is {count} times in {mistake.base}; give a text that is there once"
            )
        text = text.replace(change.old, change.new)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def copy(base: Path, *, folder: Path) -> Path:
    """Copy a clean file and the folders beside it; return the copy."""
    for one in base.parent.iterdir():
        if one.is_dir():
            shutil.copytree(one, folder / one.name)
    return Path(shutil.copy(base, folder / base.name))


def parse(text: str, *, kind: Kind) -> Any:
    """The document, with CloudFormation's short tags in their long form."""
    if kind == "json template":
        return json.loads(text)
    return yaml.load(text, Loader=_Tags)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a check says as an error or a warning: where, without the name of the file, and what."""

    severity: str
    path: str
    message: str

    def is_about(self, mistake: Mistake) -> bool:
        """Whether the place or the message has one of the things that the mistake is about."""
        return any(one in self.path or one in self.message for one in mistake.about)


def said(path: Path, *, linted: bool = True) -> frozenset[Said]:
    """
    The errors and warnings of ``holdfast check --offline`` for a file. A refusal to read it is one of them.

    Args:
        linted: With those of cfn-lint. Holdfast's own are the same without it.
    """
    with nullcontext() if linted else unlinted():
        result = CliRunner().invoke(_APP, [str(path), "--offline", "--json"])
    if isinstance(result.exception, CommandError):
        return frozenset({Said(severity="error", path="", message=_nameless(str(result.exception), path=path))})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return frozenset(
        Said(
            severity=one["severity"],
            path=_nameless(one["path"], path=path),
            message=_nameless(one["message"], path=path),
        )
        for one in json.loads(result.stdout)
        if one["severity"] in {"error", "warning"}
    )


@cache
def said_of_clean(base: Path, *, linted: bool = True) -> frozenset[Said]:
    with tempfile.TemporaryDirectory(prefix="holdfast-clean-") as folder:
        return said(copy(base, folder=Path(folder)), linted=linted)


def found(mistake: Mistake) -> bool:
    """
    Whether the checks say something about the mistake that they do not say about the clean file.

    cfn-lint takes most of the time of a check, and judges only where Holdfast's rules find nothing.
    """
    return any(_is_found(mistake, linted=linted) for linted in (False, True))


def _is_found(mistake: Mistake, *, linted: bool) -> bool:
    with tempfile.TemporaryDirectory(prefix="holdfast-mistake-") as folder:
        now = said(apply(mistake, folder=Path(folder)), linted=linted)
    before = said_of_clean(CLEAN / mistake.base, linted=linted)
    return any(one.is_about(mistake) for one in now - before)


_APP = typer.Typer()
_APP.command()(check.check)


def _nameless(text: str, *, path: Path) -> str:
    for name in (str(path.resolve()), str(path), str(path.parent.resolve()), str(path.parent), path.name):
        text = text.replace(name, "")
    return text


class _Tags(yaml.CSafeLoader):
    """Reads ``!Ref`` and its like as CloudFormation does."""


def _long_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix in {"Ref", "Condition"}:
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Tags.add_multi_constructor("!", _long_form)


def _place(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"]) or "entry"


def _write(change: Files, *, beside: Path) -> None:
    for name, content in change.files.items():
        target = beside.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8", newline="")


def subjects(entries: Iterable[Entry]) -> Iterator[str]:
    """The subjects of the entries, each once, in order."""
    yield from dict.fromkeys(one.subject for one in entries)
