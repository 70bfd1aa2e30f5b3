"""Log rules of jobs, applied to the logs of their pods."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast_common import ClusterAccess, KubernetesError
from holdfast_operator.driver.cache import Cache
from holdfast_operator.driver.cluster import pods_path
from holdfast_operator.driver.matcher import Matcher, SlowPatternError
from holdfast_operator.jobs import RUNNING, Job, JobError, LogRule, read_job
from holdfast_operator.logs import LogWatch, Trip
from holdfast_operator.objects import owner_uid

EVERY_S = 5.0
MOST_LINES, MOST_BYTES = 10_000, 1 << 20
"""Of one pod in one look; older lines are left out."""
NEW_S = 60.0
"""Age up to which a run of a job is one that began under this operator."""
_STAMPED = re.compile(r"(\d{4}-\S+) (.*)")
_FRACTION = re.compile(r"\.[0-9]+")
Object = dict[str, Any]


@dataclass(kw_only=True)
class _Run:
    """Pods of a job from their start to their common restart."""

    rules: tuple[LogRule, ...]
    watch: LogWatch
    seen: dict[str, str]
    """Time of the newest line by pod, by the node's clock."""


class Logs:
    """
    Trips of log rules; read by a thread of its own, so that no decision waits for a pod.

    Args:
        may_read: Returns False while another operator holds the lease.
        report: Writes a line of the log.
        clock: Of timers. Default: monotonic.
        wall: Of the ages of jobs.
    """

    def __init__(
        self,
        access: ClusterAccess,
        cache: Cache,
        *,
        changed: Callable[[], None],
        may_read: Callable[[], bool],
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._cache = cache
        self._changed = changed
        self._may_read = may_read
        self._report = report
        self._clock = clock
        self._wall = wall
        self._matcher = Matcher()
        self._runs: dict[str, _Run] = {}
        self._trips: dict[str, Trip] = {}
        self._off: dict[str, dict[str, str]] = {}
        self._failed: dict[str, str] = {}
        """Last error of a job's logs."""

    def trip_of(self, job: Job) -> Trip | None:
        return self._trips.get(job.uid)

    def off_of(self, job: Job) -> tuple[tuple[str, str], ...]:
        """Return the rules that are not applied any more, and why."""
        return tuple({**dict(job.status.rules_off), **self._off.get(job.uid, {})}.items())

    def start(self) -> None:
        threading.Thread(target=self._loop, name="logs", daemon=True).start()

    def close(self) -> None:
        self._matcher.close()

    def look(self) -> None:
        """Read new lines of all jobs with rules, and apply the rules."""
        jobs = [job for job in map(_read, self._cache.jobs() if self._may_read() else ()) if job is not None]
        uids = {job.uid for job in jobs}
        for known in (self._runs, self._trips, self._off, self._failed):
            for uid in known.keys() - uids:
                del known[uid]
        for job in jobs:
            self._of_job(job)
        if self._trips or self._off:
            self._changed()

    def _loop(self) -> None:
        while True:
            time.sleep(EVERY_S)
            self.look()

    def _of_job(self, job: Job) -> None:
        found = self._cache.pods_of((job.namespace, job.name))
        pods = {pod["metadata"]["uid"]: pod for pod in found if owner_uid(pod) == job.uid and _runs(pod)}
        run = self._runs.get(job.uid)
        if not pods:
            return
        if run is None or run.rules != job.log_rules or not run.seen.keys() & pods:
            run = self._begun(job, pods)
        self._runs[job.uid], now_s = run, self._clock()
        if not job.status.is_true(RUNNING):
            run.watch.missed(now_s=now_s)
            return
        nodes = self._cache.nodes()
        ready = {uid for uid, pod in pods.items() if (node := nodes.get(pod["spec"].get("nodeName"))) and node.is_ready}
        are_read = [uid in ready and self._of_pod(run, job, uid, pod) for uid, pod in pods.items()]
        if not all(are_read):
            run.watch.missed(now_s=now_s)
        for name in run.watch.stopped:
            self._off.setdefault(job.uid, {}).setdefault(name, "its stopPattern matched")
        trip = run.watch.trip(pods=frozenset(pods), now_s=now_s)
        if trip is None:
            self._trips.pop(job.uid, None)
        else:
            self._trips[job.uid] = trip

    def _begun(self, job: Job, pods: Iterable[str]) -> _Run:
        running, now_s = job.status.condition(RUNNING), self._wall()
        is_new = running is None or not running.is_true or now_s - running.since_s < NEW_S
        stopped = [name for name, _ in self.off_of(job)]
        watch = LogWatch(job.log_rules, stopped=stopped, is_new=is_new, now_s=self._clock())
        return _Run(rules=job.log_rules, watch=watch, seen=dict.fromkeys(pods, ""))

    def _of_pod(self, run: _Run, job: Job, uid: str, pod: Object) -> bool:
        """Apply the rules to a pod's new lines; False if there are more."""
        last = run.seen.setdefault(uid, "")
        query = {"timestamps": "true", "tailLines": str(MOST_LINES), "limitBytes": str(MOST_BYTES)}
        if last:
            query["sinceTime"] = _FRACTION.sub("", last)  # the API server knows whole seconds only
        container = pod["spec"]["containers"][0]["name"]
        path = f"{pods_path(job.namespace, pod['metadata']['name'])}/log"
        try:
            text = self._access.client().text(path, container=container, **query)
        except (KubernetesError, OSError) as error:
            if self._failed.get(job.uid) != str(error):
                self._report(f"job {job.namespace}/{job.name}: log of pod {pod['metadata']['name']}: {error}; retrying")
            self._failed[job.uid] = str(error)
            return False
        stamped = [found for line in text.split("\n") if (found := _STAMPED.match(line))]
        lines = [found[2] for found in stamped if found[1] > last]
        is_cut = len(text.encode()) >= MOST_BYTES - 4
        # The newest line of the last look comes again, unless the log was rotated or has too many lines since.
        if all(found[1] != last for found in stamped) if last else len(stamped) >= MOST_LINES:
            run.watch.missed(now_s=self._clock(), are_lost=True)
        run.seen[uid] = max((found[1] for found in stamped), default=last)
        if is_cut and not lines and last:  # one second has more than a look reads
            second = datetime.fromisoformat(_FRACTION.sub("", last).replace("Z", "+00:00"))
            run.seen[uid] = (second + timedelta(seconds=1)).isoformat()
        for rule in run.watch.active:
            try:
                matches = self._matcher.matched(rule, lines)
            except SlowPatternError:
                run.watch.stop(rule.name)
                self._off.setdefault(job.uid, {})[rule.name] = "its patterns take too much time or memory"
                continue
            run.watch.saw(rule.name, uid=uid, lines=lines, matches=matches, now_s=self._clock())
        return not is_cut


def _read(manifest: Mapping[str, Any]) -> Job | None:
    try:
        job = read_job(manifest)
    except JobError:
        return None
    return job if job.log_rules and not job.is_suspended and not job.status.has_ended else None


def _runs(pod: Object) -> bool:
    is_deleted = bool(pod["metadata"].get("deletionTimestamp"))
    return not is_deleted and (pod.get("status") or {}).get("phase") == "Running"
