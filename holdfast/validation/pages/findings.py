"""The pages of findings: one per code, from its rule and the findings in its failing example."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from holdfast.validation.cfn_lint import LEFT_OUT, linted_rule
from holdfast.validation.engine import Rule, all_rules
from holdfast.validation.model import Finding
from holdfast.validation.pages.examples import EXAMPLES, Example, example, findings_of

_GOOD_FILES = ("slurm.yaml", "eks.yaml", "slurm.template.json", "eks.template.json")

_INTRO = """\
# Findings

Findings of `holdfast check ENV`, in an environment file or in the templates of any CDK app, before a deployment.
An **error** is refused by AWS or fails later; a **warning** works and costs something.
A rule that needs a value unknown before deployment, or an account without `--account`, is reported as
**not checked**; it never passes. `holdfast explain CODE` prints a page of these in the terminal.

Warnings can be accepted in the file, with a reason:

```yaml
suppress:
  - {code: HF721, path: cluster.instance_groups.workers, reason: capacity is bought by the day}
```

Errors can be where the table allows it.
Each code has a page with its reason, a failing example that is tested, and the fix.
An example sets something in one of the good files beside it: [slurm.yaml](examples/slurm.yaml),
[eks.yaml](examples/eks.yaml), [slurm.template.json](examples/slurm.template.json),
[eks.template.json](examples/eks.template.json), in which nothing is found.
"""

_LINTED = """
## cfn-lint

Codes that begin with E or W are those of
[cfn-lint](https://github.com/aws-cloudformation/cfn-lint/blob/main/docs/rules.md), which judges what holds of any
template: properties, values, references, parameters. `holdfast explain E3012` describes one. Where a rule of ours
reports the same place, its finding is the only one. A template accepts a code at its top, or in a resource:

```yaml
Metadata:
  cfn-lint: {config: {ignore_checks: [W3011]}}
```

Not passed on:

| code | because |
|---|---|
"""

_HEAD = "| code | severity | what holds | source | example |\n|---|---|---|---|---|\n"

_CHAPTERS = {
    "0": "The file",
    "1": "Names, counts, types",
    "2": "Network",
    "3": "EKS",
    "4": "Slurm",
    "5": "Lifecycle scripts and roles",
    "6": "Storage",
    "7": "Capacity, health, updates",
    "8": "Images and observability",
    "9": "The account",
}


def pages() -> Mapping[str, str]:
    """Return the text of every page and of the good files that pages link to, by file name."""
    ordered = sorted(all_rules().values(), key=lambda each: each.code)
    good = {f"examples/{name}": (EXAMPLES / name).read_text() for name in _GOOD_FILES}
    return {"index.md": _overview(ordered), **{f"{each.code}.md": page(each.code) for each in ordered}, **good}


def page(code: str) -> str:
    """
    Return the page of one finding, in Markdown: its source, its reason, an example and the fix. One of cfn-lint has no
    example.

    Raises: KeyError for an unknown code.
    """
    each = all_rules().get(code) or linted_rule(code)
    if each is None:
        raise KeyError(code)
    accepted = "can be accepted with a reason" if each.suppressible else "cannot be accepted"
    text = (
        f"# {each.code}: {each.title}\n\n"
        f"A finding of severity **{each.severity}**; it {accepted}.\nSource: {each.source}.\n\n{each.explanation}\n"
    )
    return text + "".join(_shown(code, example(code)) if code in all_rules() else ())


def _overview(ordered: list[Rule]) -> str:
    asking = sum(each.asks_account for each in ordered)
    count = len(ordered)
    parts = [_INTRO, f"\nOf {count} codes {count - asking} are judged offline, and {asking} (9xx) ask the account.\n"]
    for digit, chapter in _CHAPTERS.items():
        rows = [each for each in ordered if each.code[2] == digit]
        parts.append(f"\n## {digit}xx: {chapter}\n\n{_HEAD}")
        parts += [_row(each) for each in rows]
    return "".join([*parts, _LINTED, *(f"| {code} | {why} |\n" for code, why in LEFT_OUT.items())])


def _row(each: Rule) -> str:
    severity = f"{each.severity}, can be accepted" if each.severity == "error" and each.suppressible else each.severity
    shown = f"[example]({each.code}.md#example)" if example(each.code) is not None else "tested"
    source = each.source.replace("|", "\\|")
    return f"| [{each.code}]({each.code}.md) | {severity} | {each.title} | {source} | {shown} |\n"


def _shown(code: str, each: Example | None) -> Iterator[str]:
    if each is None:
        yield "\nNo file can show it by itself; a test does.\n"
        return
    yield f"\n## Example\n\n{_what(each)}\n\n```yaml\n{_patch(each)}```\n"
    for name, text in each.files.items():
        yield f"\nwith a file `{name}`\n\n```\n{text.replace(chr(13), '<CR>')}```\n"
    with tempfile.TemporaryDirectory() as folder:
        findings = findings_of(each, folder=Path(folder), linted=False)
        found = [finding for finding in findings if finding.code == code]
        reported = "".join(_line(finding, Path(folder), each) for finding in found)
    yield f"\n`holdfast check` reports\n\n```\n{reported}```\n"


def _what(each: Example) -> str:
    return "This file" if each.text else f"[{each.base}](examples/{each.base}) with"


def _patch(each: Example) -> str:
    if each.text:
        return each.text
    return "".join(
        yaml.safe_dump({path: value}, width=110, default_flow_style=None if isinstance(value, dict | list) else False)
        for path, value in each.changes.items()
    )


def _line(finding: Finding, folder: Path, each: Example) -> str:
    line = f":{finding.line}" if finding.line and each.text else ""
    path = re.sub(r"^.*#", "", finding.path)
    message = finding.message.replace(f"{folder}/", "").replace(f"{each.base}#", "")
    where = f"{each.base}{line}{' ' if path else ''}{path}"
    return f"{finding.severity} {finding.code} {where}\n    {message}\n    fix: {finding.fix}\n"
