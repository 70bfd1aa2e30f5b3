"""The published tables, cell by cell, and the cells whose own formula gives something else."""

from dataclasses import replace

import pytest
from published_tables import PublishedFigure, published_tables

from holdfast.catalog.goodput import failure_rates, recovery_stages

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


@pytest.fixture(scope="module")
def cells() -> dict[tuple[str, str, str], PublishedFigure]:
    tables = published_tables(failure_rates(), recovery_stages().values())
    return {(table.title, figure.row, figure.column): figure for table in tables for figure in table.figures}


@pytest.mark.parametrize(
    ("percent", "hours"),
    [
        ("0.01 %", (2500, 1250, 625, 313, 157, 79, 40, 20)),
        ("0.02 %", (1250, 625, 313, 157, 79, 40, 20, 10)),
        ("0.04 %", (625, 313, 157, 79, 40, 20, 10, 5)),
        ("0.08 %", (313, 157, 79, 40, 20, 10, 5, 3)),
    ],
)
def test_mtbf_is_the_published_one_in_every_cell(
    cells: dict[tuple[str, str, str], PublishedFigure], percent: str, hours: tuple[int, ...]
) -> None:
    row = [cells["mean time between failures in hours", percent, str(size)] for size in SIZES]

    assert tuple(figure.formula for figure in row) == hours
    assert all(figure.agrees for figure in row)


@pytest.mark.parametrize(
    ("row", "column", "published", "formula"),
    [
        ("lost with HyperPod", "days", 17, 17),
        ("lost without", "days", 121, 122),
        ("to train with HyperPod", "days", 221, 221),
        ("to train without", "days", 325, 325),
        ("reduction", "percent", 32, 32),
        ("saved", "days", 104, 104),
        ("saved", "dollars", 25_559_040, 25_600_000),
    ],
)
def test_the_example_on_256_instances_has_every_published_figure(
    cells: dict[tuple[str, str, str], PublishedFigure], row: str, column: str, published: int, formula: int
) -> None:
    figure = cells["10,000,000 GPU hours on 256 instances at 0.05 %", row, column]

    assert (figure.published, figure.formula) == (published, formula)
    assert figure.agrees == (published == formula)
    assert figure.agrees or figure.why


def test_the_published_dollars_are_those_of_the_days_after_rounding() -> None:
    assert 104 * 24 * 256 * 8 * 5 == 25_559_040


@pytest.mark.parametrize(
    ("size", "published", "formula"),
    list(zip(SIZES, (1, 2, 3, 6, 11, 20, 32, 48), (1, 2, 3, 6, 11, 20, 32, 47), strict=True)),
)
def test_the_reduction_is_the_published_one_but_for_the_last_cell(
    cells: dict[tuple[str, str, str], PublishedFigure], size: int, published: int, formula: int
) -> None:
    figure = cells["reduction of the time to train in percent", "0.05 %", str(size)]

    assert (figure.published, figure.formula) == (published, formula)


def test_all_32_cells_of_the_reduction_are_there_and_three_are_a_point_above_the_formula(
    cells: dict[tuple[str, str, str], PublishedFigure],
) -> None:
    figures = {key[1:]: one for key, one in cells.items() if key[0] == "reduction of the time to train in percent"}
    above = {key: one.published - one.formula for key, one in figures.items() if not one.agrees}

    assert len(figures) == 32
    assert above == {("0.05 %", "512"): 1, ("0.07 %", "256"): 1, ("0.07 %", "512"): 1}


def test_the_90th_percentiles_of_the_measured_clusters_are_the_published_ones_and_no_means() -> None:
    stages = recovery_stages()["checkpoints"]
    measured = stages.percentile_90

    assert not set(measured) & set(stages.measured)
    assert [(row.instances, row.detect_s, row.replace_s, row.resume_s) for row in measured] == [
        (16, 83, 912, 1212),
        (64, 90, 963, 1320),
        (256, 89, 903, 1398),
        (1024, 80, 981, 1440),
    ]


def test_the_estimate_by_hand_and_with_hyperpod_is_the_published_one() -> None:
    minutes = {
        name: tuple(seconds / 60 for seconds in (row.detect_s, row.replace_s, row.resume_s))
        for name, stages in recovery_stages().items()
        for row in stages.measured[:1]
    }

    assert minutes["by-hand"] == (10, 240, 30)
    assert minutes["checkpoints"] == (1.5, 15, 23.5)


@pytest.mark.parametrize(
    ("size", "seconds", "minutes"), [(16, 2207, 36.8), (64, 2373, 39.6), (256, 2390, 39.8), (1024, 2501, 41.7)]
)
def test_the_sums_of_the_stages_are_the_published_ones(
    cells: dict[tuple[str, str, str], PublishedFigure], size: int, seconds: int, minutes: float
) -> None:
    row = f"{size} instances, 90th percentile"
    figures = [cells["downtime per failure", row, column] for column in ("seconds", "minutes")]

    assert [figure.published for figure in figures] == [seconds, minutes]
    assert all(figure.agrees for figure in figures)


def test_no_cell_is_compared_with_itself() -> None:
    """Other data give other formulas and the same published figures."""
    rates, strategies = failure_rates(), recovery_stages()
    slower = [
        replace(
            each,
            measured=tuple(replace(row, detect_s=row.detect_s + 600) for row in each.measured),
            percentile_90=tuple(replace(row, detect_s=row.detect_s + 600) for row in each.percentile_90),
        )
        for each in strategies.values()
    ]
    more = replace(
        rates,
        observations=tuple(replace(row, failures=2 * row.failures) for row in rates.observations),
        components=tuple(replace(row, failures=row.failures + 100) for row in rates.components),
    )
    for before, after in zip(published_tables(rates, strategies.values()), published_tables(more, slower), strict=True):
        pairs = list(zip(before.figures, after.figures, strict=True))
        assert all(one.published == other.published for one, other in pairs)
        if before.title in ("downtime per failure", "failures per instance-hour, and what failed"):
            assert all(one.formula != other.formula for one, other in pairs)


@pytest.mark.parametrize(("name", "percent"), [("opt-175b", 0.0588), ("llama-3.1-405b", 0.0161), ("mpt-7b", 0.0319)])
def test_the_published_rates_follow_from_their_counts(
    cells: dict[tuple[str, str, str], PublishedFigure], name: str, percent: float
) -> None:
    figure = cells["failures per instance-hour, and what failed", name, "% per instance-hour"]

    assert figure.published == figure.formula == percent


def test_exactly_these_figures_differ_from_their_formula(
    cells: dict[tuple[str, str, str], PublishedFigure],
) -> None:
    differ = {(row, column) for (_, row, column), figure in cells.items() if not figure.agrees}

    assert differ == {
        ("lost without", "days"),
        ("saved", "dollars"),
        ("0.05 %", "512"),
        ("0.07 %", "256"),
        ("0.07 %", "512"),
        ("faulty GPU", "% of 419"),
    }
