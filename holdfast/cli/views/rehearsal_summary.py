"""Summary of a rehearsal: deployment, jobs, incidents, next steps."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from holdfast.cli.deployed import StatusView
from holdfast.cli.views.incidents import LIST_PRICE, Fleet, IncidentRow, Price, incident_figures, rows_of
from holdfast.cli.views.layout import coloured
from holdfast.cli.views.status import node_table
from holdfast_common import Event, Incident, JobTimeline, timeline


def summary(view: StatusView, events: list[Event], *, names: Mapping[str, str] | None = None) -> Group:
    """Summary computed from ``events`` alone."""
    story = timeline(events)
    found = rows_of(events, _fleet(view))
    parts: list[RenderableType] = [
        Rule(Text("what just happened", style="bold")),
        _facts(view),
        node_table(view),
        *(_job(job) for job in story.jobs),
        *(incident_figures(row) for _, row in found),
        *_comparison(found, story.jobs, names or {}),
        *_plan_against_actual(events, names or {}),
        _next_steps(view, story.jobs),
    ]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def _facts(view: StatusView) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row(Text("stack", style="bold"), Text.assemble(view.stack_name, "  ", coloured(view.stack_status)))
    for key, value in sorted(view.stack_outputs.items()):
        table.add_row(Text(f"  {key}", style="dim"), value)
    if view.stand_ins:
        named = ", ".join(f"{what}: {stand_in}" for what, stand_in in sorted(view.stand_ins.items()))
        table.add_row(Text("stood in for", style="bold"), named)
    return table


def _job(job: JobTimeline) -> Table:
    table = Table.grid(padding=(0, 2))
    ended = "finished" if job.finished_ns is not None else "not finished"
    table.add_row(Text(f"job {job.job}", style="bold"), f"{ended} after {job.steps} steps and {job.wall_s:.1f} s")
    if job.first_loss is not None and job.last_loss is not None:
        table.add_row("  loss", f"{job.first_loss:.2f} to {job.last_loss:.2f} nats per byte")
    if len(job.sizes) > 1:
        (_, first), *changes = job.sizes
        table.add_row("  ranks", ", ".join([str(first), *(f"{size} from step {step}" for step, size in changes)]))
    table.add_row("  attempts", f"{job.attempts}, {job.steps_redone} steps redone")
    if job.goodput is not None:
        table.add_row("  goodput", f"{job.goodput:.0%} of the wall time went into steps that count")
    return table


def _fleet(view: StatusView) -> Fleet:
    return Fleet(
        type_of_node={node.instance_id: node.instance_type for node in view.nodes},
        type_of_group={node.instance_group: node.instance_type for node in view.nodes},
        price=Price.of(LIST_PRICE, region=""),
    )


def _comparison(
    found: Sequence[tuple[Incident, IncidentRow]], timelines: Sequence[JobTimeline], names: Mapping[str, str]
) -> list[RenderableType]:
    hit = {row.job: row.training_again_s for _, row in found if row.training_again_s is not None}
    jobs = [job for job in timelines if job.job in hit]
    if len(jobs) < 2:
        return []
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title="the same fault")
    for column in ("job", "resumed after", "steps redone", "goodput"):
        table.add_column(column, justify="left" if column == "job" else "right")
    for job in jobs:
        table.add_row(
            f"{job.job} {names.get(job.job, '')}".strip(),
            f"{hit[job.job]:.1f} s",
            str(job.steps_redone),
            "" if job.goodput is None else f"{job.goodput:.0%}",
        )
    return [table]


def _plan_against_actual(events: list[Event], names: Mapping[str, str]) -> list[RenderableType]:
    from holdfast.catalog.goodput import recovery_stages
    from holdfast.planner import learn, strategy_at

    learned = learn(events)
    seen = learned.calibration.stages
    plan = strategy_at(recovery_stages()["checkpoints"], instances=1)
    planned = {"detect": plan.detect_s, "replace": plan.replace_s, "resume": plan.resume_s}
    if not seen.keys() & planned.keys():
        return []
    stages = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title="plan against actual")
    for column in ("stage", "planned, as on HyperPod", "just now"):
        stages.add_column(column, justify="left" if column == "stage" else "right")
    for stage, seconds in planned.items():
        if stage in seen:
            stages.add_row(stage, f"{seconds:.0f} s", f"{seen[stage].mean_s:.1f} s")
    spent = Table.grid(padding=(0, 2))
    for book in learned.ledgers:
        accounts = {name: ns / 1e9 for name, ns in book.totals_ns.items() if ns}
        where = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in accounts.items())
        spent.add_row(Text(f"{book.job} {names.get(book.job, '')}".strip(), style="bold"), where)
    return [stages, spent]


def _next_steps(view: StatusView, jobs: tuple[JobTimeline, ...]) -> Table:
    table = Table.grid(padding=(0, 2))
    rows = [
        ("holdfast status", "stack, cluster, nodes, orchestrator and jobs"),
        ("holdfast events", "all events, in order"),
        *((f"holdfast logs --job {job.job}", "the output of the job") for job in jobs),
        _on_the_cluster(view),
        ("make down", "remove the local cloud"),
    ]
    table.add_row(Text("look next", style="bold"), "")
    for command, purpose in rows:
        table.add_row(Text(f"  {command}", style="cyan"), purpose)
    table.add_row(Text(f"  AWS at {view.endpoint}", style="cyan"), "for boto3 and the AWS CLI")
    return table


def _on_the_cluster(view: StatusView) -> tuple[str, str]:
    if view.orchestrator == "eks":
        return 'eval "$(holdfast env)"; kubectl get nodes', "nodes by kubectl"
    return f"holdfast ssh {view.nodes[0].hostname} -- sinfo" if view.nodes else "holdfast ssh", "a command on a node"
