"""``holdfast plan``: what failures will cost a cluster, what to do about it, and what they did cost."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.deployed import LOG, name_problems
from holdfast.cli.planning import data_from, learned
from holdfast.cli.terminal import CommandError, console, installed_version, print_json

if TYPE_CHECKING:
    from holdfast.planner import Plan, PlanAgainstActual
    from holdfast.planner.inputs import Data, Inputs

CLUSTER, FAILURES, RECOVERY, GOALS, MONEY, SOURCES, OUTPUT = (
    "The cluster", "Failures", "Recovery", "Goals", "Money", "Data", "Output",
)  # fmt: skip


def plan(
    environment: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="Name in environments/, or a path; what is given below wins.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Group that trains.", rich_help_panel=CLUSTER, show_default="the largest")
    ] = None,
    instances: Annotated[int | None, typer.Option(help="Instances that train.", rich_help_panel=CLUSTER)] = None,
    instance_type: Annotated[str | None, typer.Option(help="Such as ml.p5.48xlarge.", rich_help_panel=CLUSTER)] = None,
    spares: Annotated[int | None, typer.Option(help="Instances that wait.", rich_help_panel=CLUSTER)] = None,
    gpu_hours: Annotated[
        float | None,
        typer.Option(help="The work, in accelerator hours.", rich_help_panel=CLUSTER, show_default="90 calm days"),
    ] = None,
    failure_rate: Annotated[
        float | None, typer.Option(help="Percent per instance-hour, such as 0.05.", rich_help_panel=FAILURES)
    ] = None,
    group_size: Annotated[
        int, typer.Option(help="Instances that a group failure takes at once.", rich_help_panel=FAILURES)
    ] = 1,
    group_share: Annotated[
        float, typer.Option(help="Percent of the failures that take a group.", rich_help_panel=FAILURES)
    ] = 0.0,
    strategy: Annotated[
        str, typer.Option(help="The way to recover that the advice is for.", rich_help_panel=RECOVERY)
    ] = "checkpoints",
    checkpoint_interval: Annotated[
        float | None, typer.Option(help="Seconds of training.", rich_help_panel=RECOVERY, show_default="the best one")
    ] = None,
    checkpoint_write: Annotated[
        float | None, typer.Option(help="Seconds that training stands still for one.", rich_help_panel=RECOVERY)
    ] = None,
    detect: Annotated[float | None, typer.Option(help="Seconds to notice.", rich_help_panel=RECOVERY)] = None,
    replace: Annotated[
        float | None, typer.Option(help="Seconds until a new instance is there.", rich_help_panel=RECOVERY)
    ] = None,
    resume: Annotated[
        float | None, typer.Option(help="Seconds from there to the next step.", rich_help_panel=RECOVERY)
    ] = None,
    target: Annotated[float | None, typer.Option(help="Goodput to reach, percent.", rich_help_panel=GOALS)] = None,
    deadline_days: Annotated[float | None, typer.Option(help="Days there are.", rich_help_panel=GOALS)] = None,
    budget: Annotated[float | None, typer.Option(help="Dollars there are.", rich_help_panel=GOALS)] = None,
    price: Annotated[
        str | None,
        typer.Option(
            help="Dollars per instance-hour, or an offer of the price file such as ec2-on-demand.",
            rich_help_panel=MONEY,
            show_default="no price",
        ),
    ] = None,
    training_plan_fee: Annotated[
        float | None, typer.Option(help="Dollars of a training plan's offering.", rich_help_panel=MONEY)
    ] = None,
    training_plan_hours: Annotated[
        float | None, typer.Option(help="Its instances times its hours.", rich_help_panel=MONEY)
    ] = None,
    events: Annotated[
        Path | None, typer.Option(help="Events (JSON lines): calibrate, and compare.", rich_help_panel=SOURCES)
    ] = None,
    actual: Annotated[
        bool, typer.Option("--actual", help="The same with the deployed cluster's events.", rich_help_panel=SOURCES)
    ] = False,
    rates_file: Annotated[
        Path | None, typer.Option(help="In the place of failure_rates.json.", rich_help_panel=SOURCES)
    ] = None,
    stages_file: Annotated[
        Path | None, typer.Option(help="In the place of recovery_stages.json.", rich_help_panel=SOURCES)
    ] = None,
    prices_file: Annotated[
        Path | None, typer.Option(help="In the place of prices.json.", rich_help_panel=SOURCES)
    ] = None,
    runs: Annotated[int, typer.Option(help="Simulated runs per strategy.", min=2, rich_help_panel=OUTPUT)] = 1000,
    seed: Annotated[int, typer.Option(help="Of the simulation.", min=0, rich_help_panel=OUTPUT)] = 0,
    published: Annotated[
        bool, typer.Option("--published", help="Only the published tables, beside their formulas.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with plots.", rich_help_panel=OUTPUT)] = None,
) -> None:
    """Plan what failures will cost, and compare with what they did cost."""
    from holdfast.planner import PlanError
    from holdfast.planner.inputs import Options, gather

    data = data_from(rates_file=rates_file, stages_file=stages_file, prices_file=prices_file)
    try:
        if published:
            _print_published(data, as_json=json)
            return
        known, definition = learned(events, environment=environment, actual=actual)
        inputs = gather(
            Options(
                environment=environment or (definition.name if definition else None),
                group=group,
                instances=instances,
                instance_type=instance_type,
                spares=spares,
                gpu_hours=gpu_hours,
                failure_rate_percent=failure_rate,
                group_size=group_size,
                group_share_percent=group_share,
                strategy=strategy,
                checkpoint_interval_s=checkpoint_interval,
                checkpoint_write_s=checkpoint_write,
                detect_s=detect,
                replace_s=replace,
                resume_s=resume,
                target_percent=target,
                deadline_days=deadline_days,
                budget_usd=budget,
                price=price,
                training_plan_fee_usd=training_plan_fee,
                training_plan_instance_hours=training_plan_hours,
                rates_file=rates_file,
                stages_file=stages_file,
                prices_file=prices_file,
            ),
            environment=definition,
            data=data,
            events=known,
        )
        if known is not None:
            name_problems(known.problems, of=LOG if events is None else str(events))
        made = inputs.plan(runs=runs, seed=seed)
        compared = inputs.compare()
    except PlanError as error:
        raise CommandError(str(error)) from None
    _print(made, inputs, compared, as_json=json)
    if html is not None:
        _write_page(html, made, inputs, compared, seed=seed, quiet=json)


def _print(made: "Plan", inputs: "Inputs", compared: "PlanAgainstActual | None", *, as_json: bool) -> None:
    if as_json:
        print_json({"plan": asdict(made), "assumptions": inputs.assumptions, "actual": _actual(compared)})
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


def _print_published(data: "Data", *, as_json: bool) -> None:
    from holdfast.cli.views.plan import render_published
    from holdfast.planner import published_tables

    tables = published_tables(data.rates(), data.stages().values())
    if as_json:
        print_json([asdict(table) for table in tables])
    else:
        console.print(render_published(tables))


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
