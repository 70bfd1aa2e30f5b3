"""Task governance where a region has quotas of teams and no policy."""

from pathlib import Path

import pytest

from holdfast.validation.from_environment import check

EKS = Path(__file__).parents[3] / "environments" / "eks-p5.yaml"
TEAMS = "teams: [{name: research}]"


@pytest.mark.parametrize(
    ("region", "governance", "codes"),
    [
        ("us-west-2", "{fair_share: true}", ["HF033"]),
        ("us-west-2", f"{{policy: false, {TEAMS}}}", []),
        ("us-east-1", f"{{fair_share: true, {TEAMS}}}", []),
        ("eu-north-1", f"{{policy: false, {TEAMS}}}", ["HF033"]),
    ],
)
def test_a_policy_and_quotas_are_refused_where_the_region_has_not_the_type(
    region: str, governance: str, codes: list[str], tmp_path: Path
) -> None:
    text = EKS.read_text().replace("us-west-2", region)
    (tmp_path / "a.yaml").write_text(text.replace("eks:\n", f"eks:\n  task_governance: {governance}\n"))

    found = check(tmp_path / "a.yaml", errors_only=True).findings

    assert [finding.code for finding in found if finding.severity == "error"] == codes


def test_ultraservers_are_refused_where_no_region_has_them(tmp_path: Path) -> None:
    text = EKS.read_text().replace("ml.p5.48xlarge", "ml.p6e-gb200.36xlarge")
    (tmp_path / "a.yaml").write_text(text)

    found = {each.code: each for each in check(tmp_path / "a.yaml", errors_only=True).findings}

    assert found["HF032"].fix.endswith("one of these regions: us-east-1")


def test_types_are_not_checked_where_hyperpod_is_and_no_list_names_them(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(EKS.read_text().replace("us-west-2", "eusc-de-east-1"))

    found = {each.code: each.severity for each in check(tmp_path / "a.yaml").findings}

    assert found["HF032"] == "not-checked"
