"""
This process as a member of the job: out of a broken generation at once, into the next one with the right state.

The order is always the same. Close the groups, so that no neighbour waits for this process. Report. Wait for a view.
Take the state from where the view says. Connect; where a replica's state is copied, at the same time. Confirm with all
others that step and parameters are equal.

In a sharded job the script makes its groups and its model between ``begin`` and the first ``join``: a newcomer makes
them alone, while the others wait for nothing but its state. A spare does so before it has a rank, when it is told which
one that may be, and does a step alone: then it has to be given the state and no more.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from holdfast_runtime.control import Build, Buildable, Deadlines, Ready, Stop, View
from holdfast_runtime.faults import Injector
from holdfast_runtime.groups import RecordedGroups, UnsupportedError, holders, private, sharded_beside
from holdfast_runtime.inprocess.errors import BrokenError, DivergenceError, StoppedError, lost_connection, of_peers
from holdfast_runtime.inprocess.member.agreement import Agreement
from holdfast_runtime.inprocess.member.making import Making
from holdfast_runtime.inprocess.member.peers import PEERS, Peers, with_peers
from holdfast_runtime.inprocess.member.standing import Standing, Training
from holdfast_runtime.inprocess.member.taking import Taking
from holdfast_runtime.inprocess.member.telling import Telling
from holdfast_runtime.patience import blames
from holdfast_runtime.sharded import check_length


class Member:
    """
    One process of a job with a launcher.

    Args:
        training: What the script has made. Default: nothing yet, ``train`` brings it.
        recorded: Groups of the script, which are made again. Default: they are its own affair.
    """

    def __init__(
        self,
        *,
        backend: str,
        training: Training | None = None,
        recorded: RecordedGroups | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        private.refuse_async_saves()
        self.faults = Injector.from_environment(environment)
        self.deadlines = Deadlines.from_environment(environment)
        self.own = Standing()
        self.at_boundary = False
        """All ranks leave before the next step, by the votes of the last one."""
        self.recorded = recorded
        self.peers = Peers(self.own, backend=backend, recorded=recorded, deadlines=self.deadlines)
        self.reporter = Telling(self.own, deadlines=self.deadlines, environment=environment, on_leave=self.peers.leave)
        self.reporter.is_of_peers = self.is_of_peers
        self.taking = Taking(
            self.own,
            peers=self.peers,
            reporter=self.reporter,
            deadlines=self.deadlines,
            faults=self.faults,
            token=environment.get("HOLDFAST_TOKEN", ""),
        )
        self.taking.training = training
        self.agreement = Agreement(
            self.own, peers=self.peers, reporter=self.reporter, kept=lambda: self.taking.made.state.objects()
        )
        self.compare: Callable[[], None] = self.peers.all_here
        """Compares all that ranks must have alike, with all of them, at the end of the training."""
        self._making = Making(self.own, peers=self.peers, reporter=self.reporter, deadlines=self.deadlines)
        self._next: View | Stop | None = None
        """The generation that follows the one that was left, until ``join``."""
        self._is_alone = False
        """Whether the default group is one without peers, until ``join``."""
        self._torn = ""
        """Reason of a torn state where the program did not raise in its update."""
        self._problem: Exception | None = None
        """Raised by the program when its state was put back, to be reported by ``join``."""

    @property
    def training(self) -> Training | None:
        """Model and optimizer of the script; None until they exist."""
        return self.taking.training

    def train(self, training: Training) -> None:
        self.taking.training = training
        self.peers.all_on_host = training.sharded is not None

    def begin_loop(self, total: int) -> None:
        """
        The program asks for so many updates.

        Raises:
            UnsupportedError: the training would end before its first snapshot; the job is told.
        """
        self.reporter.total = total
        kept = self.taking.made.kept
        if kept is not None and not self.own.committed_step:
            try:
                check_length(kept.every, total=total)
            except UnsupportedError as error:
                self.reporter.refuse(error)
                raise

    @property
    def is_behind(self) -> bool:
        """True if the program is at code that the other ranks are beyond: in front of the loop that they are in."""
        return self.own.committed_step >= self.reporter.total < self.own.asked

    def begin(self) -> None:
        """
        Until this process has a rank, and groups in which the script can make its model.

        Those are the real ones where all ranks begin. A newcomer has groups in which it is alone, with the names of the
        real ones: the others do not make their models again, and would not answer. So has a spare that is told to be
        built for a rank that it may get.

        Raises:
            StoppedError: the launcher has ended the job, or this spare was not needed.
        """
        reason = ""
        while True:
            self._say_ready(reason, planned=False)
            self.faults.point("waiting")
            view = self.reporter.place(needed=bool(self.own.generation))
            if isinstance(view, Stop):
                raise StoppedError(view.reason, view.exit_code)
            if isinstance(view, Build):
                self._build(view)
                return
            self.taking.withdraw()
            self._become(view)
            self.reporter.progress("recover")  # making a model takes as long as it takes
            try:
                self._set_environment()
                self._making.open(view)
            except BrokenError as error:
                self.peers.close()
                self.peers.left()
                reason = f"generation {self.own.generation} was not reached: {error}"
                if not self.peers.must_leave:
                    self.reporter.broken(reason)
            else:
                return

    def take_rank(self) -> None:
        """As ``join``, for a process that has none yet. Raises StoppedError when there is nothing to join."""
        if not self.join():
            raise StoppedError("the job has ended and this spare was not needed", 0)

    def cannot(self, error: Exception) -> NoReturn:
        """The script raised an error before this process has a rank: another one comes. Raises StoppedError."""
        self.reporter.cold(error)
        raise StoppedError(f"this spare could not do a step alone: {error}", 1) from error

    def hand_over(self) -> bool:
        """Leave between two steps that all ranks have finished, and join the next generation, as ``join`` does."""
        self.faults.point("boundary")
        if self.own.world_size > 1:
            # One that is lost just now, or the end of this generation: what all have finished is finished.
            with contextlib.suppress(BrokenError), with_peers("not all ranks have finished the step"):
                self.reporter.progress("vote")
                self.peers.all_here()
        return self.join(f"the ranks leave after step {self.own.committed_step}", planned=True)

    def is_of_peers(self, error: BaseException) -> bool:
        """Return True if an exception of the program goes back to the loss of a peer."""
        if of_peers(error):
            return True
        if self.has_left:
            return isinstance(error, PEERS) or "process group" in str(error)
        return isinstance(error, PEERS) and (self.peers.wait_for_leave() or lost_connection(error))

    @property
    def has_left(self) -> bool:
        return self._next is not None

    @property
    def next_view(self) -> View | None:
        """The generation that follows, once this process has left one; None while it is in one."""
        return self._next if isinstance(self._next, View) else None

    def leave(self, reason: str) -> None:
        """
        Leave a broken generation, and learn with which step the training goes on; ``join`` follows between two steps.

        Where another rank has committed the step that was left, a prepared update is done here.
        """
        if self._next is not None:
            return
        self.at_boundary = False
        view = self._next = self._following(reason, planned=False)
        if isinstance(view, View) and view.plan.source in ("memory", "parts"):
            try:
                self.taking.use_own(view.resume_step)
            except Exception as error:  # noqa: BLE001 - the program's own, in what it puts back
                self._problem = error
        if isinstance(view, View) and view.resume_step > self.own.committed_step and self._problem is None:
            self.join()  # others have committed the step: the code behind it sees their state
        elif self.recorded is None and self.own.world_size > 1:
            self._is_alone = True  # collectives behind the step that was left end at once, and move nothing
            self.peers.open_alone()

    def report_hang(self, error: Exception, *, step: int) -> None:
        """
        Report a collective between two steps that this rank was in while others had ended their work there.

        A rank that calls one alone does so again when the work is repeated: the second report ends the job.
        """
        if self.peers.must_leave and blames(self.peers.reason, self.own.rank):
            self.reporter.raised(error, step=step, where="outside")

    def join(self, reason: str = "", *, planned: bool = False) -> bool:
        """
        Until this process has a rank, the state of the step to go on from, and all its peers.

        Args:
            reason: What broke the generation before. Default: nothing did, this is the first.
            planned: Whether nothing broke, and all ranks leave by themselves. Default: something did.

        Returns:
            False when all others have finished, so that there is nothing to join.

        Raises:
            StoppedError: the launcher has ended the job, or this process, whose rank is another's now.
            DivergenceError: this state is not that of the others.
        """
        self.at_boundary = False
        if self._is_alone:
            self._is_alone = False
            self.peers.close()
        if self.own.built >= 0:
            self.own.committed_step = 0
        while True:
            view, self._next = self._next or self._following(reason, planned=planned), None
            planned = False
            if isinstance(view, Stop):
                if view.exit_code == 0 and not self.own.gives:
                    return False
                raise StoppedError(view.reason, view.exit_code)
            if self.own.built not in (-1, view.rank) and not self.taking.made.moves:
                raise StoppedError(f"this process has the model of rank {self.own.built}, and not {view.rank}", 1)
            try:
                self._enter(view)
            except (DivergenceError, UnsupportedError) as error:
                self.reporter.refuse(error)
                raise
            except BrokenError as error:
                reason = f"generation {self.own.generation} was not reached: {error}"
            except Exception as error:  # noqa: BLE001 - the program's own, in what it loads or puts back
                reason = self.reporter.raised(error, step=view.resume_step, where="recovery")
            else:
                self.reporter.progress("other")
                return True

    def _following(self, reason: str, *, planned: bool) -> View | Stop:
        first, begun = self._making.begun, None
        if first is not None:
            try:
                begun = self._making.until_all_have(first)
            except BrokenError as error:
                reason = str(error)
        self._let_go(first=first is not None)
        newest = self.taking.newest_checkpoint
        if begun is not None and begun.plan.source == "fresh" and newest() >= 0:
            reason, begun = f"there is a checkpoint of step {newest()}", None
        if begun is not None and not self.peers.must_leave:
            return begun
        self.peers.left()
        if self.own.validity == "valid" and (name := self.taking.made.state.changed_parameter()):
            self.own.validity = "torn"
            self._torn = (
                f"parameter {name} was changed outside of an update for the first time, and only from the second time "
                "on the runtime has a copy; evaluate other weights on a copy of the model"
            )
        if not self.peers.must_leave and not planned:
            self.reporter.broken(reason)
        self.faults.point("ready")
        return self._wait_for_view(reason, planned=planned)

    def finish(self) -> bool:
        if self.own.built >= 0:
            self.take_rank()
            return False
        try:
            self.peers.check()
            if self.own.world_size > 1:
                self.reporter.progress("vote")
                self.compare()
        except BrokenError as error:
            if self.join(str(error)):
                return False
        except DivergenceError as error:
            self.reporter.refuse(error)
            raise
        self.reporter.finished()
        return True

    def _build(self, build: Build) -> None:
        own = self.own
        own.built = own.rank = build.rank
        own.world_size, own.committed_step = build.world_size, build.step
        self._set_environment()
        self.peers.open_alone()

    @property
    def _buildable(self) -> Buildable:
        made = self.training
        able = self.recorded is not None if made is None else made.warm_up
        if not able:
            return ""
        return "apart" if "nccl" in self.peers.backend else "anywhere"

    @property
    def _twins(self) -> tuple[int, ...] | None:
        sharded = self.training.sharded if self.training is not None else None
        if sharded is None:
            return None
        return () if sharded.has_large_values else sharded.twins

    def _say_ready(self, reason: str, *, planned: bool) -> None:
        made = self.training
        self.reporter.send(
            Ready(
                committed_step=self.own.committed_step,
                state=self.own.validity,
                port=self.taking.port,
                checkpoint_step=self.taking.newest_checkpoint(),
                reason=reason[:300],
                planned=planned,
                snapshots=(
                    *(made.kept.held() if made is not None and made.kept is not None else ()),
                    *self.taking.recutting.held(),
                ),
                twins=self._twins,
                prepared=self.own.prepared,
                part=self.taking.recutting.part(made),
                buildable=self._buildable,
                built=self.own.built,
                moves=made is not None and made.moves,
                torn=self._torn if self.own.validity == "torn" else "",
            )
        )

    def _wait_for_view(self, reason: str, *, planned: bool) -> View | Stop:
        self._say_ready(reason, planned=planned)
        self.faults.point("waiting")
        needed = bool(self.own.generation)
        while True:
            view = self.reporter.place(needed=needed)
            if isinstance(view, Build):
                self.own.built = view.rank
                self.taking.warm_up()
                self._say_ready(reason, planned=planned)
                continue
            if isinstance(view, Stop) or view.rank >= 0:
                self.taking.withdraw()
                return view
            self._give(view)
            needed = False

    def _give(self, view: View) -> None:
        self.own.generation, self.own.gives = view.generation, True
        self.faults.step = view.resume_step
        self.faults.point("give")
        if view.plan.cut and self.training is not None:
            self.taking.withdraw()
            self.taking.recutting.give(view, self.training)
        elif self.taking.use_own(view.resume_step):
            self.taking.offer(view)

    def _enter(self, view: View) -> None:
        """Become a rank of a view. Raises BrokenError when somebody else is lost, or what the program raises."""
        made = self.taking.made
        self._become(view)
        self.reporter.progress("recover")
        self.faults.point("view")
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        if view.resume_step < made.state.settled:
            raise DivergenceError(
                f"the training goes back to step {view.resume_step}, and this process has left the loop that ended "
                f"with step {made.state.settled}: what stands behind that loop would not run again; give it to "
                "run.steps(total, between=...) of one loop, or start the job again where it has a checkpoint"
            )
        self.peers.check()
        if self.recorded is not None:
            self._making.check(view)
        self.taking.recutting.enter(view, made)
        if made.sharded is not None:
            self.agreement.meet(view, made.sharded, made)
        try:
            digest = self._take_and_connect(view, made)
            self.taking.take_stored(view)
            self.faults.point("confirm")
            if view.plan.cut:
                self.faults.point("joined")
            self.agreement.confirm(made, digest=digest)
            self.own.validity = "valid"
            if view.plan.cut:
                self.faults.point("resized")
        finally:
            self.taking.withdraw()

    def _take_and_connect(self, view: View, made: Training) -> int | None:
        """Have the state, and all peers; a digest of the state, once there is one."""

        def take() -> int | None:
            self.taking.take(view)
            self.reporter.progress("recover")
            self.taking.offer(view)
            # While others still take theirs: once all are connected, each waits for this.
            return made.state.digest() if self.own.validity == "valid" and self.own.world_size > 1 else None

        def connect() -> None:
            self.faults.point("connect")
            self._connect(made, fresh=view.plan.source == "fresh")

        if view.plan.source != "peer" or made.sharded is not None or "nccl" in self.peers.backend:
            digest = take()
            connect()
            return digest
        # Nothing of a replica's state has to do with its groups, so it is copied meanwhile.
        with ThreadPoolExecutor(1, thread_name_prefix="holdfast-take") as aside:
            taken = aside.submit(take)
            connect()
            return taken.result()

    def _become(self, view: View) -> None:
        own = self.own
        own.generation, own.rank, own.world_size = view.generation, view.rank, view.world_size
        own.lost_steps, own.gives, own.built = view.plan.lost_steps, False, -1
        own.recovered = own.recovered or view.plan.source in ("memory", "peer", "buddy", "parts")
        self.peers.entered()
        self.faults.rank, self.faults.step = view.rank, view.resume_step

    def _connect(self, made: Training, *, fresh: bool) -> None:
        self._set_environment()
        if self.own.world_size == 1 and made.sharded is None:
            return
        self.peers.open(self.reporter.store("train" if made.sharded is not None else ""))
        if made.sharded is not None:
            made.sharded.renew()
        elif fresh:
            self.agreement.begin_equal(made)

    def _set_environment(self) -> None:
        own = self.own
        os.environ.update(RANK=str(own.rank), WORLD_SIZE=str(own.world_size), HOLDFAST_GENERATION=str(own.generation))

    def _let_go(self, *, first: bool) -> None:
        """
        End the groups. Nothing of the training may hold one: its end would wait, and the first failure would find it.

        Raises:
            UnsupportedError: before the first step, when the script holds one.
        """
        found: list[str] = []
        made = self.training
        for part in (made.sharded, made.kept, made.stored) if made is not None else ():
            if part is not None:
                part.leave()

        def look(groups: list[Any]) -> None:
            found.extend(holders(groups))

        self.peers.close(look=look if first else None)
        if found:
            beside = sharded_beside(made.state.model) if made is not None else []
            error = UnsupportedError(_sharded_beside(beside) if beside else _held(found))
            self.reporter.refuse(error)
            raise error


def _sharded_beside(names: list[str]) -> str:
    return (
        f"{', '.join(names)} is sharded by fully_shard, and not in the model that Run has, so that its groups are not "
        "made again after a failure; put both into one torch.nn.ModuleDict and give Run that, with an optimizer of the "
        "parameters that are trained"
    )


def _held(places: list[str]) -> str:
    return (
        f"the script holds process groups, and would wait in old ones after the first failure: {'; '.join(places)}. "
        "Keep the DeviceMesh and ask it for its group at each use (mesh.get_group(name)); give a pipeline schedule to "
        "Run(pipeline=...)"
    )
