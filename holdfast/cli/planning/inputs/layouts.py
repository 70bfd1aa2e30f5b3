"""Inputs of the plan of a layout."""

from holdfast.catalog.goodput import layout_facts
from holdfast.cli.planning.inputs.data import CATALOG, Data
from holdfast.cli.planning.inputs.environment import kind_of, training_group, type_of
from holdfast.cli.planning.options import PlanOptions
from holdfast.config import Environment
from holdfast.planner import LayoutPlan, PlanError, hardware_of, layout_of, parameters_of, plan_layout

ASSUMED_TYPE = "ml.p5.48xlarge"


def layout_plan(options: PlanOptions, *, environment: Environment | None, data: Data = CATALOG) -> LayoutPlan:
    """Plan the layout of ``--layout``. Raises: PlanError: an option is missing or impossible, or it does not fit."""
    if options.model is None or options.layout is None:
        given = "--layout" if options.model is None else "--model"
        raise PlanError(f"got {given} alone; allowed: --model with --layout; give both")
    if options.html is not None or options.events is not None or options.actual:
        raise PlanError("got --layout with --html, --events or --actual; allowed: --json; plan the layout alone")
    group = None if environment is None else training_group(environment, options.group)
    facts = layout_facts()
    return plan_layout(
        model=options.model,
        parameters=parameters_of(options.model, facts.models),
        name=options.layout,
        layout=layout_of(options.layout),
        hardware=hardware_of(kind_of(options.instance_type or (type_of(group) if group else None) or ASSUMED_TYPE)),
        facts=facts,
        checkpointless=data.stages()["checkpointless"],
        instances=options.instances if options.instances is not None or group is None else group.instance_count,
    )
