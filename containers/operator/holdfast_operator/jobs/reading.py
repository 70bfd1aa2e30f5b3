from collections.abc import Mapping, Sequence
from typing import Any

from holdfast_operator.jobs.job import PRIORITY_LABEL, QUEUE_LABEL, Deadlines, Job, Nodes, Recovery
from holdfast_operator.jobs.log_rules import read_log_rules
from holdfast_operator.jobs.mistakes import mistakes, sizes_of
from holdfast_operator.jobs.status import read_status


class JobError(ValueError):
    """An invalid job; the message has all mistakes."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__("\n".join(found))


def read_job(manifest: Mapping[str, Any]) -> Job:
    """Parse a job of the API server. Raises: JobError."""
    if found := mistakes(manifest):
        raise JobError(found)
    metadata, spec = manifest["metadata"], manifest["spec"]
    nodes, recovery, deadlines = spec["nodes"], spec.get("recovery") or {}, spec.get("deadlines") or {}
    sizes, labels = sizes_of(nodes), metadata.get("labels") or {}
    base = Recovery()
    return Job(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        nodes=Nodes(
            size=nodes.get("size") or max(sizes, default=nodes.get("max", 1)),
            spares=nodes.get("spares", 0),
            sizes=sizes,
        ),
        processes=spec.get("processesPerNode", 1),
        template=spec["template"],
        recovery=Recovery(
            launcher_restarts=recovery.get("launcherRestarts", base.launcher_restarts),
            job_restarts=recovery.get("jobRestarts", base.job_restarts),
            node_failures=recovery.get("nodeFailures", base.node_failures),
            restart_all_after=recovery.get("restartAllAfter"),
            period_s=recovery.get("periodSeconds"),
        ),
        deadlines=Deadlines(
            start_s=deadlines.get("startSeconds"),
            active_s=deadlines.get("activeSeconds"),
            fault_s=deadlines.get("faultSeconds"),
        ),
        log_rules=read_log_rules(spec.get("logRules") or ()),
        queue=labels.get(QUEUE_LABEL, ""),
        priority=labels.get(PRIORITY_LABEL, ""),
        is_suspended=spec.get("suspend", False),
        is_deleted=bool(metadata.get("deletionTimestamp")),
        ttl_s=spec.get("ttlSecondsAfterFinished"),
        generation=metadata.get("generation", 1),
        status=read_status(manifest.get("status") or {}),
    )
