"""
Cases of tests/cases/documented: written as files, checked, and their findings compared with those of their base.

``python tests/support/documented.py [FORM[/SET] ...]`` prints what is missed, what is said of clean cases, and rates.
A set is the end of a file's name: ``environment/more`` are ``mistakes_more.yaml`` and ``clean_more.yaml``.
"""

import functools
import importlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner
from unlinted import unlinted

from holdfast.cli import app

REPOSITORY = Path(__file__).resolve().parents[2]
CASES = REPOSITORY / "tests/cases/documented"
JUDGED = ("error", "warning")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case: what is wrong by its name, AWS's page, and the setting at fault (none in a clean case)."""

    form: str
    name: str
    page: str
    at: str = ""
    base: str = ""
    file: str = ""
    patch: Mapping[str, Any] = field(default_factory=dict)

    def named_by(self, finding: Mapping[str, Any]) -> bool:
        """Return True if a finding names the setting at fault, in its path or its message."""
        text = f"{finding['path']} {finding['message']}"
        return any(re.search(rf"(?<![A-Za-z_]){re.escape(word)}(?![A-Za-z_])", text) for word in self.at.split("|"))


class _Tags(yaml.SafeLoader):
    """YAML with CloudFormation's short tags, read as the long forms."""


def _long_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix == "Ref" else f"Fn::{suffix}": value}


_Tags.add_multi_constructor("!", _long_form)


def cases(form: str, kind: str) -> list[Case]:
    """Return the cases of a form (environment, template, app) and a kind (mistakes, clean)."""
    if form == "app":
        return [
            Case(form=form, name=name, page=each.page, at=each.at, base=module.__name__, file=module.__name__)
            for module in _modules(kind)
            for name, each in module.APPS.items()
        ]
    return [
        Case(
            form=form,
            name=name,
            page=each["page"],
            at=each.get("at", ""),
            base=each["base"],
            file=file.stem,
            patch=each,
        )
        for file in sorted((CASES / form).glob(f"{kind}*.yaml"))
        for name, each in yaml.load(file.read_text(), _Tags).items()
    ]


def _modules(kind: str) -> Iterator[Any]:
    sys.path.insert(0, str(CASES / "app"))
    try:
        for file in sorted((CASES / "app").glob(f"{kind}*.py")):
            yield importlib.import_module(file.stem)
    finally:
        sys.path.remove(str(CASES / "app"))


def findings(case: Case, folder: Path, *, linted: bool = True) -> list[dict[str, Any]]:
    """
    Check a case in an empty folder, and return its errors and warnings without those of its base.

    Args:
        linted: With those of cfn-lint. Holdfast's own are the same without it.
    """
    with nullcontext() if linted else unlinted():
        if case.form == "app":
            return _app_findings(case, folder)
        files = case.patch.get("files", {})
        changed = patched(case, base(case.form, case.base))
        seen = _of_base(case.form, case.base, tuple(files.items()), linted=linted) if case.at else frozenset()
        found = _check(_write(case.base, changed, files, folder), changed)
        return [each for each in found if _identity(each) not in seen]


@functools.cache
def _of_base(form: str, name: str, files: tuple[tuple[str, str], ...], *, linted: bool) -> frozenset[tuple[str, str]]:
    """Findings of a file that cases change; ``linted`` as where it is called."""
    written = base(form, name)
    with tempfile.TemporaryDirectory() as folder:
        found = _check(_write(name, written, dict(files), Path(folder)), written)
    return frozenset(map(_identity, found))


def _identity(finding: Mapping[str, Any]) -> tuple[str, str]:
    return finding["code"], finding["message"]


@functools.cache
def base(form: str, name: str) -> Mapping[str, Any]:
    """Return a file that cases change."""
    folder = REPOSITORY / "environments" if form == "environment" else CASES / "template"
    loaded: dict[str, Any] = yaml.load((folder / f"{name}.yaml").read_text(), _Tags)
    return loaded


