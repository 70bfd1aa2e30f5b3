"""
Each order that a template of ours asks for is missed where it is missing: the deployment fails, as it would on AWS.

Every pair of types that a DependsOn joins is taken apart in one template and deployed with what should have come first
coming last. Where that makes no difference, the order follows from something else, or a row of
``tests/cases/orders/does-not-matter.yaml`` says why, and from where that is known, and it makes none.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from deployments import NAMES, ROOT, Cloud, document, synthesise
from orders import Pair, Template, deployed, pairs, without

from holdfast.localcloud.aws import serve
from holdfast.localcloud.aws.common import Mishaps

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]  # the first makes the templates of all environments

SNAPSHOTS = ROOT / "tests" / "snapshot" / "__snapshots__" / "test_environments"
JOINED = sorted({pair for path in SNAPSHOTS.glob("*.json") for pair, _ in pairs(json.loads(path.read_text()))})
ROWS = {
    (row["of"], row["after"]): row
    for row in yaml.safe_load((ROOT / "tests" / "cases" / "orders" / "does-not-matter.yaml").read_text())
}
TRIES = 4
"""How many resources of a type are tried: one of them shows it."""


class Rehearsal:
    """One embedded AWS, and every environment's template on it."""

    def __init__(self, reach: dict[str, str], mishaps: Mishaps, folder: Path) -> None:
        self.mishaps, self._base = mishaps, Cloud(reach)
        self.templates: list[tuple[Cloud, Template]] = []
        self.users: dict[Pair, list[tuple[Cloud, Template, str]]] = defaultdict(list)
        for name in NAMES:
            region = yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())["region"]
            cloud = self._base.at(region)
            (folder / name).mkdir()
            _, template = synthesise(document(name, cloud, stack=f"o-{name}"), cloud, folder / name)
            self.templates.append((cloud, template))
            for pair, user in pairs(template):
                if (cloud, template, user) not in self.users[pair]:
                    self.users[pair].append((cloud, template, user))

    def close(self) -> None:
        self._base.close()

    def missed(self, pair: Pair) -> tuple[str, list[str]]:
        """What becomes of it: "implied", "missed" or "made"; and what the stacks say."""
        cases = [(cloud, without(template, pair, user)) for cloud, template, user in self.users[pair]]
        real = sorted(
            ((cloud, case) for cloud, case in cases if case is not None),
            key=lambda one: len(one[1].template["Resources"]),
        )
        alike = {(case.user, case.late): (cloud, case) for cloud, case in reversed(real)}
        real = [one for one in real if one in alike.values()]
        if not real:
            return "implied", []
        for cloud, case in real[:TRIES]:
            self.mishaps.late = set(case.late)
            made, told = deployed(case, cloud)
            if not made:
                assert {name for name, _ in told} & case.watched, told
                return "missed", [why for _, why in told]
        return "made", []


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    mishaps, folder = Mishaps(), tmp_path_factory.mktemp("orders")
    with serve(home=folder / "cloud", hyperpod="simulated", skip_waits=True, mishaps=mishaps) as aws:
        made = Rehearsal(aws.client_arguments, mishaps, folder)
        yield made
        made.close()


@pytest.mark.parametrize("pair", JOINED, ids=" after ".join)
def test_an_order_that_is_missing_is_missed(pair: Pair, rehearsal: Rehearsal) -> None:
    outcome, told = rehearsal.missed(pair)

    row = ROWS.get(pair)
    if outcome == "made":
        assert row is not None, f"{pair[0]} was made before {pair[1]}, and nothing says why that does not matter"
    else:
        assert row is None, f"the row about {pair[0]} and {pair[1]} is not needed: {outcome} {told}"


def test_every_row_is_about_an_order_that_templates_ask_for_and_says_why_and_whence(rehearsal: Rehearsal) -> None:
    assert ROWS.keys() <= rehearsal.users.keys()
    assert [pair for pair, row in ROWS.items() if not row["why"].strip() or not row["source"].strip()] == []
