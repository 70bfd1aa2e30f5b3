"""The parts of the state when a job changes its size: kept as they were until all have theirs, given, and put in."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from torch import Tensor

from holdfast_runtime.control import Deadlines, View
from holdfast_runtime.elastic import Part, Rows, complete, put_in, taken_out
from holdfast_runtime.faults import Injector
from holdfast_runtime.groups import UnsupportedError
from holdfast_runtime.inprocess.errors import BrokenError
from holdfast_runtime.inprocess.member.peers import Peers, with_peers
from holdfast_runtime.inprocess.member.standing import Standing, Training
from holdfast_runtime.inprocess.member.telling import Telling
from holdfast_runtime.membership import PARTS, Snapshot, part_number
from holdfast_runtime.sharded import Sharded
from holdfast_runtime.transfer import Flat, Offer, Server, receive

AT_ONCE = 8
"""Parts that a rank receives at the same time."""


class Recutting:
    """
    Of one process. Nothing is done where the size never changes.

    Args:
        use_own: Whether this process trains with the state of a step, or can after an update that needs nobody.
    """

    def __init__(
        self,
        own: Standing,
        *,
        peers: Peers,
        reporter: Telling,
        server: Server,
        deadlines: Deadlines,
        faults: Injector,
        token: str,
        use_own: Callable[[int], bool],
    ) -> None:
        self._own = own
        self._peers = peers
        self._reporter = reporter
        self._server = server
        self._deadlines = deadlines
        self._faults = faults
        self._token = token
        self._use_own = use_own
        self._held: dict[int, Part] = {}
        """By their numbers: parts of a size that the job had, until there is a newer state."""
        self._offered: list[str] = []

    def part(self, made: Training | None) -> int:
        """The number of the part that this process trains with; -1 where the size never changes."""
        if made is None or not made.elastic or made.sharded is None:
            return -1
        return part_number(*made.sharded.place)

    def held(self) -> list[Snapshot]:
        return [(number, part.step) for number, part in self._held.items()]

    def forget(self) -> None:
        self._held.clear()

    def withdraw(self) -> None:
        for name in self._offered:
            self._server.withdraw(name)
        self._offered.clear()

    def give(self, view: View, made: Training) -> None:
        rows = Rows.of(made.state.model)
        for number, part in self._collected(view, made).items():
            for target in range(view.world_size):
                name = f"part {number} for {target}"
                state: Callable[[], Flat] = partial(taken_out, part, rows, target=target, size=view.world_size)
                self._server.offer(name, Offer(generation=view.generation, step=view.resume_step, state=state))
                self._offered.append(name)

    def enter(self, view: View, made: Training) -> None:
        """
        Offer what is here, and have room for what this process is to have.

        A spare that was built for another rank becomes that one, or is cut anew, too.

        Raises:
            UnsupportedError: there is nothing to go on from.
        """
        sharded = made.sharded
        if sharded is None:
            return
        if view.plan.cut:
            self.give(view, made)
        if sharded.place == (view.rank, view.world_size):
            return
        if view.plan.source == "fresh":
            raise UnsupportedError(
                "the number of ranks changed before the first step, when no rank has the model; start the job again"
            )
        self._faults.point("cut")
        self._own.validity, self._own.prepared = "torn", False
        if sharded.place[1] == view.world_size and sharded.moved(view.rank):
            return
        self._peers.open_alone()
        try:
            sharded.recut(made.state.optimizer)
            sharded.leave()
        finally:
            self._peers.close()

    def take(self, view: View, made: Training) -> None:
        """Have this rank's part, of all parts that there are. Raises BrokenError."""
        own, state, plan = self._own, made.state, view.plan
        rows = Rows.of(state.model)
        self._reporter.progress("copy")
        self._faults.point("parts")
        own.validity, own.prepared = "torn", False
        extra: tuple[bytes, dict[str, Tensor]] | None = None
        with with_peers("the parts did not arrive"), ThreadPoolExecutor(AT_ONCE) as pool:
            sources = rows.sources(view.rank, old=plan.cut, new=view.world_size)
            for flat in pool.map(lambda source: self._part(view, rows, source), sources):
                rest = put_in(
                    flat, rows, rank=view.rank, size=view.world_size, model=state.model, optimizer=state.optimizer
                )
                extra = extra or rest
        if extra is None:
            raise BrokenError("no part has what is no tensor")
        complete(state.model, state.optimizer, extra[0])
        state.shard().load_extra(*extra)
        own.committed_step, own.validity = view.resume_step, "valid"
        self._faults.point("placed")

    def _part(self, view: View, rows: Rows, source: int) -> Flat:
        """Get this rank's share of one part, from here or the first donor that has it whole."""
        number = part_number(source, view.plan.cut)
        part = self._held.get(number)
        if part is not None and part.step == view.resume_step:
            return taken_out(part, rows, target=view.rank, size=view.world_size)
        return receive(
            [(view.hosts[donor], view.ports[donor]) for donor in view.plan.parts[source] if donor != view.rank],
            name=f"part {number} for {view.rank}",
            generation=view.generation,
            step=view.resume_step,
            token=self._token,
            deadline_s=self._deadlines.transfer,
            check=self._peers.check,
            faults=self._faults,
        )

    def _collected(self, view: View, made: Training) -> dict[int, Part]:
        cut, step = view.plan.cut, view.resume_step
        found = {n: part for n, part in self._held.items() if part.step == step and n // PARTS == cut}
        live, sharded = self.part(made), made.sharded
        if sharded is not None and live // PARTS == cut and live not in found and self._use_own(step):
            found[live] = _live(made, sharded, step=step)
        for rank in range(cut):
            number = part_number(rank, cut)
            kept = made.kept.find(number, step) if made.kept is not None and number not in found else None
            if kept is not None:
                found[number] = Part(rank, cut, step, *kept)
        self._held = found
        return found


def _live(made: Training, sharded: Sharded, *, step: int) -> Part:
    shard = made.state.shard()
    extra, tensors = shard.pack()
    moving = {name: tensor.clone() for name, tensor in {**shard.buffers(), **tensors}.items()}
    whole = {
        name: tensor.clone() if tensor.dim() == 0 else tensor
        for name, tensor in {**shard.weights(), **shard.steady()}.items()
    }  # the step counters of the optimizer go on
    return Part(*sharded.place, step, {**whole, **moving}, extra)
