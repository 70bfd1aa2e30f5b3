"""Layouts of a model: memory, copies and recovery, and what does not fit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.catalog import instance_types
from holdfast.catalog.goodput import layout_facts, recovery_stages
from holdfast.planner import LayoutPlan, PlanError, figures, hardware_of, layout_of, parameters_of, plan_layout

P5 = hardware_of(instance_types()["ml.p5.48xlarge"])
FACTS = layout_facts()
COLUMNS = (
    "state_gb", "training_gb", "pinned_s", "pageable_s", "flow_s", "placed_flow_s", "address_s", "efa_s", "host_gb",
    "pinned_host_gb",
)  # fmt: skip
TABLE = {
    "fsdp=2048": ("0.41", "0.55", "0.01", "0.1", "0.7", "0.3", "0.3", "0.01", "13", "17"),
    "hsdp=256x8": ("3.3", "4.4", "0.06", "0.8", "5.3", "2.6", "2.1", "0.07", "106", "137"),
    "hsdp=64x32": ("13.2", "17.7", "0.24", "3.3", "21", "10.6", "8.5", "0.26", "424", "550"),
    "hsdp=32x64": ("26.5", "35.3", "0.48", "6.6", "42", "21", "17", "0.53", "847", "1100"),
    "hsdp=16x128": ("53", "70.6", "0.96", "13", "85", "42", "34", "1.06", "1694", "2199"),
}
"""Computed by hand for Llama 3 70B on 256 P5 nodes."""


def planned(name: str, *, model: str = "70b", instances: int | None = None) -> LayoutPlan:
    return plan_layout(
        model=model,
        parameters=parameters_of(model, FACTS.models),
        name=name,
        layout=layout_of(name),
        hardware=P5,
        facts=FACTS,
        checkpointless=recovery_stages()["checkpointless"],
        instances=instances,
    )


@pytest.mark.parametrize(("name", "row"), TABLE.items(), ids=TABLE)
def test_each_figure_of_a_layout_is_that_of_the_hand_computed_table(name: str, row: tuple[str, ...]) -> None:
    found = figures(parameters_of("70b", FACTS.models).value, layout_of(name), P5, FACTS.values)

    for column, text in zip(COLUMNS, row, strict=True):
        last_digit = 10.0 ** -len(text.partition(".")[2])
        assert found[column].value == pytest.approx(float(text), abs=last_digit / 2 + 1e-9), column
    assert all(each.formula and each.source for each in found.values())


@pytest.mark.parametrize(
    ("name", "model", "text"),
    [
        ("hsdp=16x128", "70b", "got 70.6 GB of training memory per rank"),
        ("fsdp=8", "30b", "got 2,199 GB of page-locked memory per node"),
        ("fsdp=100", "8b", "allowed: a multiple of the 8 GPUs of ml.p5.48xlarge; use 96 or 104 ranks"),
        ("hsdp=64", "8b", "allowed: fsdp=RANKS, hsdp=SHARDSxCOPIES, ddp=RANKS"),
        ("fsdp=64x2", "8b", "allowed: fsdp=RANKS"),
        ("fsdp=9999999", "8b", "allowed: at most 65,536"),
        ("fsdp=8", "0b", "allowed: 8b, 70b, 405b"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_with_what_does(name: str, model: str, text: str) -> None:
    with pytest.raises(PlanError, match="got") as refused:
        planned(name, model=model)

    assert text in str(refused.value)
    assert "allowed: " in str(refused.value)


def test_a_layout_for_other_instances_than_there_are_is_refused() -> None:
    with pytest.raises(PlanError, match="got 16 instances for --layout hsdp=64x32; allowed: 256"):
        planned("hsdp=64x32", instances=16)


def test_a_type_without_known_gpus_is_refused() -> None:
    with pytest.raises(PlanError, match=r"got ml\.c5\.large; allowed: an instance type with GPUs"):
        hardware_of(instance_types()["ml.c5.large"])


def test_copies_on_other_nodes_need_no_snapshots_and_repeat_one_step() -> None:
    copies = planned("hsdp=64x32").copies

    assert (copies.twins, copies.twin_nodes, copies.snapshots, copies.keeper) == (32, 32, False, -1)
    assert copies.survives == "any one node may be lost"
    assert copies.redone == "at most the running step"


def test_shards_without_a_copy_are_kept_by_the_rank_that_the_runtime_chooses() -> None:
    copies = planned("fsdp=2048").copies

    assert (copies.snapshots, copies.keeper, copies.keeper_node) == (True, 8, 1)
    assert "newest safe snapshot" in copies.redone


def test_copies_on_one_node_do_not_survive_it() -> None:
    assert planned("hsdp=4x2", model="8b").copies.survives.startswith("any one process may be lost, and no whole node")


def test_a_recovery_names_its_largest_term_and_is_compared_with_the_published_ones() -> None:
    plan = planned("hsdp=64x32")
    by_tcp, by_efa = plan.recoveries

    assert by_tcp.low_s == pytest.approx(18.2, abs=0.05)
    assert by_tcp.high_s == pytest.approx(50.2, abs=0.05)
    assert (by_tcp.largest, by_efa.largest) == ("copy the state by TCP", "make NCCL communicators")
    assert by_efa.low_s < plan.goal_s < by_efa.high_s
    assert [(row.accelerators, row.recovery_s) for row in plan.published] == [
        (16, 50),
        (256, 47),
        (2048, 120),
        (1024, 20),
    ]


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.integers(1, 64), st.integers(1, 8))
def test_more_shards_take_less_memory_and_never_a_slower_copy(nodes: int, copies: int) -> None:
    few, many = (
        figures(8e9, layout_of(f"hsdp={shards}x{copies}"), P5, FACTS.values) for shards in (8 * nodes, 16 * nodes)
    )

    assert all(many[name].value <= few[name].value for name in COLUMNS)
