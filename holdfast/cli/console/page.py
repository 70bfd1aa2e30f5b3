"""The page as files of the server, and as one file of a job or of incidents."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from holdfast.cli.console.model import event_rows, incidents_of, jobs_of, milliseconds, series_of
from holdfast.cli.console.state import LogState
from holdfast.cli.terminal import CommandError
from holdfast.cli.views.incidents import IncidentRow, reported_note
from holdfast.cli.views.pages import PageFile, document, page_file, plotting_files
from holdfast_common import Event, Incident, in_order, plain

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>holdfast console</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="uplot.css">
<link rel="stylesheet" href="console.css">
<script defer src="uplot.js"></script>
<script defer src="plots.js"></script>
<script defer src="console.js"></script>
</head>
<body>
"""
_STYLES = ("uplot.css", "console.css")
_SCRIPTS = ("uplot.js", "plots.js", "console.js")


def served_files() -> dict[str, PageFile]:
    """Files of the page by their names; the page has none."""
    own = {name: page_file(__package__, f"assets/{name}") for name in ("console.js", "console.css", "icon.svg")}
    body = page_file(__package__, "assets/body.html")
    page = PageFile(kind=body.kind, content=_HEAD.encode() + body.content + b"</body>\n</html>\n")
    return {"": page, **own, **plotting_files()}


def written_page(
    events: Iterable[Event],
    found: Sequence[tuple[Incident, IncidentRow]],
    *,
    made_at: datetime,
    version: str,
    job: str = "",
    price_note: str = "",
) -> str:
    """
    Return a page that is one file, without nodes; equal arguments give equal pages.

    Args:
        job: Show this one with its incidents and events. Default: the incidents, with their jobs.

    Raises:
        CommandError: no event is of this job.
    """
    state = LogState()
    state.add_settled(in_order(events))
    if job and job not in state.jobs:
        known = ", ".join(sorted(state.jobs)) or "none"
        raise CommandError(f"got --job {job!r}; allowed: a job with events: {known}")
    shown = [one for one in found if not job or one[0].job == job]
    names = {job} if job else {incident.job for incident, _ in shown}
    jobs = [one for name, one in state.jobs.items() if name in names]
    nodes = {incident.node for incident, _ in shown} | {node for one in jobs for node in one.nodes if job}
    newest = state.recent.after(0)
    own = [one for one in newest if (one[1].job in names if one[1].job else one[1].node in nodes)]
    what = f"Job {job}" if job else f"Incident {shown[0][1].id}" if len(shown) == 1 else "Incidents"
    title = plain(" of ".join(filter(None, (what, ", ".join(sorted(state.clusters))))))
    notes = [f"Price of {price_note}." if price_note else "", reported_note([row for _, row in shown])]
    data = {
        "meta": {
            "title": title,
            "of": "job" if job else "incidents",
            "job": plain(job),
            "made": milliseconds(int(made_at.timestamp()) * 1_000_000_000),
            "latest": milliseconds(state.latest_ns),
            "version": version,
            "events": state.count,
            "notes": [plain(note) for note in notes if note],
        },
        "jobs": jobs_of(jobs, [incident for incident, _ in shown], now_ns=state.latest_ns),
        "series": {plain(one.job): series_of(one, now_ns=state.latest_ns) for one in jobs},
        "incidents": incidents_of(shown),
        "events": {"again": True, "total": len(own), "rows": event_rows(own)},
    }
    files = served_files()
    return document(
        title,
        page_file(__package__, "assets/body.html").content.decode(),
        styles=[files[name].content.decode() for name in _STYLES],
        scripts=[files[name].content.decode() for name in _SCRIPTS],
        data={"data": data},
    )
