"""
Restart of all pods by a log rule, as AWS's operator restarts the job.

A common restart, since a peer's copy of the state has the same fault. It costs one restart of ``launcherRestarts``,
AWS's ``jobMaxRetryCount``.
"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast_operator.decisions.charging import escalated, launcher_restart, restart_of_all
from holdfast_operator.decisions.facts import PodFacts
from holdfast_operator.jobs import Job, Status
from holdfast_operator.logs import Trip


def restarted(job: Job, status: Status, pods: Sequence[PodFacts], trip: Trip | None, *, now_s: float) -> Status:
    """Charge a trip once, and note the pods that have to go; a trip of earlier pods changes nothing."""
    there = {pod.uid for pod in pods}
    status = replace(status, restarting=tuple(uid for uid in status.restarting if uid in there))
    if trip is None or status.restarting or not any(pod.runs and pod.uid in trip.pods for pod in pods):
        return status
    if status.finished_s is not None or any(pod.phase == "Succeeded" for pod in pods):
        return status
    what = f"log rule {trip.rule} is {trip.state}: {trip.what}"
    node = next((pod.node for pod in pods if pod.uid == trip.uid), "")
    status = launcher_restart(job, status, node=node, what=what, now_s=now_s)
    status = escalated(job, status, pods, what, now_s=now_s)
    return status if status.restarting or status.has_ended else restart_of_all(status, pods, what)
