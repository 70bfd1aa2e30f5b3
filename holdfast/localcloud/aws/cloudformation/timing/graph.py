"""Work over a dependency graph in threads: as soon as possible (``run``), or by courses (``run_in_time``)."""

import heapq
import queue
import threading
from collections.abc import Callable, Container, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import Stopped
from holdfast.localcloud.aws.cloudformation.timing.courses import Course
from holdfast.localcloud.aws.common import skip_time

WORKERS = 8
USE, PROVIDE, END = range(3)
"""What happens at one moment, in this order."""


class Cancelled(Exception):  # noqa: N818 - not an error: another resource's failure ends this one's wait
    ...


@dataclass(kw_only=True)
class Switch:
    """Switch that ends the waits of one run: the process stops, or the run failed."""

    stopping: threading.Event
    failed: threading.Event = field(default_factory=threading.Event)
    skip: bool = False
    """True if time passes without a wait."""

    @property
    def over(self) -> bool:
        return self.failed.is_set() or self.stopping.is_set()

    def pause(self, seconds: float) -> None:
        """Sleep, unless the run has ended."""
        if self.failed.is_set():
            raise Cancelled
        if self.stopping.wait(0 if self.skip else seconds):
            raise Stopped
        if self.skip:
            skip_time(seconds)


def run(
    needs: Mapping[str, set[str]],
    work: Callable[[str, Switch], None],
    *,
    stopping: threading.Event,
    go_on: bool = False,
    skip: bool = False,
) -> dict[str, BaseException]:
    """
    Call ``work`` for every node after its dependencies; return the errors by node.

    Args:
        go_on: True if nodes that do not depend on a failed one still run; else the first failure ends the run.
        skip: True if waits are skipped.
    """
    switch = Switch(stopping=stopping, skip=skip)
    left = {name: set(needed) & needs.keys() for name, needed in needs.items()}
    errors: dict[str, BaseException] = {}
    flying: dict[Future[None], str] = {}
    with ThreadPoolExecutor(max_workers=1 if skip else WORKERS, thread_name_prefix="cloudformation") as pool:
        while left or flying:
            if not switch.failed.is_set() and not stopping.is_set():
                for name in [name for name, needed in left.items() if not needed]:
                    del left[name]
                    flying[pool.submit(work, name, switch)] = name
            if not flying:
                break
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                name = flying.pop(future)
                error = future.exception()
                if error is None:
                    for needed in left.values():
                        needed.discard(name)
                    continue
                errors[name] = error
                if not go_on:
                    switch.failed.set()
    if stopping.is_set():
        raise Stopped
    return errors


@dataclass(kw_only=True)
class _Own:
    name: str
    shared: Switch
    reported: "queue.SimpleQueue[tuple[str, bool]]"
    waiting: bool = False

    def pause(self, seconds: float) -> None:
        if not self.waiting:
            self.waiting = True
            self.reported.put((self.name, False))
        self.shared.pause(seconds)


class _Timed:
    """
    Run with a course for each node: the work of a *user* starts when its time begins, that of a *provider* when its
    time is over. At one moment, users' calls come before providers'.
    """

    def __init__(
        self,
        *,
        needs: Mapping[str, set[str]],
        courses: Mapping[str, Course],
        switch: Switch,
        late: Container[str] = frozenset(),
    ) -> None:
        self._late, self._held = late, list[str]()
        self.left = {name: set(needed) & needs.keys() for name, needed in needs.items()}
        self.courses, self.switch = courses, switch
        self.errors: dict[str, BaseException] = {}
        self._agenda: list[tuple[float, int, str]] = []
        self._flying: dict[str, Future[None]] = {}
        self._reported: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()

    def drive(self, pool: ThreadPoolExecutor, work: Callable[[str, "_Own"], None]) -> None:
        moment = 0.0
        self._plan(moment)
        while (self._agenda or self._held) and not self.switch.over:
            if not self._agenda:
                self._begin(self._held.pop(), moment)
            moment, kind = self._agenda[0][:2]
            names = []
            while self._agenda and self._agenda[0][:2] == (moment, kind):
                names.append(heapq.heappop(self._agenda)[2])
            if kind == END:
                self._settle(names)
                self._plan(moment)
                continue
            self._call(pool, work, names, finish=kind == PROVIDE)
        for name in list(self._flying):
            self._settle([name])

    def _plan(self, moment: float) -> None:
        for name in [name for name, needed in self.left.items() if not needed]:
            del self.left[name]
            if name in self._late:
                self._held.append(name)
            else:
                self._begin(name, moment)

    def _begin(self, name: str, moment: float) -> None:
        taken = self.courses[name]
        begins = (moment, USE) if taken.user else (moment + taken.seconds, PROVIDE)
        heapq.heappush(self._agenda, (*begins, name))
        heapq.heappush(self._agenda, (moment + taken.seconds, END, name))

    def _call(
        self, pool: ThreadPoolExecutor, work: Callable[[str, "_Own"], None], names: list[str], *, finish: bool
    ) -> None:
        def one(name: str) -> None:
            try:
                work(name, _Own(name=name, shared=self.switch, reported=self._reported))
            except BaseException:
                self.switch.failed.set()
                raise
            finally:
                self._reported.put((name, True))

        for name in names:
            self._flying[name] = pool.submit(one, name)
        awaited = set(names)
        while awaited:
            name, finished = self._reported.get()
            if finished or not finish:
                awaited.discard(name)

    def _settle(self, names: list[str]) -> None:
        for name in names:
            error = self._flying.pop(name).exception() if name in self._flying else None
            if error is not None:
                self.errors[name] = error
                self.switch.failed.set()
                continue
            for needed in self.left.values():
                needed.discard(name)


def run_in_time(
    needs: Mapping[str, set[str]],
    work: Callable[[str, Any], None],
    *,
    courses: Mapping[str, Course],
    stopping: threading.Event,
    skip: bool = False,
    late: Container[str] = frozenset(),
) -> dict[str, BaseException]:
    """
    Like ``run``, ending at the first failure, in the order of the courses' times.

    Args:
        skip: True if waits are skipped; then work is serial, so that a run can be repeated.
        late: Nodes that start only when nothing else is left.
    """
    switch = Switch(stopping=stopping, skip=skip)
    timed = _Timed(needs=needs, courses=courses, switch=switch, late=late)
    with ThreadPoolExecutor(max_workers=1 if skip else WORKERS, thread_name_prefix="cloudformation") as pool:
        timed.drive(pool, work)
    if stopping.is_set():
        raise Stopped
    return timed.errors
