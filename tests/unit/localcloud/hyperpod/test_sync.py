"""What a data repository association copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.localcloud.confined import safe_path
from holdfast.localcloud.hyperpod.fsx import FileStat, ObjectStat, SyncEntry, SyncPlan, plan

ALL = frozenset({"NEW", "CHANGED", "DELETED"})
NONE: frozenset[str] = frozenset()
OBJECT, FILE = ObjectStat(etag="e1", size=3), FileStat(size=3, mtime_ns=10)
EQUAL = SyncEntry(etag="e1", size=3, mtime_ns=10)


def made(
    *,
    remote: ObjectStat | None = None,
    local: FileStat | None = None,
    entry: SyncEntry | None = None,
    imports: frozenset[str] = ALL,
    exports: frozenset[str] = ALL,
) -> SyncPlan:
    return plan(
        objects={"p": remote} if remote else {},
        files={"p": local} if local else {},
        book={"p": entry} if entry else {},
        imports=imports,
        exports=exports,
    )


def test_nothing_is_done_while_both_sides_are_as_in_the_book() -> None:
    assert made(remote=OBJECT, local=FILE, entry=EQUAL) == SyncPlan()


def test_new_changed_and_deleted_objects_are_imported() -> None:
    assert made(remote=OBJECT).imports == ("p",)
    assert made(remote=ObjectStat(etag="e2", size=4), local=FILE, entry=EQUAL).imports == ("p",)
    assert made(local=FILE, entry=EQUAL).delete_files == ("p",)


def test_new_changed_and_deleted_files_are_exported() -> None:
    assert made(local=FILE).exports == ("p",)
    assert made(remote=OBJECT, local=FileStat(size=4, mtime_ns=11), entry=EQUAL).exports == ("p",)
    assert made(remote=OBJECT, entry=EQUAL).delete_objects == ("p",)


def test_a_file_that_is_being_written_is_not_exported() -> None:
    assert made(local=FileStat(size=3, mtime_ns=10, at_rest=False)) == SyncPlan()


def test_only_what_the_policies_name_is_done() -> None:
    assert made(remote=OBJECT, imports=NONE) == SyncPlan()
    assert made(local=FILE, exports=NONE) == SyncPlan()
    assert made(local=FILE, entry=EQUAL, imports=frozenset({"NEW"}), exports=NONE) == SyncPlan()
    assert made(remote=OBJECT, entry=EQUAL, imports=ALL, exports=NONE) == SyncPlan()


def test_the_bucket_wins_when_both_sides_changed() -> None:
    both = made(remote=ObjectStat(etag="e2", size=4), local=FileStat(size=5, mtime_ns=12), entry=EQUAL)
    assert both == SyncPlan(imports=("p",))


def test_what_is_gone_on_both_sides_is_forgotten() -> None:
    assert made(entry=EQUAL) == SyncPlan(forget=("p",))


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/.", "nul\0", "x" * 256])
def test_rejects_keys_that_lead_elsewhere(key: str) -> None:
    assert safe_path(key) is None


def test_ordinary_keys_are_paths() -> None:
    assert safe_path("a/b c/..d.txt") == "a/b c/..d.txt"


stats = st.none() | st.builds(ObjectStat, etag=st.sampled_from(["e1", "e2"]), size=st.just(1))
files = st.none() | st.builds(FileStat, size=st.just(1), mtime_ns=st.integers(1, 3), at_rest=st.booleans())
entries = st.none() | st.builds(
    SyncEntry, etag=st.sampled_from(["e1", "e2"]), size=st.just(1), mtime_ns=st.integers(1, 3)
)
policies = st.frozensets(st.sampled_from(["NEW", "CHANGED", "DELETED"]))


@given(remote=stats, local=files, entry=entries, imports=policies, exports=policies)
def test_no_path_is_copied_both_ways_or_copied_and_deleted(
    remote: ObjectStat | None,
    local: FileStat | None,
    entry: SyncEntry | None,
    imports: frozenset[str],
    exports: frozenset[str],
) -> None:
    todo = made(remote=remote, local=local, entry=entry, imports=imports, exports=exports)
    verbs = (todo.imports, todo.exports, todo.delete_files, todo.delete_objects, todo.forget)
    assert sum(map(len, verbs)) <= 1
    assert remote or not (todo.imports or todo.delete_objects)
    assert local or not (todo.exports or todo.delete_files)
