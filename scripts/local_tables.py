"""Tables of the local cloud and of the command line, from code and from the data of tests."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
import yaml

import kubernetes_tables
import run_parts
from holdfast import cli
from holdfast.localcloud.image import stand_ins
from holdfast.localcloud.roster import EVERY
from markdown_table import Row, table

CASES = Path(__file__).parents[1] / "tests" / "cases"


def tables() -> Mapping[str, tuple[Row, list[Row]]]:
    return {
        "commands": (("command", "what it does", "options"), list(command_rows(typer.main.get_command(cli.app)))),
        "parts": (("part", "shards", "guards"), list(part_rows())),
        "hyperpod": (("id", "about", "here", "source"), _rows("hyperpod/behaviour.yaml")),
        "jobs": (("behaviour", "source", "test"), _rows("hyperpod/jobs.yaml")),
        "lifecycle-messages": (("behaviour", "source", "test"), _rows("hyperpod/lifecycle_messages.yaml")),
        "prerequisites": (
            ("resource", "what must exist", "otherwise", "source"),
            _rows("hyperpod/prerequisites.yaml"),
        ),
        "not-in-1.20": (
            ("what a chart has", "message of helm", "instead"),
            [(row["what"], _code(row["error"]), row["instead"]) for row in _read("kubernetes/not-in-1.20.yaml")],
        ),
        "objections": (
            ("rule", "where", "why"),
            [
                (_code(row["rule"].replace("|", "\\|")), _code(row["where"].replace("|", "\\|")), row["why"])
                for row in _read("security/objections.yaml")
            ],
        ),
        "ports": (
            (*("port", "where", "what", "when", "who may connect", "secret"), "cost of a slow or endless client"),
            [(_code(row.pop("port")), *row.values()) for row in _read("security/ports.yaml")],
        ),
        "processes": (
            ("process", "where", "restarted by", "its loss shows in", "when stopped (SIGSTOP)", "name"),
            [
                (_code(one.name), one.place.value, one.restarted_by, one.reported, one.stopped, one.what)
                for one in EVERY
            ],
        ),
        "stand-ins": (
            ("program", "answers", "why"),
            [(_code(one.path), one.answers, one.why) for one in stand_ins()],
        ),
    }


def markdown() -> Mapping[str, str]:
    own = {name: table(head, rows) for name, (head, rows) in tables().items()}
    return {**own, **{f"kubernetes-{name}": text for name, text in kubernetes_tables.tables().items()}}


def behaviours() -> list[dict[str, str]]:
    """Return the rows of what a script or a client can see of HyperPod: id, about, here, source."""
    rows: list[dict[str, str]] = _read("hyperpod/behaviour.yaml")
    return rows


def part_rows() -> Iterator[Row]:
    """Parts of the long tests, with the folders that each guards."""
    for part in run_parts.read_parts().values():
        yield _code(part.name), str(part.shards), ", ".join(map(_code, part.guards))


def commands(tree: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Commands of a command line by their words."""
    for word, command in tree.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, word)
        else:
            yield (*names, word), command


def command_rows(tree: Any) -> Iterator[Row]:
    for names, command in commands(tree):
        arguments = (_argument(one) for one in command.params if one.param_type_name == "argument")
        options = (
            option for one in command.params for option in (*one.opts, *one.secondary_opts) if option[:2] == "--"
        )
        yield _code(" ".join([*names, *arguments])), _purpose(command), " ".join(map(_code, options))


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _purpose(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split()).removesuffix(".").replace("|", "or")


def _code(text: str) -> str:
    return f"`{text}`"


def _rows(name: str) -> list[Row]:
    return [tuple(row.values()) for row in _read(name)]


def _read(name: str) -> Any:
    return yaml.safe_load((CASES / name).read_text())
