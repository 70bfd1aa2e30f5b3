"""Entries of the store belong to a generation: what an earlier one left behind cannot be read in a later one."""

import base64
import threading
import time

import pytest

from holdfast_runtime.control import Change, Changed, FromRank, KeyBox, Keys, Put
from holdfast_runtime.store import GenerationStore


@pytest.fixture
def said() -> list[FromRank]:
    return []


@pytest.fixture
def box(said: list[FromRank]) -> KeyBox:
    return KeyBox(said.append)


def entry(generation: int, key: str, value: bytes | None) -> Keys:
    return Keys.of(generation, {key: None if value is None else base64.b64encode(value).decode()})


def test_an_entry_of_an_earlier_generation_is_not_found_in_a_later_one(box: KeyBox) -> None:
    GenerationStore(box, generation=1, deadline_s=0.1).set("address", b"dead rank")
    later = GenerationStore(box, generation=2, deadline_s=0.1)
    assert not later.check(["address"])
    with pytest.raises(TimeoutError, match="no rank has set address of generation 2"):
        later.get("address")


def test_without_generations_the_address_of_a_dead_rank_would_be_found(
    box: KeyBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyBox, "_move_to", lambda _box, _generation: None)
    monkeypatch.setattr(KeyBox, "_check", lambda _box, _generation: None)
    box._generation = 1
    GenerationStore(box, generation=1, deadline_s=0.1).set("address", b"dead rank")
    assert GenerationStore(box, generation=2, deadline_s=0.1).get("address") == b"dead rank"


def test_an_entry_that_comes_late_from_an_earlier_generation_is_dropped(box: KeyBox) -> None:
    store = GenerationStore(box, generation=2, deadline_s=0.1)
    box.take(entry(2, "address", b"new"))
    box.take(entry(1, "address", b"old"))
    assert store.get("address") == b"new"


def test_a_store_of_a_generation_that_is_over_says_so_at_once(box: KeyBox) -> None:
    store = GenerationStore(box, generation=1, deadline_s=30.0)
    box.take(entry(2, "address", b"new"))
    began = time.monotonic()
    with pytest.raises(ConnectionError, match="generation 1 is over, 2 is next"):
        store.get("address")
    assert time.monotonic() - began < 1.0


def test_who_waits_for_an_entry_comes_out_when_the_generation_ends(box: KeyBox) -> None:
    store = GenerationStore(box, generation=1, deadline_s=30.0)
    ending = threading.Timer(0.1, box.end, [1])
    ending.start()
    with pytest.raises(ConnectionError, match="generation 1 is over"):
        store.wait(["address"])
    ending.join()


def test_what_a_rank_sets_goes_to_the_launcher_with_its_generation(box: KeyBox, said: list[FromRank]) -> None:
    GenerationStore(box, generation=4, deadline_s=0.1).set("key", "value")
    assert said == [Put(generation=4, key="key", value=base64.b64encode(b"value").decode())]


def test_entries_that_must_not_race_are_changed_by_the_launcher(box: KeyBox, said: list[FromRank]) -> None:
    store = GenerationStore(box, generation=4, deadline_s=5.0)
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(store.add("count", 2)))
    asking.start()
    end = time.monotonic() + 5.0
    while not said and time.monotonic() < end:
        time.sleep(0.01)
    change = said[0]
    assert isinstance(change, Change)
    assert (change.generation, change.key, change.operation, change.amount) == (4, "count", "add", 2)
    box.changed(Changed(request=change.request, value=base64.b64encode(b"7").decode()))
    asking.join()
    assert answers == [7]
