"""HoldfastJob: manifest, all of its mistakes at once, status. Pure."""

from holdfast_operator.jobs.fields import number, shown, unknown_fields
from holdfast_operator.jobs.job import PRIORITY_LABEL, QUEUE_LABEL, Job
from holdfast_operator.jobs.log_rules import LogRule, log_rule_mistakes, read_log_rules
from holdfast_operator.jobs.mistakes import mistakes
from holdfast_operator.jobs.progress import Progress, read_metrics
from holdfast_operator.jobs.reading import JobError, read_job
from holdfast_operator.jobs.status import (
    COMPLETE,
    FAILED,
    INVALID,
    RUNNING,
    SUSPENDED,
    Period,
    Status,
    Stop,
    read_status,
    stamp,
    with_condition,
)

__all__ = [
    "COMPLETE",
    "FAILED",
    "INVALID",
    "PRIORITY_LABEL",
    "QUEUE_LABEL",
    "RUNNING",
    "SUSPENDED",
    "Job",
    "JobError",
    "LogRule",
    "Period",
    "Progress",
    "Status",
    "Stop",
    "log_rule_mistakes",
    "mistakes",
    "number",
    "read_job",
    "read_log_rules",
    "read_metrics",
    "read_status",
    "shown",
    "stamp",
    "unknown_fields",
    "with_condition",
]
