"""The page of a plan: what it says of itself, its colours, its plots, and that it needs nothing but itself."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

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
def text(planned: tuple[Plan, Inputs], tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("matplotlib")))
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


def test_this_cluster_is_marked_and_what_was_asked_for(text: str) -> None:
    assert "this cluster: 37" in text
    assert "planned: 2" in text
    assert text.count("var(--here)") >= 6
    assert text.count("stroke-dasharray") >= 4
    assert "var(--goal)" in text


def test_a_colour_has_one_meaning() -> None:
    colours = plan_page.every(["by-hand", "by-hand+spares", "checkpoints", "checkpointless", "elastic"])
    asked = [each for each in colours if each.variable not in ("goal", "text")]

    for kind in ("variable", "stand_in", "light"):
        values = [getattr(each, kind) for each in asked]
        assert len(values) == len(set(values))
    assert plan_page.strategy(["a", "a+spares"], "a") == plan_page.strategy(["a", "a+spares"], "a+spares")


def test_every_colour_of_a_plot_is_one_of_the_page_by_day_and_by_night(text: str) -> None:
    plots = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))

    assert not re.findall(r"#[0-9a-fA-F]{6}", plots)
    for variable in set(re.findall(r"var\(--([\w-]+)\)", plots)):
        assert text.count(f"--{variable}:") == 3, "day, night and paper"


def test_no_two_things_have_one_id_and_every_reference_has_its_thing(text: str) -> None:
    ids = re.findall(r' id="([^"]+)"', text)

    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids)


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    for outside in ("http://", "https://", "src=", "@import", "<script", "<!DOCTYPE svg", "xlink"):
        assert outside not in text.replace("http://www.w3.org/2000/svg", "")


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
    size = re.search(r"<svg[^>]*><title>lost time by cluster size</title>.*?</svg>", text, re.DOTALL)

    assert size is not None
    ticks = [float(tick) for tick in re.findall(r">([\d.]+)%<", size.group(0))]
    assert len(ticks) >= 3
    assert ticks[-1] / ticks[0] >= 10


def test_without_a_page_the_library_that_draws_it_is_not_loaded(repository: Path) -> None:
    code = (
        "import sys; from holdfast.cli.commands.environment import plan; "
        "import holdfast.cli.views.plan, holdfast.cli.views.plan_page; "
        "assert not any(name.partition('.')[0] == 'matplotlib' for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
