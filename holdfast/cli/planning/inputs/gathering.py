"""
Inputs of a plan from options, environment and data, with all assumptions noted.

Options override the environment, and both override data. Without --price there is no price.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from holdfast.catalog.goodput import FailureRates, standing_prices
from holdfast.cli.planning.inputs.data import CATALOG, Data
from holdfast.cli.planning.inputs.environment import kind_of, training_group, type_of
from holdfast.cli.planning.inputs.prices import price_of
from holdfast.cli.planning.inputs.scenarios import RARE_INTERVAL_S, Inputs
from holdfast.cli.planning.inputs.standing import standing_costs
from holdfast.cli.planning.options import Options
from holdfast.config import Environment
from holdfast.planner.actual import KnownValues, known, learn
from holdfast.planner.model import ASSUMED_WRITE_S, Failures, PlanError, assumed_rate
from holdfast_common import Event

CALM_DAYS = 90
"""Our choice: the job that is planned when no work is given."""

TARGET_PERCENT = 95.0
"""Our choice: what checkpointless training is published to reach on thousands of accelerators."""

ASSUMED_ACCELERATOR, ASSUMED_COUNT = "H100", 8

_T = TypeVar("_T")


def gather(
    options: Options,
    *,
    environment: Environment | None = None,
    data: Data = CATALOG,
    events: Iterable[Event] | None = None,
) -> Inputs:
    """Gather the inputs of a plan. Raises: PlanError: an input is missing, or a number is impossible."""
    group = None if environment is None else training_group(environment, options.group)
    stages = data.stages()
    if options.strategy not in stages:
        raise PlanError(f"there is no strategy '{options.strategy}'; allowed: {', '.join(stages)}")
    instances = _or(options.instances, group.instance_count if group else None)
    if instances is None:
        raise PlanError("got no number of instances; name an environment, or add --instances")
    notes: list[str] = []
    instance_type = options.instance_type or (type_of(group) if group else None)
    accelerator, count = _accelerator(instance_type, notes)
    usd, price_note = price_of(options, instance_type=instance_type, prices=data.prices)
    expected = None if environment is None else environment.goodput
    interval_s = _or(options.checkpoint_interval_s, expected.checkpoint_interval_s if expected else None)
    target = _or(options.target_percent, expected.target_percent if expected else None)
    notes.append(f"goodput target {_or(target, TARGET_PERCENT):g} %" + ("" if target is not None else ": default"))
    given = KnownValues(
        per_instance_hour=None if options.failure_rate_percent is None else options.failure_rate_percent / 100,
        detect_s=options.detect_s,
        replace_s=options.replace_s,
        resume_s=options.resume_s,
        write_s=options.checkpoint_write_s,
    )
    listed = standing_prices()
    failures, counted = _failures(options, accelerator=accelerator, rates=data.rates, notes=notes)
    inputs = Inputs(
        title=f"{environment.name}, group {group.name}" if environment and group else f"{instances} instances",
        options=options,
        stages=stages,
        instances=instances,
        spares=_or(_or(options.spares, group.spare_count if group else None), 0),
        accelerators=count,
        failures=failures,
        accelerator_hours=_work(options, instances=instances, accelerators=count, notes=notes),
        usd_per_instance_hour=usd,
        price_note=price_note,
        target=_or(target, TARGET_PERCENT) / 100,
        interval_s=interval_s,
        write_s=_or(options.checkpoint_write_s, ASSUMED_WRITE_S),
        known=given,
        assumptions=notes,
        origins=_origins(given, KnownValues(), counted=counted, interval_given=interval_s is not None),
        standing=() if environment is None else standing_costs(environment, listed),
        standing_note=f"list prices of {listed.region}, {listed.date}",
    )
    _note_recovery(inputs, notes)
    if events is None:
        return inputs
    learned = learn(events)
    measured = known(learned.calibration)
    notes.append("measured values from the events override assumptions in each row that they apply to")
    both = measured.but(given)
    return replace(
        inputs,
        failures=replace(failures, per_instance_hour=_or(both.per_instance_hour, failures.per_instance_hour)),
        write_s=_or(both.write_s, inputs.write_s),
        known=both,
        origins=_origins(given, measured, counted=counted, interval_given=interval_s is not None),
        before=inputs,
        learned=learned,
    )


def _or(value: _T | None, default: _T) -> _T:
    return default if value is None else value


def _accelerator(instance_type: str | None, notes: list[str]) -> tuple[str, int]:
    if instance_type is None:
        notes.append(f"{ASSUMED_COUNT} {ASSUMED_ACCELERATOR} per instance: assumed; give --instance-type")
        return ASSUMED_ACCELERATOR, ASSUMED_COUNT
    kind = kind_of(instance_type)
    return kind.accelerator, max(1, kind.accelerators)


def _failures(
    options: Options, *, accelerator: str, rates: Callable[[], FailureRates], notes: list[str]
) -> tuple[Failures, str]:
    counted = "given"
    if options.failure_rate_percent is not None:
        notes.append(f"failure rate {options.failure_rate_percent:g} % per instance-hour: given")
        rate = options.failure_rate_percent / 100
    else:
        assumed = assumed_rate(rates(), accelerator=accelerator)
        seen = assumed.estimate
        rate = seen.per_instance_hour
        runs = ", ".join(f"{row.name} ({row.date})" for row in assumed.observations)
        stands_in = f"; {assumed.accelerator} stands in for {assumed.stands_in_for}" if assumed.stands_in_for else ""
        notes.append(
            f"failure rate {rate:.4%} per instance-hour, 95 % interval {seen.low:.4%} to {seen.high:.4%}: "
            f"{seen.failures} failures in {seen.instance_hours:,.0f} instance-hours of {runs}{stands_in}"
        )
        counted = f"assumed: {rate:.4%}, counted on {', '.join(row.name for row in assumed.observations)}"
    failures = Failures(
        per_instance_hour=rate, group_size=options.group_size, group_share=options.group_share_percent / 100
    )
    return failures, counted


def _origins(given: KnownValues, measured: KnownValues, *, counted: str, interval_given: bool) -> dict[str, str]:
    published = "assumed: as AWS published it"
    names = {
        "failure rate": ("per_instance_hour", counted),
        "time to detect": ("detect_s", published),
        "time to replace": ("replace_s", published),
        "time to resume": ("resume_s", published),
        "time to write a checkpoint": ("write_s", f"assumed: {ASSUMED_WRITE_S:g} s"),
    }
    origins = {"share of group failures": "given", "checkpoint interval": "given" if interval_given else "our choice"}
    for name, (field, otherwise) in names.items():
        known_from = "given" if getattr(given, field) is not None else "measured"
        origins[name] = known_from if getattr(measured.but(given), field) is not None else otherwise
    return origins


def _work(options: Options, *, instances: int, accelerators: int, notes: list[str]) -> float:
    if options.gpu_hours is not None:
        return options.gpu_hours
    notes.append(f"work of {CALM_DAYS} undisturbed days: assumed; give --gpu-hours")
    # An impossible number of instances is refused later, with words of its own.
    return float(max(1, instances) * accelerators * CALM_DAYS * 24)


def _note_recovery(inputs: Inputs, notes: list[str]) -> None:
    options = inputs.options
    notes.extend(f"{each.title}: {each.note}; {each.source}, {each.date}" for each in inputs.stages.values())
    if options.checkpoint_write_s is None:
        notes.append(f"writing a checkpoint stops training for {ASSUMED_WRITE_S:g} s: assumed; give --checkpoint-write")
    if inputs.interval_s is None:
        notes.append(
            f"checkpoint interval: the cheapest one; every {RARE_INTERVAL_S / 3600:g} h if only one step "
            f"is redone; give --checkpoint-interval"
        )
    notes.append("throughput grows with the number of instances; failures strike at a constant rate, independently")
