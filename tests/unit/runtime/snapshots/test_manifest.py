"""Checkpoints in storage: complete or no checkpoint at all, and every byte accounted for."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from holdfast_runtime.snapshots import (
    COMPLETE,
    MANIFEST,
    Checkpoints,
    Manifest,
    SnapshotError,
    clear_incomplete,
    complete,
    complete_steps,
    facts,
    keep_newest,
    newest_complete,
    step_folder,
    verify,
)


def written(folder: Path, step: int) -> Path:
    path = step_folder(folder, step)
    path.mkdir(parents=True)
    (path / "__0_0.distcp").write_bytes(b"tensors" * step)
    (path / ".metadata").write_bytes(b"where")
    return path


def checkpoint(folder: Path, step: int) -> Path:
    path = written(folder, step)
    files = {item.name: facts(item) for item in path.iterdir()}
    complete(folder, Manifest(step=step, world_size=1, files=files))
    return path


def test_a_folder_counts_once_it_is_complete(tmp_path: Path) -> None:
    assert newest_complete(tmp_path / "none") == -1
    checkpoint(tmp_path, 10)
    written(tmp_path, 20)
    (tmp_path / "notes").mkdir()
    assert complete_steps(tmp_path) == [10]
    assert newest_complete(tmp_path) == 10
    assert verify(tmp_path, 10).step == 10
    with pytest.raises(SnapshotError, match=r"no complete checkpoint of step 20 in .*; complete are: 10"):
        verify(tmp_path, 20)


@pytest.mark.parametrize("name", [COMPLETE, MANIFEST])
@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_a_marker_that_does_not_match_makes_it_incomplete(tmp_path: Path, name: str, damage: str) -> None:
    path = checkpoint(tmp_path, 10) / name
    text = path.read_text()
    if damage == "gone":
        path.unlink()
    else:
        path.write_text(text[: len(text) // 2] if damage == "cut" else "x" + text[1:])
    assert newest_complete(tmp_path) == -1


def test_only_what_is_incomplete_is_cleared(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path, 10)
    left = written(tmp_path, 20)
    (tmp_path / "notes").mkdir()
    assert clear_incomplete(tmp_path) == [20]
    assert kept.exists()
    assert not left.exists()
    assert (tmp_path / "notes").exists()


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (30, 10, 20):
        checkpoint(tmp_path, step)
    assert keep_newest(tmp_path, 2) == [10]
    assert complete_steps(tmp_path) == [20, 30]
    assert keep_newest(tmp_path, 5) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda path: path.unlink(), "__0_0.distcp is missing"),
        (lambda path: path.write_bytes(b"short"), "__0_0.distcp has 5 bytes and 70 were written"),
        (lambda path: path.write_bytes(b"Tensors" * 10), "__0_0.distcp does not match its SHA-256"),
    ],
)
def test_verifying_finds_what_is_missing_short_or_changed(tmp_path: Path, change: object, problem: str) -> None:
    path = checkpoint(tmp_path, 10)
    assert callable(change)
    change(path / "__0_0.distcp")
    with pytest.raises(SnapshotError, match=f"checkpoint of step 10 in .* is damaged: {problem}"):
        verify(tmp_path, 10)


def test_keeping_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 checkpoint"):
        Checkpoints(tmp_path, keep=0)
