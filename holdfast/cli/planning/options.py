"""Options of ``holdfast plan``, each named once: the command line and the planning read the same fields."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.definitions import complete_environment, complete_instance_type
from holdfast.cli.terminal import JSON, OUTPUT

_cluster, _layout, _failures, _recovery, _goals, _money, _data, _output = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("Cluster", "Layout", "Failures", "Recovery", "Goals", "Cost", "Data", OUTPUT)
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Inputs of a plan; None where neither the user nor a default gives one."""

    environment: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]",
            help="Name in environments/, or a path. Options override the file.",
            autocompletion=complete_environment,
        ),
    ] = None
    group: Annotated[str | None, _cluster(help="Training instance group.", show_default="the largest")] = None
    instances: Annotated[int | None, _cluster(help="Training instances.")] = None
    instance_type: Annotated[
        str | None, _cluster(help="Instance type, such as ml.p5.48xlarge.", autocompletion=complete_instance_type)
    ] = None
    spares: Annotated[int | None, _cluster(help="Spare instances.")] = None
    gpu_hours: Annotated[
        float | None, _cluster(help="Size of the job in accelerator hours.", show_default="90 days without failure")
    ] = None
    failure_rate_percent: Annotated[
        float | None, _failures("--failure-rate", help="Failures per instance-hour in percent, such as 0.05.")
    ] = None
    group_size: Annotated[int, _failures(help="Instances lost at once in a group failure.")] = 1
    group_share_percent: Annotated[
        float, _failures("--group-share", help="Share of group failures among all failures, in percent.")
    ] = 0.0
    strategy: Annotated[str, _recovery(help="Recovery strategy to advise on.")] = "checkpoints"
    checkpoint_interval_s: Annotated[
        float | None,
        _recovery("--checkpoint-interval", help="Seconds between checkpoints.", show_default="the best interval"),
    ] = None
    checkpoint_write_s: Annotated[
        float | None, _recovery("--checkpoint-write", help="Seconds that a checkpoint blocks training.")
    ] = None
    detect_s: Annotated[float | None, _recovery("--detect", help="Seconds to detect a failure.")] = None
    replace_s: Annotated[float | None, _recovery("--replace", help="Seconds to replace an instance.")] = None
    resume_s: Annotated[
        float | None, _recovery("--resume", help="Seconds from the replacement to the next training step.")
    ] = None
    target_percent: Annotated[float | None, _goals("--target", help="Goodput target in percent.")] = None
    deadline_days: Annotated[float | None, _goals(help="Deadline in days.")] = None
    budget_usd: Annotated[float | None, _goals("--budget", help="Budget in dollars.")] = None
    price: Annotated[
        str | None,
        _money(
            help="Dollars per instance-hour, or an offer of the price file, such as ec2-on-demand.",
            show_default="no price",
        ),
    ] = None
    training_plan_fee_usd: Annotated[
        float | None, _money("--training-plan-fee", help="Upfront fee of a training plan in dollars.")
    ] = None
    training_plan_hours: Annotated[
        float | None, _money(help="Instance-hours of the training plan: instances times hours.")
    ] = None
    rates_file: Annotated[Path | None, _data(help="Failure rates, in place of failure_rates.json.")] = None
    stages_file: Annotated[Path | None, _data(help="Recovery times, in place of recovery_stages.json.")] = None
    prices_file: Annotated[Path | None, _data(help="Prices, in place of prices.json.")] = None


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Options):
    events: Annotated[
        Path | None, _data(help="Event file (JSON lines) to calibrate the plan with and to compare it to.")
    ] = None
    actual: Annotated[bool, _data("--actual", help="Use the events of the deployed cluster.")] = False
    runs: Annotated[int, _output(help="Simulated runs per strategy.", min=2)] = 1000
    seed: Annotated[int, _output(help="Seed of the simulation.", min=0)] = 0
    model: Annotated[
        str | None, _layout(help="Model to place: 8b, 70b, 405b (Llama 3), or a number of parameters, such as 13b.")
    ] = None
    layout: Annotated[
        str | None,
        _layout(
            help="Show only the plan of a layout: fsdp=RANKS, hsdp=SHARDSxCOPIES or ddp=RANKS, such as hsdp=64x32."
        ),
    ] = None
    json: Annotated[bool, JSON] = False
    html: Annotated[Path | None, _output(help="Write a page with plots, too.")] = None
