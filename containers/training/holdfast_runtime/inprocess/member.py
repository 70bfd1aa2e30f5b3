"""
This process as a member of the job: out of a broken generation at once, into the next one with the right state.

The order is always the same. Close the groups, so that no neighbour waits for this process. Report. Wait for a view.
Take the state from where the view says. Connect. Confirm with all others that step and parameters are equal.

In a sharded job the script makes its groups and its model between ``begin`` and the first ``join``: a newcomer makes
them alone, while the others wait for nothing but its state.
"""

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Store

from holdfast_runtime.boxes import Reach
from holdfast_runtime.control import (
    ControlClient,
    Deadlines,
    Fault,
    Finished,
    HandOver,
    LauncherLostError,
    Leave,
    Phase,
    Progress,
    Raised,
    Ready,
    Stop,
    Survives,
    View,
)
from holdfast_runtime.faults import Injector
from holdfast_runtime.groups import Group, Recorded, UnsupportedError, holders
from holdfast_runtime.inprocess import vote
from holdfast_runtime.inprocess.errors import (
    BrokenError,
    DivergenceError,
    StoppedError,
    described,
    of_peers,
    on_uncaught,
)
from holdfast_runtime.inprocess.state import TrainingState
from holdfast_runtime.inprocess.tiers import CheckpointTier
from holdfast_runtime.membership import UNKNOWN, State
from holdfast_runtime.patience import Where
from holdfast_runtime.sharded import (
    Facts,
    Joined,
    Kept,
    Sharded,
    Stored,
    check_length,
    disagreement,
    exchange,
    gathered,
    survives,
    twins,
)
from holdfast_runtime.snapshots import Checkpoints
from holdfast_runtime.store import GenerationStore
from holdfast_runtime.transfer import Offer, Server, TransferError, receive

RELEASE_EVERY_S = 0.02
NOTICE_S = 0.1
"""How long after an error of a collective the launcher may take to say that somebody is gone."""
LOOK_UP = timedelta(seconds=0.2)
REPLICA = "replica"
PEERS = (RuntimeError, OSError, TransferError)
"""What a collective or a copy raises when a peer dies in it."""


