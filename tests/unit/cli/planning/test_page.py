"""The page of a plan: what it says of itself, its colours, its plots, and that it needs nothing but itself."""

import itertools
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from event_logs import log_of

from holdfast.cli.planning import Options
from holdfast.cli.planning.inputs import Inputs, gather
from holdfast.cli.views import plan_page
from holdfast.cli.views.plan import cost_cells, goodput_cells
from holdfast.cli.views.plan_page import page
from holdfast.planner import Plan

WHEN = datetime(2026, 11, 22, 18, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def planned() -> tuple[Plan, Inputs]:
    options = Options(
        instances=37,
        instance_type="ml.p5.48xlarge",
        spares=2,
        failure_rate_percent=0.3,
        price="50",
        deadline_days=100.0,
        budget_usd=9e6,
    )
    inputs = gather(options, events=log_of(rate=0.002, instances=16, hours=50.0, seed=1))
    return inputs.plan(runs=5, seed=3), inputs


@pytest.fixture(scope="module")
def text(planned: tuple[Plan, Inputs]) -> str:
    return drawn(planned)


def drawn(planned: tuple[Plan, Inputs]) -> str:
    plan, inputs = planned
    return page(plan, inputs, inputs.compare(), seed=3, made_at=WHEN, version="1.2.3")


def test_it_says_when_it_was_made_by_what_and_from_which_inputs(text: str) -> None:
    for said in ("2026-11-22 18:00 UTC", "Holdfast 1.2.3", "seed 3", "failure rate percent 0.3", "instances 37"):
        assert said in text
    inputs = text[text.index("<h2>Inputs</h2>") :]
    assert re.search(r"failure rate</td><td [^>]*>0.3000% per instance-hour</td><td [^>]*>given", inputs)
    assert re.search(r"time to resume</td><td [^>]*>[\d,]+ s</td><td [^>]*>measured", inputs)


def test_equal_inputs_give_an_equal_page(planned: tuple[Plan, Inputs], text: str) -> None:
    assert drawn(planned) == text


def specs(text: str) -> dict[str, Any]:
    """What the page draws."""
    (found,) = re.findall(r'<script type="application/json" id="plots">(.*?)</script>', text)
    plots: dict[str, Any] = json.loads(found)
    return plots


def test_this_cluster_is_marked_and_what_was_asked_for(text: str) -> None:
    plots = specs(text)

    assert [rule["text"] for rule in plots["size"]["rules"]] == ["this cluster: 37", ""]
    assert plots["spares"]["rules"][0]["text"] == "planned: 2"
    assert len([rule for rule in plots["ways"]["rules"] if rule["dotted"]]) == 2, "deadline and budget"
    assert [mark["x"] for mark in plots["size"]["marks"]] == [37] * len(plots["size"]["lines"])
    assert sum(mark["star"] for name in ("ways", "spares") for mark in plots[name]["marks"]) >= 1


def test_everything_drawn_lies_within_its_axes(text: str) -> None:
    for name in ("size", "ways", "spares"):
        plot = specs(text)[name]
        (left, right), (low, high) = plot["x"]["range"], plot["y"]["range"]
        points = [point for line in plot["lines"] for point in line["points"]]
        marks = [(mark["x"], mark["y"]) for mark in plot["marks"]]

        assert len(points) > 5
        assert all(left <= x <= right and low <= y <= high for x, y in (*points, *marks))
        assert 3 <= len(plot["y"]["ticks"]) <= 8 or name == "ways"
        for axis in (plot["x"], plot["y"]):
            values = [value for value, _ in axis["ticks"]]
            assert values == sorted(values)
            assert all(axis["range"][0] <= value <= axis["range"][1] for value in values)


def test_parts_of_a_strip_lie_side_by_side(text: str) -> None:
    plots = specs(text)
    strips = [row for plot in plots.values() if plot["kind"] == "strips" for row in plot["rows"]]

    assert len(strips) > 10
    for row in strips:
        places = sorted((left, right) for left, right, _ in row["parts"])
        assert all(0 <= left < right <= 1.0001 for left, right in places)
        assert all(one[1] <= other[0] + 1e-4 for one, other in itertools.pairwise(places))


def test_a_colour_has_one_meaning() -> None:
    colours = plan_page.every(["by-hand", "by-hand+spares", "checkpoints", "checkpointless", "elastic"])
    asked = [each for each in colours if each.variable not in ("goal", "text")]

    for kind in ("variable", "light"):
        values = [getattr(each, kind) for each in asked]
        assert len(values) == len(set(values))
    assert plan_page.strategy(["a", "a+spares"], "a") == plan_page.strategy(["a", "a+spares"], "a+spares")


def test_every_colour_of_a_plot_is_one_of_the_page_by_day_and_by_night(text: str) -> None:
    plots = specs(text)
    curves = [plot for plot in plots.values() if plot["kind"] == "curves"]
    named = {one["colour"] for plot in curves for part in ("lines", "marks", "rules") for one in plot[part]}
    filled = {
        part[2] for plot in plots.values() if plot["kind"] == "strips" for row in plot["rows"] for part in row["parts"]
    }

    assert named
    assert filled
    for variable in named | filled:
        assert text.count(f"--{variable}:") == 2, "day and night"
    for variable in filled:
        assert f".f-{variable}{{" in text


def test_each_plot_has_its_place(text: str) -> None:
    places = re.findall(r'<div class="plot" data-plot="([^"]+)"', text)

    assert sorted(places) == sorted(specs(text))
    assert len(places) == len(set(places))


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    assert "default-src 'none'" in text
    for outside in (" src=", "href=", "@import", "<!DOCTYPE svg", "xlink", "url("):
        assert outside not in text


def test_a_phone_gets_every_number_with_the_name_of_its_column(planned: tuple[Plan, Inputs], text: str) -> None:
    plan, _ = planned
    cells = re.findall(r'<td data-is="([^"]*)">([^<]*)</td>', text)

    assert text.count("<td") == len(cells)
    for each in plan.outlooks:
        for number in (*goodput_cells(each), *cost_cells(each)):
            assert number in [value for _, value in cells]
    assert "content: attr(data-is)" in text
    assert "overflow-x" not in text, "nothing has to be pushed sideways"


def test_lost_time_is_drawn_and_not_goodput(text: str) -> None:
    axis = specs(text)["size"]["y"]
    ticks = [value for value, shown in axis["ticks"] if shown.endswith("%")]

    assert (axis["label"], axis["log"]) == ("lost time", True)
    assert len(ticks) >= 3
    assert ticks[-1] / ticks[0] >= 10
