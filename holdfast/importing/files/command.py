"""Files and an ``aws sagemaker create-cluster`` command, merged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.importing.files.json import NotUsableError, read_json, value_of
from holdfast.importing.files.recognise import ClusterDefinition, together
from holdfast.importing.files.shape import request_shape
from holdfast.importing.files.shorthand_syntax import shorthand

COMMAND = ("aws", "sagemaker", "create-cluster")
INPUT = "cli-input-json"
TIMEOUTS = frozenset({"cli-connect-timeout", "cli-read-timeout"})
GLOBAL = TIMEOUTS | {"ca-bundle", "color", "endpoint-url", "output", "profile", "query"}
FLAGS = frozenset({"debug", "no-cli-pager", "no-paginate", "no-sign-request", "no-verify-ssl"})


def cluster_of(
    *, files: Sequence[Path] = (), command: Sequence[str] = (), name: str | None = None
) -> ClusterDefinition:
    """
    Merge files and a command.

    Args:
        files: Types are detected by content.
        command: Words from ``aws`` or from the first option on.
        name: Cluster name, in place of the existing one.

    Raises:
        NotUsableError: no cluster.
    """
    options = dict(_options(command))
    values = [(str(path), read_json(path)) for path in files]
    if INPUT in options:
        values.append((f"--{INPUT}", _text_or_file(_one(INPUT, options.pop(INPUT)), origin=f"--{INPUT}")))
    region = _one("region", options.pop("region")) if "region" in options else None
    given = together(values, name=name, more=_members(options))
    return given if region is None else replace(given, region=region)


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    rest = list(words)
    if rest[:1] == ["aws"]:
        if tuple(rest[:3]) != COMMAND:
            raise NotUsableError(f"got {' '.join(rest[:3])}; allowed: {' '.join(COMMAND)} with its options")
        rest = rest[3:]
    seen: set[str] = set()
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        if not word.startswith("--"):
            raise NotUsableError(f"got {word}; allowed: options of {' '.join(COMMAND)}, such as --cluster-name")
        option = word.removeprefix("--")
        values = [value] if equals else []
        while rest and not rest[0].startswith("--") and option not in FLAGS:
            values.append(rest.pop(0))
        if option in seen:
            raise NotUsableError(f"--{option} is given twice; give it once")
        seen.add(option)
        if option not in GLOBAL | FLAGS:
            yield option, values


def _members(options: Mapping[str, list[str]]) -> dict[str, Any]:
    from botocore import xform_name

    shapes = {xform_name(name, "-"): (name, shape) for name, shape in request_shape().members.items()}
    found: dict[str, Any] = {}
    for option, values in options.items():
        if option not in shapes:
            allowed = ", ".join(f"--{each}" for each in sorted({*shapes, INPUT}))
            raise NotUsableError(f"--{option} is no option of {' '.join(COMMAND)}; allowed: {allowed}")
        name, shape = shapes[option]
        found[name] = _value(option, values, shape)
    return found


def _value(option: str, values: list[str], shape: Any) -> Any:
    if shape.type_name == "string":
        return _one(option, values)
    if shape.type_name != "list":
        return _parsed(_one(option, values), shape, origin=f"--{option}")
    items: list[Any] = []
    for text in values:
        item = _parsed(text, shape.member, origin=f"--{option}")
        items += item if isinstance(item, list) else [item]
    return items


def _parsed(text: str, shape: Any, *, origin: str) -> Any:
    if text.startswith(("file://", "fileb://")) or text.lstrip()[:1] in ("{", "["):
        return _text_or_file(text, origin=origin)
    return shorthand(text, shape, origin=origin)


def _text_or_file(text: str, *, origin: str) -> Any:
    scheme, separator, path = text.partition("://")
    if separator and scheme in ("file", "fileb"):
        return read_json(Path(path).expanduser())
    return value_of(text, origin=origin)


def _one(option: str, values: list[str]) -> str:
    if len(values) != 1:
        raise NotUsableError(f"--{option} takes one value, and got {len(values)}")
    return values[0]