class Member:
    """
    One process of a job with a launcher.

    Args:
        state: Default: none yet, ``train`` brings it.
        backend: Of torch.distributed.
        tier: Default: none, there is no state but that of processes.
        recorded: Groups of the script, which are made again. Default: they are its own affair.
    """

    def __init__(
        self,
        state: TrainingState | None,
        *,
        backend: str,
        tier: CheckpointTier | None,
        recorded: Recorded | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.faults = Injector.from_environment(environment)
        self.deadlines = Deadlines.from_environment(environment)
        self.generation = 0
        self.rank = -1
        self.world_size = 0
        self.committed_step = 0
        self.validity: State = "none"
        self.lost_steps = 0
        self.prepared = False
        """Whether this process has all that the update after committed_step takes, and can do it alone."""
        self.finish_update: Callable[[], None] = lambda: None
        """Does that update."""
        self.left_cleanly = True
        """Whether nothing of an earlier group is at work any more."""
        self.at_boundary = False
        """Whether all ranks leave before the next step; each of them knows it from the votes of the last one."""
        self._hand_over = HandOver(epoch=0, after_step=0)
        self._gives = False
        self._begun: View | None = None
        self._training = state
        self._tier: CheckpointTier | Checkpoints | None = tier
        self.sharded: Sharded | None = None
        self.kept: Kept | None = None
        self.stored: Stored | None = None
        self._survive: Reach = "nothing"
        self.recorded = recorded
        self._group = Group(backend=backend, recorded=recorded)
        self._leave_generation = 0
        self._left = threading.Event()
        self._left.set()
        self._token = environment.get("HOLDFAST_TOKEN", "")
        self._server = Server(token=self._token, faults=self.faults, deadline_s=self.deadlines.transfer)
        control = ControlClient.from_environment(
            environment, on_leave=self._leave_asked, on_hand_over=self._hand_over_asked
        )
        if control is None:
            raise LookupError("there is no launcher")
        self._control = control
        self._told_of: BaseException | None = None
        self._told = ""
        on_uncaught(self.uncaught)

    @property
    def _state(self) -> TrainingState:
        assert self._training is not None
        return self._training

    def train(
        self,
        state: TrainingState,
        *,
        tier: CheckpointTier | Checkpoints | None,
        sharded: Sharded,
        kept: Kept | None,
        stored: Stored | None,
        survive: Reach = "nothing",
    ) -> None:
        """The script has made its model; ``join`` follows."""
        self._training, self._tier, self.sharded, self.kept, self.stored = state, tier, sharded, kept, stored
        self._survive = survive

    def check_length(self, total: int) -> None:
        """Raises UnsupportedError, and tells the job, where it would end before its first snapshot."""
        if self.kept is not None:
            try:
                check_length(self.kept.every, total=total)
            except UnsupportedError as error:
                self.refuse(error)
                raise

    def begin(self) -> None:
        """
        Until this process has a rank, and groups in which the script can make its model.

        Those are the real ones where all ranks begin. A newcomer has groups in which it is alone, with the names of the
        real ones: the others do not make their models again, and would not answer.

        Raises:
            StoppedError: the launcher has ended the job, or this spare was not needed.
        """
        reason = ""
        while True:
            view = self._wait_for_view(reason, planned=False)
            if isinstance(view, Stop):
                raise StoppedError(view.reason, view.exit_code)
            self._become(view)
            self.progress("recover")  # making a model takes as long as it takes
            try:
                self._open_to_make(view)
            except BrokenError as error:
                self._group.close()
                self._left.set()
                reason = f"generation {self.generation} was not reached: {error}"
                if not self.must_leave:
                    self._control.send(Fault(reason=reason[:300]))
            else:
                self._begun = view
                return

    def _open_to_make(self, view: View) -> None:
        """Groups in which the script makes its model. Raises BrokenError."""
        self._set_environment()
        if view.plan.source != "fresh" or self.world_size == 1:
            self._group.open_alone(rank=self.rank, world_size=self.world_size)
            return
        with _with_peers("the ranks did not connect"):
            self._open(self._store("make"))
        self.check()

    @property
    def must_leave(self) -> bool:
        """Whether the launcher has ended the generation that this process is in."""
        return self._leave_generation > self.generation

    def told_to_leave(self, *, within_s: float = NOTICE_S) -> bool:
        """Whether somebody is gone: the launcher says so a few milliseconds after a collective has failed."""
        end = time.monotonic() + within_s
        while not self.must_leave and time.monotonic() < end:
            time.sleep(0.002)
        return self.must_leave

    def check(self) -> None:
        """Raises BrokenError when the generation is over."""
        if self.must_leave:
            raise BrokenError(f"generation {self.generation} is over")

    def wait(self, work: Any) -> None:
        """
        Until a collective is done.

        Rarely a thread of gloo sleeps on although all of its connections are broken. So this looks up now and then.

        Raises:
            BrokenError: it failed, or the generation is over.
        """
        with _with_peers("a collective failed"):
            if self._group.backend == "nccl":
                work.wait()
                return
            while not has_ended(work):
                self.check()

    def progress(self, phase: Phase, *, loss: float | None = None) -> None:
        """Tell the launcher that this process is alive."""
        known = loss if loss is not None and math.isfinite(loss) else None
        self._control.send(Progress(step=self.committed_step, phase=phase, loss=known))

    def leaves_after(self, step: int) -> bool:
        """Whether this process was told that the ranks leave between two steps, and would do so after this one."""
        asked = self._hand_over
        return asked.epoch == self.generation and step >= asked.after_step

    def hand_over(self) -> bool:
        """
        Leave between two steps and join the next generation, as ``join`` does.

        All ranks have finished the same step: none is left in the middle of one by a neighbour that is quicker.
        """
        if self.world_size > 1:
            # One that is lost just now, or the end of this generation: what all have finished is finished.
            with contextlib.suppress(BrokenError), _with_peers("not all ranks have finished the step"):
                self.progress("vote")
                self.wait(dist.all_reduce(torch.ones(1, device=self._device), async_op=True))
        return self.join(f"the ranks leave after step {self.committed_step}", planned=True)

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
        begun, self._begun = self._begun, None
        while True:
            self._let_go(first=begun is not None)
            if begun is not None and begun.plan.source == "fresh" and self._newest_checkpoint() >= 0:
                reason, begun = f"there is a checkpoint of step {self._newest_checkpoint()}", None
            if begun is not None and not self.must_leave:
                view: View | Stop = begun
            else:
                self._left.set()
                if reason and reason != self._told and not self.must_leave and not planned:
                    self._control.send(Fault(reason=reason.splitlines()[0][:300]))
                self.faults.point("ready")
                view = self._wait_for_view(reason, planned=planned)
            begun, planned = None, False
            if isinstance(view, Stop):
                if view.exit_code == 0 and not self._gives:
                    return False
                raise StoppedError(view.reason, view.exit_code)
            try:
                self._enter(view)
            except (DivergenceError, UnsupportedError) as error:
                self.refuse(error)
                raise
            except BrokenError as error:
                reason = f"generation {self.generation} was not reached: {error}"
            except Exception as error:  # noqa: BLE001 - the program's own, in what it loads or puts back
                reason = self.raised(error, step=view.resume_step, where="recovery")
            else:
                self.progress("other")
                return True

    def finish(self) -> bool:
        """Whether all ranks have done the last update; else there are steps to do again."""
        try:
            self.check()
            if self.world_size > 1:
                self.progress("vote")
                self.wait(dist.all_reduce(torch.ones(1, device=self._device), async_op=True))
        except BrokenError as error:
            if self.join(str(error)):
                return False
        self._control.send(Finished(committed_step=self.committed_step))
        return True

    def raised(self, error: BaseException, *, step: int, where: Where) -> str:
        """
        Tell the launcher of an exception of the program; a sentence about it.

        Args:
            step: Updates that were finished when the step began.
            where: After the update of the step the process ends; otherwise it joins to try again.
        """
        what, trace = described(error)
        self._control.send(Raised(step=step, epoch=self.generation, what=what, traceback=trace, where=where))
        self._told_of, self._told = error, f"the program raised {what}"
        return self._told

    def uncaught(self, error: BaseException) -> bool:
        """The program ends with an exception. True if the launcher has said all that there is to say."""
        if error is self._told_of and isinstance(error, UnsupportedError):
            return True
        if error is not self._told_of and isinstance(error, Exception) and not of_peers(error):
            with contextlib.suppress(LauncherLostError):
                self.raised(error, step=self.committed_step, where="after")
        return False

    def refuse(self, error: DivergenceError | UnsupportedError) -> None:
        """The job must end."""
        self._told_of = error
        self._control.send(Fault(reason=str(error), fatal=True))

    def _wait_for_view(self, reason: str, *, planned: bool) -> View | Stop:
        self._control.send(
            Ready(
                committed_step=self.committed_step,
                state=self.validity,
                port=self._server.port,
                checkpoint_step=self._newest_checkpoint(),
                reason=reason[:300],
                planned=planned,
                snapshots=tuple(self.kept.held()) if self.kept is not None else (),
                twins=self.sharded.twins if self.sharded is not None else None,
                prepared=self.prepared,
            )
        )
        self.faults.point("waiting")
        # A spare waits as long as the job needs none; when its launcher ends, so does it.
        deadline_s = self.deadlines.view + self.deadlines.leave if self.generation else float("inf")
        while True:
            view = self._control.receive_view(deadline_s=deadline_s, after=self.generation)
            if isinstance(view, Stop) or view.rank >= 0:
                self._server.withdraw(REPLICA)
                return view
            self._give(view)
            deadline_s = float("inf")

    def _newest_checkpoint(self) -> int:
        if self._training is None:
            return UNKNOWN
        return self._tier.newest_step() if self._tier is not None else -1

    def _give(self, view: View) -> None:
        """Another process has the rank of this one: let it have the state, until the launcher ends this process."""
        self.generation, self._gives = view.epoch, True
        self.faults.step = view.resume_step
        self.faults.point("give")
        if self._use_own(view.resume_step):
            self._server.offer(REPLICA, Offer(epoch=view.epoch, step=view.resume_step, state=self._state.flat))

    def _enter(self, view: View) -> None:
        """Become a rank of a view. Raises BrokenError when somebody else is lost, or what the program raises."""
        self._become(view)
        self.progress("recover")
        self.faults.point("view")
        self.check()
        if self.sharded is not None:
            self._meet(view, self.sharded)
        self._take_state(view)
        self.progress("recover")
        self._server.offer(REPLICA, Offer(epoch=view.epoch, step=view.resume_step, state=self._state.flat))
        try:
            self.faults.point("connect")
            self._connect(fresh=view.plan.source == "fresh")
            self._join_stored(view)
            self.faults.point("confirm")
            self._confirm()
            self.validity = "valid"
        finally:
            self._server.withdraw(REPLICA)

    def _become(self, view: View) -> None:
        """Have the rank of a view; from now on the thread of the control socket may break its groups."""
        self.generation, self.rank, self.world_size = view.epoch, view.rank, view.world_size
        self.lost_steps = view.plan.lost_steps
        self._left.clear()
        self.faults.rank, self.faults.step = view.rank, view.resume_step

    def _meet(self, view: View, sharded: Sharded) -> None:
        """All ranks tell what they have, and see whether they can train together. Raises UnsupportedError."""
        own = Facts(
            node=int(os.environ.get("HOLDFAST_NODE", "0")),
            host=view.hosts[view.rank],
            keeper=self.kept.port if self.kept is not None else 0,
            every=self.kept.every if self.kept is not None else -1,
            held=tuple(self.kept.held()) if self.kept is not None else (),
            groups=sharded.recorded.digest(),
            holds=sharded.holds,
            torch=torch.__version__,
            rack=os.environ.get("HOLDFAST_RACK", ""),
        )
        with _with_peers("not all ranks have told what they have"):
            facts = exchange(self._store("meet"), own, rank=view.rank, world_size=view.world_size)
        if problem := disagreement(facts):
            raise UnsupportedError(problem)
        sharded.twins = twins(facts, view.rank)
        if self.kept is not None:
            place = Joined(rank=view.rank, generation=view.epoch, resume_step=view.resume_step)
            self.kept.join(facts, place, agree=self._smallest)
        found = survives(facts, snapshots=self.kept is not None and self.kept.needed)
        if view.plan.source == "fresh" and (problem := found.refusal(self._survive)):
            raise UnsupportedError(problem)
        self._control.send(Survives(sentence=str(found), reach=found.reach, short=found.short))

    def _use_own(self, step: int) -> bool:
        """Whether this process has the state of a step in use, after an update that it can do alone if need be."""
        if self.validity != "valid":
            return False
        if self.prepared and self.committed_step + 1 == step:
            self.finish_update()
            return True
        self.prepared = False
        if self.committed_step == step:
            self._state.put_back()
            return True
        return False

    def _take_state(self, view: View) -> None:
        source = view.plan.source
        if source in ("memory", "buddy"):
            if source == "memory" and self._use_own(view.resume_step):
                return
            if self.kept is None:
                raise BrokenError(f"this process has step {self.committed_step}, and not {view.resume_step}")
            self.progress("copy")
            self.validity, self.prepared = "torn", False
            with _with_peers("the snapshot did not arrive"):
                self.kept.restore(view.resume_step, view.plan.donors)
            self.committed_step, self.validity = view.resume_step, "valid"
            return
        self.prepared = False
        if source == "checkpoint" and self.stored is not None:
            self.validity = "torn"  # it is loaded by all ranks together
            return
        if source == "fresh":
            # Rank 0's parameters come when all are connected. Until that is confirmed there is nothing to count on.
            self.committed_step, self.validity = view.resume_step, "none"
            return
        self.progress("copy")
        self.validity = "torn"
        if source == "checkpoint":
            self._load_checkpoint(view)
        else:
            self._receive(view)
        self.committed_step, self.validity = view.resume_step, "valid"

    def _receive(self, view: View) -> None:
        places = self._state.places()

        def place(number: int, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor | None:
            own = places[number] if number < len(places) else None
            return own if own is not None and own.dtype == dtype and tuple(own.shape) == shape else None

        with _with_peers("the state did not arrive"):
            flat = receive(
                [(view.hosts[donor], view.ports[donor]) for donor in view.plan.donors],
                epoch=view.epoch,
                step=view.resume_step,
                into=place,
                token=self._token,
                deadline_s=self.deadlines.transfer,
                check=self.check,
                faults=self.faults,
            )
        self._state.load(flat)

    def _join_stored(self, view: View) -> None:
        """Sharded checkpoints take groups; so they come after those."""
        if self.stored is None:
            return
        with _with_peers("the checkpoints could not be looked at"):
            self.stored.join(agree=self._smallest)
            if view.plan.source == "checkpoint":
                self.progress("copy")
                self.stored.load(view.resume_step)
        if view.plan.source == "checkpoint":
            self.committed_step = view.resume_step
            self._state.noted_nothing()

    def save_stored(self, *, last: bool) -> None:
        """
        Begin to write a sharded checkpoint, on all ranks after the same update.

        Args:
            last: Nothing follows: wait for it, and for nobody who is lost meanwhile.

        Raises:
            BrokenError: a rank is gone.
        """
        assert self.stored is not None
        try:
            with _with_peers("the checkpoint was not begun"):
                self.stored.save(self.committed_step)
            if last:
                self.stored.wait()
        except BrokenError:
            if not last:
                raise

    def _load_checkpoint(self, view: View) -> None:
        if self._tier is None or isinstance(self._tier, Checkpoints):
            raise BrokenError("the view asks for a checkpoint and this script has none")
        self._state.load_tree(self._tier.load(view.resume_step, rank=view.rank))

    def _connect(self, *, fresh: bool) -> None:
        self._set_environment()
        if self.world_size == 1 and self.sharded is None:
            return
        with _with_peers("the ranks did not connect"):
            self._open(self._store("train" if self.sharded is not None else ""))
        self.check()
        if self.sharded is not None:
            self.sharded.renew()
        elif fresh:
            seed = torch.tensor(self._state.seed, device=self._device)
            for tensor in (seed, *self._state.places()):
                with _with_peers("the first parameters did not arrive"):
                    self.wait(dist.broadcast(tensor, src=0, async_op=True))
            self._state.seed = int(seed)

    def _set_environment(self) -> None:
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(self.world_size), HOLDFAST_EPOCH=str(self.generation))

    def _store(self, purpose: str = "") -> GenerationStore:
        """One for each purpose: groups may be made more than once in a generation."""
        deadline_s = self.deadlines.connect
        return GenerationStore(self._control.keys, generation=self.generation, deadline_s=deadline_s, purpose=purpose)

    def _open(self, store: Store) -> None:
        self._group.open(
            store=store,
            rank=self.rank,
            world_size=self.world_size,
            deadline_s=self.deadlines.connect,
            wait_s=self.deadlines.progress + self.deadlines.ready,
            leaving=lambda: self.must_leave,
        )

    def _let_go(self, *, first: bool) -> None:
        """
        End the groups. Nothing of the training may hold one: its end would wait, and the first failure would find it.

        Raises:
            UnsupportedError: before the first step, when the script holds one.
        """
        found: list[str] = []
        if self.sharded is not None:
            self.sharded.let_go()
        if self.kept is not None:
            self.kept.leave()
        if self.stored is not None:
            self.stored.leave()

        def look(groups: list[Any]) -> None:
            found.extend(holders(groups))

        cleanly = self._group.close(look=look) if first else self._group.close()
        self.left_cleanly = cleanly and self.left_cleanly
        if found:
            error = UnsupportedError(
                f"the script holds process groups, and would wait in old ones after the first failure: "
                f"{'; '.join(found)}. Keep the DeviceMesh and ask it for its group at each use (mesh.get_group(name)); "
                "give a pipeline schedule to Run(pipeline=...)"
            )
            self.refuse(error)
            raise error

    def _smallest(self, numbers: Sequence[int]) -> Sequence[int]:
        """The smallest of each number over all ranks. Raises BrokenError."""
        tensor = torch.tensor(numbers, dtype=torch.int64)
        if self.world_size > 1:
            self.wait(dist.all_reduce(tensor, op=dist.ReduceOp.MIN, async_op=True))
        return [int(number) for number in tensor]

    def _confirm(self) -> None:
        """All ranks are here, at the same step and with the same parameters."""
        if self.world_size == 1:
            return
        sharded = self.sharded
        tail = torch.zeros(vote.LENGTH, device=self._device)
        digest = self._state.digest()
        vote.cast(tail, step=self.committed_step, digest=0 if sharded is not None else digest, loss=0.0)
        with _with_peers("the ranks could not be compared"):
            self.wait(dist.all_reduce(tail, async_op=True))
            if sharded is not None:
                digests = gathered(digest, world_size=self.world_size, wait=self.wait)
        self.judge(vote.count(tail, world_size=self.world_size))
        if sharded is not None:
            self.compare(digests)
        if self.kept is not None:
            self.kept.take(self.committed_step)

    def compare(self, digests: Sequence[int]) -> None:
        """Whether twins are equal, of digests by rank. Raises DivergenceError."""
        assert self.sharded is not None
        odd = [twin for twin in self.sharded.twins if digests[twin] != digests[self.rank]]
        if odd:
            start = "at the start; seed all ranks the same before the model is made" if not self.committed_step else ""
            raise DivergenceError(
                f"ranks {self.rank} and {odd[0]} have the same part of the model, and their parameters are different "
                + (start or f"at step {self.committed_step}")
            )

    def judge(self, outcome: vote.Outcome) -> None:
        """Raises BrokenError when a rank is missing, DivergenceError when ranks are not equal."""
        if outcome.ready != self.world_size:
            raise BrokenError(f"{outcome.ready} of {self.world_size} ranks are ready")
        if not outcome.same_step:
            raise DivergenceError(f"ranks are at different steps; rank {self.rank} is at {self.committed_step}")
        if not outcome.same_digest:
            raise DivergenceError(f"the parameters of the ranks are different at step {self.committed_step}")

    def _hand_over_asked(self, message: HandOver) -> None:
        """In the thread of the control socket; what follows is in the votes."""
        self._hand_over = message

    def _leave_asked(self, leave: Leave) -> None:
        """In the thread of the control socket: free the main thread from wherever it waits for a peer."""
        self._leave_generation = max(self._leave_generation, leave.epoch)
        if not self._left.is_set():
            self._group.release()
            threading.Thread(target=self._release_until_left, name="holdfast-release", daemon=True).start()

    def _release_until_left(self) -> None:
        """Connections that are being made when it is time to leave come after the first release."""
        end = time.monotonic() + self.deadlines.leave
        while not self._left.wait(RELEASE_EVERY_S) and time.monotonic() < end and self.must_leave:
            self._group.release()

    @property
    def _device(self) -> torch.device:
        return torch.device("cuda") if self._group.backend == "nccl" and self.sharded is None else torch.device("cpu")


@contextlib.contextmanager
def _with_peers(what: str) -> Iterator[None]:
    """Around what needs other processes, and nothing of the program: its errors mean that one of them is gone."""
    try:
        yield
    except BrokenError:
        raise
    except PEERS as error:
        raise BrokenError(f"{what}: {error}") from error


def has_ended(work: Any) -> bool:
    """Whether a collective has ended, after a while. Raises its error."""
    try:
        work.wait(LOOK_UP)
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # its own error, or none
    return True
