from typing import TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.deployed import FileSystemView, StatusView
from holdfast.cli.views.incidents import open_line
from holdfast.cli.views.job_table import folded, job_history
from holdfast.cli.views.layout import Column, Facts, Fitted, coloured
from holdfast.localcloud.processes import ProcessState

SHOWN_ENDED = 8
T = TypeVar("T")


PROCESS_NAMES = {
    "aws": "embedded AWS",
    "hyperpod": "control plane",
    "keeper": "keeper",
    "kernel-log": "kernel logs",
    "monitor": "monitor",
}


def render_status(view: StatusView) -> Group:
    """Facts, nodes, jobs, and what could not be read."""
    parts: list[RenderableType] = [_facts(view), node_table(view)]
    parts += [
        Text(f"{node.hostname} is {node.slurm}: {node.drained}", style="yellow") for node in view.nodes if node.drained
    ]
    if view.jobs:
        parts += ["", _job_table(view)]
    if view.pods:
        parts += ["", _pod_table(view)]
    if view.ended:
        parts += ["", Text("ended in the last day", style="bold"), job_history(folded(view.ended)[:SHOWN_ENDED])]
    if view.unseen:
        parts += ["", *(Text(f"not seen: {one}", style="yellow") for one in view.unseen)]
    return Group(*parts)


def node_table(view: StatusView) -> Fitted:
    slurm = view.orchestrator == "slurm"
    orchestrator = "Slurm" if slurm else "Kubernetes"
    names = ("instance", "group", "type", "host", "HyperPod", orchestrator, "message")
    return Fitted(
        [Column(name) for name in names],
        [
            [
                node.instance_id,
                node.instance_group,
                node.instance_type,
                node.hostname,
                coloured(node.status),
                coloured((node.slurm if slurm else node.kubernetes) or "-"),
                Text(node.message, style="red"),
            ]
            for node in view.nodes
        ],
    )


def _facts(view: StatusView) -> Facts:
    where = f"{view.environment} on {view.cloud}".strip() if view.environment else view.cloud
    facts: list[tuple[str, str | Text]] = [("environment", f"{where} ({view.endpoint})")]
    facts += [("", Text(view.problem, style="red"))] if view.problem else []
    if view.stack_name:
        facts.append(("stack", Text.assemble(view.stack_name, "  ", coloured(view.stack_status or "not seen"))))
    facts.append(("cluster", Text.assemble(view.cluster_name, "  ", coloured(view.cluster_status))))
    facts += [("", Text(view.cluster_message, style="red"))] if view.cluster_message else []
    facts += [("Kubernetes", view.kubernetes)] if view.kubernetes else []
    if left_out := view.stack_outputs.get("NotInstalled"):
        facts.append(("not installed", left_out))
        facts.append(("", Text("once a node runs, set eks.install_on_nodes: true and run holdfast up", "yellow")))
    if view.file_system is not None:
        state = coloured(view.file_system.status)
        capacity = f"  {view.file_system.capacity_gib} GiB"
        facts.append(("file system", Text.assemble(view.file_system.file_system_id, "  ", state, capacity)))
        facts += [("", line) for line in _links(view.file_system)]
    if view.stand_ins:
        named = ", ".join(f"{what}: {stand_in}" for what, stand_in in sorted(view.stand_ins.items()))
        facts.append(("stood in for", named))
    if (line := open_line(view.incidents)) is not None:
        facts.append(("incidents", line))
    facts += [("detectors" if first else "", text) for first, text in _with_first(_lost(view))]
    facts += [("planted" if first else "", Text(one, style="yellow")) for first, one in _with_first(view.planted)]
    facts += [(PROCESS_NAMES[one.name], _process_line(one)) for one in view.processes if one.state != "gone"]
    return Facts([*facts, ("", "")])


def _lost(view: StatusView) -> list[Text]:
    return [Text(f"lost on {one.host} ({one.node}): {one.evidence}", style="red") for one in view.lost_detectors]


def _with_first(lines: list[T]) -> list[tuple[bool, T]]:
    return [(number == 0, line) for number, line in enumerate(lines)]


def _links(file_system: FileSystemView) -> list[Text]:
    links, directions = sorted(file_system.data_repositories.items()), file_system.directions
    lines = [Text(f"{path} {directions.get(path, '=')} {target}", style="dim") for path, target in links]
    goes = [path for path, _ in links if directions.get(path) in ("->", "<->")]
    if directions:
        where = f"only {', '.join(goes)} is copied to S3" if goes else "nothing is copied to S3"
        lines.append(Text(f"{where}; other folders of the file system are not", style="dim"))
    if file_system.goes_with_stack:
        lines.append(Text("on_delete Delete: down deletes the file system and all data outside S3", "yellow"))
    return lines


def _process_line(process: ProcessState) -> Text:
    return Text(f"{process.state} (pid {process.pid})", style="green" if process.state == "running" else "red")


def _job_table(view: StatusView) -> Fitted:
    names = ("job", "name" if view.orchestrator == "slurm" else "kind", "state", "time", "nodes", "training", "reason")
    return Fitted(
        [Column(name) for name in names],
        [
            [
                job.job_id,
                job.name,
                coloured(job.state),
                job.elapsed,
                job.nodes,
                Text(job.training, style="yellow" if "spare" in job.training else ""),
                job.reason.replace("None", ""),
            ]
            for job in view.jobs
        ],
    )


def _pod_table(view: StatusView) -> Fitted:
    return Fitted(
        [Column(name) for name in ("pod", "phase", "node", "why")],
        [
            [
                pod.name if pod.namespace == "default" else f"{pod.namespace}/{pod.name}",
                coloured(pod.phase),
                pod.node,
                Text(pod.why, style="yellow"),
            ]
            for pod in view.pods
        ],
    )
