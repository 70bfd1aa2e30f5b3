"""Views of a deployment: status, jobs, events, changes, rehearsals. Loads neither rules nor planner."""

from holdfast.cli.views.changes import plain_change, render_changes
from holdfast.cli.views.diagnosis import render_diagnosis
from holdfast.cli.views.event_lines import BAD_KINDS, EventLine, event_facts
from holdfast.cli.views.job_table import as_dict, folded, job_history
from holdfast.cli.views.rehearsal_summary import summary
from holdfast.cli.views.status import PROCESS_NAMES, render_status
from holdfast.cli.views.verdicts import explained, without_remedy

__all__ = [
    "BAD_KINDS",
    "PROCESS_NAMES",
    "EventLine",
    "as_dict",
    "event_facts",
    "explained",
    "folded",
    "job_history",
    "plain_change",
    "render_changes",
    "render_diagnosis",
    "render_status",
    "summary",
    "without_remedy",
]
