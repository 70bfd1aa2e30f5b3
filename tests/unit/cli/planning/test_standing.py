"""Monthly costs of an environment beside its nodes."""

from pathlib import Path

import pytest
import yaml

from holdfast.catalog.goodput import standing_prices
from holdfast.cli.planning.inputs import standing_costs
from holdfast.config import Environment

ENVIRONMENTS = Path(__file__).parents[4] / "environments"


def costs(name: str, **changed: object) -> dict[str, float | None]:
    settings = yaml.safe_load((ENVIRONMENTS / f"{name}.yaml").read_text()) | changed
    found = standing_costs(Environment.model_validate(settings), standing_prices())
    return {each.what: each.usd_per_month for each in found}


def test_capacity_gateway_and_control_plane_cost_their_list_price() -> None:
    found = costs("eks-p5")

    assert found["FSx for Lustre, 19,200 GiB at 500 MB/s per TiB"] == pytest.approx(19_200 * 0.34)
    assert found["NAT gateway"] == pytest.approx(730 * 0.045)
    assert found["EKS control plane"] == pytest.approx(73)


def test_endpoints_replace_the_gateway_where_nodes_have_no_way_out() -> None:
    network = yaml.safe_load((ENVIRONMENTS / "slurm-p5.yaml").read_text())["network"]

    found = costs("slurm-p5", network=network | {"egress": "none", "flow_logs": False})

    assert found["7 interface endpoints"] == pytest.approx(7 * 7.3)
    assert {"NAT gateway", "flow logs"}.isdisjoint(found)


def test_what_belongs_to_others_costs_nothing_here() -> None:
    found = costs("existing-eks")

    assert {"NAT gateway", "EKS control plane", "flow logs"}.isdisjoint(found)
    assert not any(what.startswith("FSx") for what in found)


def test_logs_and_old_versions_cost_by_use() -> None:
    found = costs("slurm-p5")

    assert {what for what, usd in found.items() if usd is None} == {
        "flow logs",
        "logs of nodes and events",
        "old versions in the data bucket, 7 days",
    }
