"""Every count in the documents is the one of the code."""

import inspect
import json
import re
from pathlib import Path

import kill_matrix as matrix
import pytest
import yaml

from holdfast.localcloud.aws.cloudformation.resources import HANDLERS
from holdfast.validation import all_rules

ROOT = Path(__file__).parents[4]
RULES = list(all_rules().values())


def kill_cases() -> int:
    """As tests/e2e/test_kill_matrix.py puts them together."""
    groups = (
        matrix.deaths, matrix.hangs, matrix.pairs, matrix.spares, matrix.during_recovery, matrix.during_copy,
        matrix.first_step, matrix.nodes,
    )  # fmt: skip
    return sum(len(list(group())) for group in groups)


def peer_rows() -> int:
    """Rows of the large table of docs/concepts/peers.md, without its head."""
    _, _, chapter = (ROOT / "docs" / "concepts" / "peers.md").read_text().partition("\n## Row by row\n")
    lines = chapter.splitlines()
    wide = [line for line in lines if line.startswith("|") and line.count("|") > 5]
    return len(wide) - 2


def public_repositories() -> list[dict[str, list[object]]]:
    text = (ROOT / "tests" / "cases" / "templates" / "public.yaml").read_text()
    found: list[dict[str, list[object]]] = yaml.safe_load(text)["templates"]
    return found


COUNTS = {
    ("docs/concepts/peers.md", r"has all (\d+) rows"): peer_rows,
    ("docs/concepts/runtime.md", r"(\d+) kinds of fault, phase and victim"): kill_cases,
    ("docs/concepts/guarantees.md", r"(\d+) cases of fault"): kill_cases,
    ("docs/do/templates.md", r"All (\d+) templates of AWS's"): lambda: sum(
        len(each["files"]) for each in public_repositories()
    ),
    ("docs/do/templates.md", r"AWS's (\d+) repositories for HyperPod that have any"): lambda: len(
        public_repositories()
    ),
}


def test_the_resources_of_each_environment_are_those_of_its_template() -> None:
    rows = re.findall(
        r"^\| `([\w-]+)` \| (\d+) of (\d+) types",
        (ROOT / "docs" / "concepts" / "security.md").read_text(),
        re.MULTILINE,
    )
    snapshots = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
    found = []
    for path in sorted(snapshots.iterdir()):
        resources = json.loads(path.read_text())["Resources"].values()
        name = path.stem.partition("[")[2].rstrip("]")
        found.append((name, str(len(resources)), str(len({each["Type"] for each in resources}))))

    assert sorted(rows) == sorted(found), "`python tests/support/judging.py` writes the table"


@pytest.mark.parametrize(("page", "pattern"), list(COUNTS))
def test_a_count_is_the_one_of_the_code(page: str, pattern: str) -> None:
    said = re.findall(pattern, (ROOT / page).read_text())

    assert said == [str(COUNTS[page, pattern]())]


def test_the_list_of_resource_types_is_that_of_the_embedded_cloudformation() -> None:
    _, _, chapter = (
        (ROOT / "docs" / "concepts" / "local-cloud.md").read_text().partition("CloudFormation makes these types")
    )
    made, _, recorded = chapter.partition("\n\n")[2].partition("\n\n")[0].partition("\n- recorded only:")
    listed = {
        f"AWS::{service}::{name}"
        for service, names in re.findall(r"(?:- |; )(\w+): ([\w, ]+)", made)
        for name in names.split(", ")
    }
    known = {handler.type for handler in HANDLERS}

    assert listed - known == set()
    assert [name for name in sorted(known - listed) if name.rpartition("::")[2] not in recorded] == []


def test_a_rule_asks_the_account_exactly_where_it_reads_what_the_account_tells() -> None:
    for each in RULES:
        if each.judge is not None:
            reads = bool(re.search(r"\.facts\b|_facts\(", inspect.getsource(each.judge)))
            assert reads == each.asks_account, each.code