def _write(base: str, written: Mapping[str, Any], files: Mapping[str, str], folder: Path) -> Path:
    (folder / "scripts").symlink_to(REPOSITORY / "environments/scripts")
    for name, text in files.items():
        (folder / name).write_text(text)
    file = folder / f"{base}.yaml"
    file.write_text(yaml.safe_dump(dict(written), sort_keys=False))
    return file


def _check(file: Path, written: Mapping[str, Any]) -> list[dict[str, Any]]:
    region = [] if "Resources" not in written else ["--region", _region(written)]
    return run_check(file, *region)


def run_check(file: Path, *options: str) -> list[dict[str, Any]]:
    """Run `holdfast check` offline, and return its errors and warnings."""
    result = CliRunner().invoke(app, ["check", str(file), "--offline", "--json", *options])
    assert result.exit_code in (0, 1, 2), result.output
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    return [finding for finding in json.loads(result.stdout) if finding["severity"] in JUDGED]


def _region(template: Mapping[str, Any]) -> str:
    return "us-east-1" if "us-east-1" in json.dumps(template) else "us-west-2"


def patched(case: Case, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a file with the changes of a case."""
    changed = deepcopy(dict(written))
    root = changed["Resources"] if case.form == "template" else changed
    patch = case.patch
    for path in patch.get("remove", ()):
        *parents, last = path.split(".")
        place = _at(root, parents)
        place.remove(_item(place, last)) if isinstance(place, list) else place.pop(last, None)
    for name, source in patch.get("copy", {}).items():
        root[name] = deepcopy(root[source])
    for path, value in patch.get("set", {}).items():
        *parents, last = path.split(".")
        place = _at(root, parents)
        place[place.index(_item(place, last)) if isinstance(place, list) else last] = value
    for path, (text, count) in patch.get("repeat", {}).items():
        *parents, last = path.split(".")
        _at(root, parents)[last] = [text % number for number in range(count)]
    if many := patch.get("many"):
        for number in range(many["count"]):
            copy = deepcopy(many["resource"])
            copy["Properties"]["PolicyName"] %= number
            root[f"{many['prefix']}{number}"] = copy
    return changed


def _at(root: Any, path: Iterable[str]) -> Any:
    for key in path:
        root = _item(root, key) if isinstance(root, list) else root.setdefault(key, {})
    return root


def _item(items: list[Any], name: str) -> Any:
    return next(item for item in items if name in (item.get("name"), item.get("InstanceGroupName")))


def _app_findings(case: Case, folder: Path) -> list[dict[str, Any]]:
    import aws_cdk as cdk

    each = importlib.import_module(case.base).APPS[case.name]
    program = cdk.App(outdir=str(folder / "cdk.out"), analytics_reporting=False)
    stack = cdk.Stack(program, "Stack", env=cdk.Environment(account="111122223333", region=each.region))
    try:
        each.build(stack)
        program.synth()
    except Exception as error:  # noqa: BLE001 - whatever a construct refuses is its finding
        if "ValidationFailed" not in str(error):
            return [{"code": type(error).__name__, "severity": "error", "path": "", "message": str(error), "fix": ""}]
    return run_check(folder / "cdk.out")


def main(forms: list[str]) -> None:
    for chosen in forms or ["environment", "template", "app"]:
        form, _, subset = chosen.partition("/")
        for kind in ("mistakes", "clean"):
            every, right = [case for case in cases(form, kind) if case.file.endswith(subset)], 0
            for case in every:
                with tempfile.TemporaryDirectory() as folder:
                    found = findings(case, Path(folder))
                is_right = any(map(case.named_by, found)) if case.at else not found
                right += is_right
                if not is_right:
                    print(f"{form} {kind}: {case.name}: {[each['code'] for each in found]}")
            print(f"{chosen} {kind}: {right} of {len(every)}")


if __name__ == "__main__":
    main(sys.argv[1:])
