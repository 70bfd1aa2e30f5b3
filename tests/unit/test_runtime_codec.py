"""Large values in messages: a text inside, written and read once while it is the same."""

from dataclasses import dataclass, replace

import pytest

from holdfast_runtime.control import Codec, MessageError
from holdfast_runtime.launcher.links import LINK
from holdfast_runtime.membership import Accept, Ballot, Commit, Promise, RankStatus, Slot, Status, View


@dataclass(frozen=True)
class Inner:
    number: int
    many: tuple[int, ...] = ()
    maybe: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Large:
    inner: tuple[Inner, ...]
    name: str = ""


@dataclass(frozen=True)
class Said:
    large: Large
    before: Large | None = None


CODEC: Codec[Said] = Codec(Large, said=Said)
VIEW = View(
    epoch=2,
    nodes=(7, -1),
    ranks=(
        RankStatus(slot=Slot(0, 0), rank=0, committed_step=5, state="valid", twins=(), snapshots=((0, 4),), host="a"),
    ),
    sources=("memory",),
    donors=((),),
)


@pytest.mark.parametrize(
    "message",
    [
        Said(Large(())),
        Said(Large((Inner(1), Inner(2, (3,), ()), Inner(0, (), (4,))), name="x"), before=Large((Inner(9),))),
    ],
    ids=["all as it is where nothing is said", "all else"],
)
def test_a_value_that_is_a_text_arrives_as_it_was(message: Said) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        Commit(VIEW),
        Accept(2, Ballot(1, 0), VIEW),
        Promise(2, Ballot(1, 0), True, Status(node=0, incarnation=7, ranks=VIEW.ranks), (Ballot(0, 1), VIEW)),
        Promise(2, Ballot(1, 0), True, Status(node=0, incarnation=7), None),
    ],
    ids=lambda message: type(message).__name__.lower(),
)
def test_a_view_arrives_as_it_was_in_every_message_that_has_one(message: Commit | Accept | Promise) -> None:
    assert LINK.decode(LINK.encode(message)) == message


def test_the_same_view_is_read_once_and_another_one_is_another_one() -> None:
    accepted = LINK.decode(LINK.encode(Accept(2, Ballot(1, 0), VIEW)))
    committed = LINK.decode(LINK.encode(Commit(VIEW)))
    other = LINK.decode(LINK.encode(Commit(replace(VIEW, resume_step=6))))

    assert isinstance(accepted, Accept)
    assert isinstance(committed, Commit)
    assert isinstance(other, Commit)
    assert committed.view is accepted.view
    assert other.view == replace(VIEW, resume_step=6)


@pytest.mark.parametrize(
    "large",
    [
        '{"inner":[]}',
        '"{"',
        '"[]"',
        '"{\\"inner\\":[{\\"number\\":\\"1\\"}]}"',
        '"{\\"inner\\":[],\\"more\\":1}"',
        '"{}"',
    ],
    ids=["no text", "no JSON", "no object", "another type", "a field more", "a field less"],
)
def test_a_text_that_is_no_such_value_is_refused(large: str) -> None:
    with pytest.raises(MessageError, match=r"said\.large"):
        CODEC.decode(f'{{"type":"said","large":{large},"before":null}}'.encode())
