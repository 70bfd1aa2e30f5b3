"""
The CloudFormation templates of AWS's repositories for HyperPod: each is read, and what is found in it is right.

tests/cases/templates/public.yaml names them; none is copied into this repository. The tests read them from the folder
that HOLDFAST_PUBLIC_TEMPLATES names, as <owner>+<name>/<commit>/<path>. For each repository and commit of the list::

    git clone https://github.com/OWNER/NAME x
    git -C x worktree add $HOLDFAST_PUBLIC_TEMPLATES/OWNER+NAME/COMMIT COMMIT

The list holds every file of those commits that ends with yaml, yml, json or template and has resources with a type;
aws-samples/sample-physical-ai-scaffolding-kit, the fifth repository, has none at its commit 6b31a8523b71.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from holdfast.validation import all_rules
from holdfast.validation.cfn_lint import linted_rule
from holdfast.validation.from_template import check_template

LIST = yaml.safe_load((Path(__file__).parents[3] / "cases" / "templates" / "public.yaml").read_text())
FOLDER = os.environ.get("HOLDFAST_PUBLIC_TEMPLATES")


@dataclass(frozen=True)
class Public:
    """A template of somebody else."""

    place: Path
    sha256: str
    codes: frozenset[str]


def every() -> list[Public]:
    return [
        Public(
            Path(group["repository"].replace("/", "+")) / group["commit"] / each["path"],
            each["sha256"],
            frozenset(each.get("codes", ())),
        )
        for group in LIST["templates"]
        for each in group["files"]
    ]


def test_the_list_names_every_template_once_and_every_expected_finding_with_its_reason() -> None:
    templates = every()

    assert len({each.place for each in templates}) == len(templates) >= 69
    codes = {code for each in templates for code in each.codes}
    assert codes == set(LIST["right"])
    assert all(code in all_rules() or linted_rule(code) for code in codes)


@pytest.mark.skipif(FOLDER is None, reason="HOLDFAST_PUBLIC_TEMPLATES names no folder with the public templates")
@pytest.mark.parametrize("each", every(), ids=lambda each: str(each.place))
def test_a_public_template_is_read_and_what_is_found_in_it_is_right(each: Public) -> None:
    path = Path(FOLDER or "") / each.place
    assert path.is_file(), f"{path} is not there; see the top of this file"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == each.sha256

    report = check_template(path)

    assert report.usable
    assert {finding.code for finding in report.findings if finding.severity != "not-checked"} == each.codes
    assert all(finding.line for finding in report.findings)
