"""Entries of the store of another generation do not exist: not where they are collected, and not at a rank."""

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast_runtime.control import Change, KeyBox, Keys, Put
from holdfast_runtime.launcher.keys import SharedKeys
from holdfast_runtime.launcher.links import ChangeAt

VALUE = base64.b64encode(b"1").decode()


class KeySender:
    """Everything that a launcher's store says, to whomever."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        say = SimpleNamespace(one=self.said.append)
        self.to_ranks = self.to_launchers = say.one

    def to_launcher(self, node: int, message: Any) -> None:
        self.said.append((node, message))

    def to_slot(self, slot: int, message: Any) -> None:
        self.said.append((slot, message))


@pytest.fixture
def outlet() -> KeySender:
    return KeySender()


@pytest.fixture
def collector(outlet: KeySender) -> SharedKeys:
    """The launcher at which generation 4 is collected."""
    keys = SharedKeys(outlet, node=0)  # type: ignore[arg-type]
    keys.begin(4, nodes=[0])
    return keys


def change(generation: int) -> ChangeAt:
    return ChangeAt(node=0, slot=0, change=Change(generation=generation, request=1, key="k", operation="add", amount=1))


@pytest.mark.parametrize(("generation", "shared"), [(3, False), (4, True), (5, False)])
def test_an_entry_is_shared_in_its_own_generation_only(
    collector: SharedKeys, outlet: KeySender, generation: int, shared: bool
) -> None:
    assert collector.put(Put(generation=generation, key="k", value=VALUE)) is shared
    collector.share()
    assert bool(outlet.said) is shared


@pytest.mark.parametrize(("generation", "shared"), [(3, False), (4, True), (5, False)])
def test_an_entry_of_another_launcher_is_shared_in_its_own_generation_only(
    collector: SharedKeys, outlet: KeySender, generation: int, shared: bool
) -> None:
    assert collector.take(Keys.of(generation, {"k": VALUE})) is shared
    collector.share()
    assert bool(outlet.said) is shared


@pytest.mark.parametrize(("generation", "answered"), [(3, False), (4, True), (5, False)])
def test_a_change_is_made_in_its_own_generation_only(
    collector: SharedKeys, outlet: KeySender, generation: int, answered: bool
) -> None:
    collector.change_here(change(generation))

    assert bool(outlet.said) is answered


def test_what_came_early_is_there_when_its_generation_begins_and_nothing_of_the_one_before(
    collector: SharedKeys, outlet: KeySender
) -> None:
    collector.put(Put(generation=4, key="old", value=VALUE))
    collector.take(Keys.of(5, {"early": VALUE}))
    collector.begin(5, nodes=[0])
    collector.share()

    assert {key for keys in outlet.said for key, _ in keys.entries} == {"early"}


def test_a_rank_takes_no_entry_of_an_older_generation_and_forgets_those_it_has() -> None:
    box = KeyBox(lambda _: None)
    box.take(Keys.of(3, {"k": VALUE}))
    box.take(Keys.of(4, {"other": VALUE}))
    box.take(Keys.of(3, {"late": VALUE}))

    assert box.get("other", generation=4, deadline_s=5.0) == b"1"
    for key in ("k", "late"):
        with pytest.raises(TimeoutError):
            box.get(key, generation=4, deadline_s=0.01)
