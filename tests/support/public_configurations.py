"""Cluster configurations that others published: a list of where they are, and the text of those that are on this disk.

Nothing of them is in this repository. HOLDFAST_PUBLIC_CONFIGURATIONS names a folder that holds each file as
``<owner>+<name>/<commit>/<path>``; ``git -C CLONE show COMMIT:PATH`` writes one.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

FOLDER = "HOLDFAST_PUBLIC_CONFIGURATIONS"
GIVEN = os.environ.get(FOLDER)
"""As it was when the tests were collected: no test sees such variables."""
LIST = Path(__file__).parents[1] / "cases" / "import" / "public.yaml"
BEGIN = re.compile(r"^[ \t]*([\[{])", re.MULTILINE)
MEMBERS = frozenset({"InstanceGroups", "InstanceGroupName", "controller_group", "SecurityGroupIds"})


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublicFile(_Row):
    """A file of a repository, or a configuration in a page or script."""

    path: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the file; of a part its value, with the words of its reader filled in and nothing between its signs."""
    part: int | None = None
    """Which of the configurations in it, from 1; None: the file is one."""


class PublicConfiguration(_Row):
    """The files that one cluster is made of, and what becomes of them."""

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    repository: str = Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    licence: str
    files: tuple[PublicFile, ...] = Field(strict=False, min_length=1)
    name: str | None = None
    """The cluster's, as the repository's own commands pass it, where the files have none."""
    region: str | None = None
    """Likewise."""
    filled: bool = False
    """Whether its reader has put values in place of variables and placeholders."""
    values: dict[str, str] = {}
    """Which ones, beside those that the list gives all."""
    refused: str | None = None
    """Words of the error, where the files are no request."""
    questions: dict[str, str] = {}
    """The settings at which a person is asked, and words of the question; empty: it is imported as it is."""
    errors: dict[str, str] = {}
    """Codes of the errors that check finds in the imported file, and why they are right."""


def public_configurations() -> tuple[PublicConfiguration, ...]:
    """The list."""
    document = yaml.safe_load(LIST.read_text())
    common: dict[str, str] = document["values"]
    rows = (PublicConfiguration.model_validate(row) for row in document["configurations"])
    return tuple(row.model_copy(update={"values": {**common, **row.values}} if row.filled else {}) for row in rows)


def fetched(row: PublicConfiguration, into: Path) -> list[Path] | None:
    """
    The files of a configuration as its reader has them; None where they are not on this machine.

    Raises:
        ValueError: a file is another one than was listed.
    """
    paths = []
    for number, file in enumerate(row.files):
        source = Path(GIVEN or "/", row.repository.replace("/", "+"), row.commit, file.path)
        if GIVEN is None or not source.is_file():
            return None
        text = source.read_bytes().decode()
        read = _filled(text, row.values)
        if file.part is not None:
            read = list(parts(read))[file.part - 1]
            text = json.dumps(json.loads(read), separators=(",", ":"))
        if hashlib.sha256(text.encode()).hexdigest() != file.sha256:
            raise ValueError(f"{row.id}: {source} is not the file that was listed")
        path = into / f"{number}-{Path(file.path).name}.json"
        path.write_text(read)
        paths.append(path)
    return paths


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(name, values[name])
    return text


def parts(text: str) -> Iterator[str]:
    """The configurations in a page or script, each as it stands there."""
    at = 0
    while begin := BEGIN.search(text, at):
        start = begin.start(1)
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            at = begin.end()
            continue
        at = end
        if MEMBERS & set(_members(value)):
            yield text[start:end]


def _members(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield from item
