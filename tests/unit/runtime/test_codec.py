"""Large values in messages: a text inside, written and read once while it is the same."""

import base64
import json
import zlib
from dataclasses import dataclass, replace

import pytest

from holdfast_runtime.control import LONGEST_TEXT_BYTES, Codec, MessageError
from holdfast_runtime.launcher.links import LINK
from holdfast_runtime.membership import Accept, Ballot, Commit, Promise, RankStatus, Slot, Status, Unread, View


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


CODEC: Codec[Said] = Codec({Large: Large}, said=Said)
VIEW = View(
    generation=2,
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


def test_a_view_arrives_as_it_was_in_every_message_that_has_one() -> None:
    promise = Promise(2, Ballot(1, 0), True, Status(node=0, incarnation=7, ranks=VIEW.ranks), None)

    committed = LINK.decode(LINK.encode(Commit(VIEW)))
    accept = LINK.decode(LINK.encode(Accept(2, Ballot(1, 0), VIEW)))
    promised = LINK.decode(LINK.encode(replace(promise, accepted=(Ballot(0, 1), VIEW))))

    assert committed == Commit(VIEW)
    assert isinstance(accept, Accept)
    assert accept.view.read() == VIEW
    assert isinstance(promised, Promise)
    assert promised.accepted is not None
    assert promised.accepted[1].read() == VIEW
    assert LINK.decode(LINK.encode(promise)) == promise


def test_a_view_that_is_only_passed_on_is_not_read_and_arrives_as_it_was() -> None:
    accept = LINK.decode(LINK.encode(Accept(2, Ballot(1, 0), VIEW)))
    assert isinstance(accept, Accept)
    assert isinstance(accept.view, Unread)
    promise = Promise(2, Ballot(1, 0), True, Status(node=0, incarnation=7), (Ballot(1, 0), accept.view))

    passed_on = LINK.decode(LINK.encode(promise))

    assert passed_on == promise


def test_a_text_that_is_read_later_and_is_no_view_is_refused_then() -> None:
    line = LINK.encode(Accept(2, Ballot(1, 0), Unread("AAAA", lambda _: VIEW)))
    accept = LINK.decode(line)

    assert isinstance(accept, Accept)
    with pytest.raises(MessageError):
        accept.view.read()


def test_the_same_view_is_read_once_and_another_one_is_another_one() -> None:
    accepted = LINK.decode(LINK.encode(Accept(2, Ballot(1, 0), VIEW)))
    committed = LINK.decode(LINK.encode(Commit(VIEW)))
    other = LINK.decode(LINK.encode(Commit(replace(VIEW, resume_step=6))))

    assert isinstance(accepted, Accept)
    assert isinstance(committed, Commit)
    assert isinstance(other, Commit)
    assert committed.view is accepted.view.read()
    assert other.view == replace(VIEW, resume_step=6)


def text_of(value: str, *, cut: int | None = None) -> str:
    """As a large value stands in a message."""
    return json.dumps(base64.b64encode(zlib.compress(value.encode())[:cut]).decode())


@pytest.mark.parametrize(
    "large",
    [
        '{"inner":[]}',
        '"{}"',
        '"AAAA"',
        text_of('{"inner":[]}', cut=-1),
        text_of("0" * (LONGEST_TEXT_BYTES + 1)),
        text_of("{"),
        text_of("[]"),
        text_of('{"inner":[{"number":"1"}]}'),
        text_of('{"inner":[],"more":1}'),
        text_of("{}"),
    ],
    ids=[
        "no text",
        "not base64",
        "not compressed",
        "cut off",
        "too long",
        "no JSON",
        "no object",
        "another type",
        "a field more",
        "a field less",
    ],
)
def test_a_text_that_is_no_such_value_is_refused(large: str) -> None:
    with pytest.raises(MessageError, match=r"said\.large"):
        CODEC.decode(f'{{"type":"said","large":{large},"before":null}}'.encode())


@pytest.mark.parametrize("inside", [False, True], ids=["message", "large value"])
def test_deep_nesting_is_a_message_error(inside: bool) -> None:
    deep = "[" * 100_000
    large = base64.b64encode(zlib.compress(deep.encode())).decode()
    with pytest.raises(MessageError):
        CODEC.decode((f'{{"type":"said","large":"{large}"}}' if inside else deep).encode())
