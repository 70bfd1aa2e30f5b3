"""``holdfast status``: stack, cluster, nodes, Slurm and jobs on one screen."""

from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.cli._deployed import StatusView, read_status
from holdfast.cli._output import console, print_json
from holdfast.cli._session import load
from holdfast.localcloud.keeper import ProcessState

GOOD = frozenset(
    {"InService", "Running", "AVAILABLE", "CREATE_COMPLETE", "UPDATE_COMPLETE", "idle", "allocated", "RUNNING"}
)
BAD = ("FAILED", "ROLLBACK", "Failure", "Failed", "down", "drain", "fail", "absent")


NAMES = {"aws": "embedded AWS", "hyperpod": "control plane", "keeper": "keeper"}


def status(json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False) -> None:
    """Show the deployed environment as AWS and Slurm report it."""
    view = read_status(load())
    if json:
        print_json(view)
    else:
        console.print(render(view))


def render(view: StatusView) -> Group:
    """The one screen: facts, nodes, jobs."""
    parts = [_facts(view), node_table(view)]
    if view.jobs:
        parts.append(_job_table(view))
    return Group(*parts)


def node_table(view: StatusView) -> Table:
    """One row a node, with its state in HyperPod and, where Slurm orchestrates, in Slurm."""
    slurm = view.orchestrator == "slurm"
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    columns = ("instance", "group", "type", "host", "HyperPod", *(["Slurm"] if slurm else []), "")
    for column in columns:
        table.add_column(column, no_wrap=column != "")
    for node in view.nodes:
        table.add_row(
            node.instance_id,
            node.instance_group,
            node.instance_type,
            node.hostname,
            coloured(node.status),
            *([coloured(node.slurm or "-")] if slurm else []),
            Text(node.message, style="red"),
        )
    return table


def coloured(state: str) -> Text:
    """A state in the colour of its meaning."""
    if state in GOOD:
        return Text(state, style="green")
    return Text(state, style="red" if any(word in state for word in BAD) else "yellow")


def _facts(view: StatusView) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_row(Text("environment", style="bold"), f"{view.environment} on {view.cloud} ({view.endpoint})")
    if view.problem:
        facts.add_row("", Text(view.problem, style="red"))
    facts.add_row(Text("stack", style="bold"), Text.assemble(view.stack_name, "  ", coloured(view.stack_status)))
    cluster = Text.assemble(view.cluster_name, "  ", coloured(view.cluster_status))
    facts.add_row(Text("cluster", style="bold"), cluster)
    if view.cluster_message:
        facts.add_row("", Text(view.cluster_message, style="red"))
    if view.file_system is not None:
        links = ", ".join(f"{path} = {target}" for path, target in sorted(view.file_system.data_repositories.items()))
        state = coloured(view.file_system.status)
        facts.add_row(
            Text("file system", style="bold"),
            Text.assemble(view.file_system.file_system_id, "  ", state, f"  {view.file_system.capacity_gib} GiB"),
        )
        facts.add_row("", Text(links, style="dim"))
    if view.stand_ins:
        named = ", ".join(f"{what}: {stand_in}" for what, stand_in in sorted(view.stand_ins.items()))
        facts.add_row(Text("stood in for", style="bold"), named)
    if view.slurm_problem:
        facts.add_row(Text("Slurm", style="bold"), Text(view.slurm_problem, style="red"))
    for process in view.processes:
        if process.state != "gone":
            facts.add_row(Text(NAMES[process.name], style="bold"), _process_line(process))
    facts.add_row("", "")
    return facts


def _process_line(process: ProcessState) -> Text:
    """Its state, and how long ago each of its threads did its pass."""
    state = Text(f"{process.state} (pid {process.pid})", style="green" if process.state == "running" else "red")
    passes = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in process.passed_s_ago.items())
    return Text.assemble(state, (f"  passes, ago: {passes}" if passes else "", "dim"))


def _job_table(view: StatusView) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for column in ("job", "name", "state", "time", "nodes", "reason"):
        table.add_column(column)
    table.add_row()
    for job in view.jobs:
        reason = "" if job.reason == "None" else job.reason
        table.add_row(job.job_id, job.name, coloured(job.state), job.elapsed, job.nodes, reason)
    return table
