from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.deployed import LOG, name_problems
from holdfast.cli.planning import PlanOptions, data_from, learned
from holdfast.cli.terminal import CommandError, command_of, console, print_json
from holdfast.localcloud.home import installed_version

if TYPE_CHECKING:
    from holdfast.cli.planning.inputs import Inputs
    from holdfast.planner import LayoutPlan, Plan, PlanAgainstActual


def _plan(options: PlanOptions) -> None:
    """Estimate the cost of failures, and compare it with events."""
    from holdfast.cli.planning.inputs import gather, layout_plan
    from holdfast.planner import PlanError

    data = data_from(rates_file=options.rates_file, stages_file=options.stages_file, prices_file=options.prices_file)
    try:
        if options.model is not None or options.layout is not None:
            _, environment = learned(None, environment=options.environment, actual=False)
            _print_layout(layout_plan(options, environment=environment, data=data), as_json=options.json)
            return
        events, environment = learned(options.events, environment=options.environment, actual=options.actual)
        if environment is not None and options.environment is None:
            options = replace(options, environment=environment.name)
        inputs = gather(options, environment=environment, data=data, events=events)
        if events is not None:
            name_problems(events.problems, of=LOG if options.events is None else str(options.events))
        made = inputs.plan(runs=options.runs, seed=options.seed)
        compared = inputs.compare()
    except PlanError as error:
        raise CommandError(str(error)) from None
    _print(made, inputs, compared, as_json=options.json)
    if options.html is not None:
        _write_page(options.html, made, inputs, compared, seed=options.seed, quiet=options.json)


plan = command_of(PlanOptions, _plan)


def _print(made: "Plan", inputs: "Inputs", compared: "PlanAgainstActual | None", *, as_json: bool) -> None:
    if as_json:
        standing = [asdict(each) for each in inputs.standing]
        found = {"plan": asdict(made), "assumptions": inputs.assumptions, "standing": standing}
        print_json(found | {"actual": _actual(compared)})
        return
    from holdfast.cli.views.plan import render_plan

    console.print(render_plan(made, inputs, compared))


def _actual(compared: "PlanAgainstActual | None") -> dict[str, Any] | None:
    if compared is None:
        return None
    return {
        "comparisons": [{**asdict(row), "within": row.within} for row in compared.comparisons],
        "calibration": asdict(compared.calibration),
        "ledgers": [
            {"job": book.job, "wall_ns": book.wall_ns, "goodput": book.goodput, "accounts_ns": book.totals_ns}
            for book in compared.ledgers
        ],
    }


def _print_layout(made: "LayoutPlan", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(made))
        return
    from holdfast.cli.views.plan import render_layout

    console.print(render_layout(made))


def _write_page(
    path: Path, made: "Plan", inputs: "Inputs", compared: "PlanAgainstActual | None", *, seed: int, quiet: bool
) -> None:
    from datetime import UTC, datetime

    from holdfast.cli.views.plan_page import page

    text = page(made, inputs, compared, seed=seed, made_at=datetime.now(UTC), version=installed_version())
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--html {path} cannot be written: {error}") from None
    if not quiet:
        console.print(f"wrote {path}", style="dim")
