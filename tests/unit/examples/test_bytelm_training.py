"""The example's parts: data, model, optimizer, checkpoints, settings."""

import importlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
FOLDER = Path(__file__).parents[3] / "examples/bytelm"


@pytest.fixture(scope="module")
def bytelm() -> Iterator[Any]:
    """The example's modules, which import each other by plain names from their own folder."""
    names = [path.stem for path in FOLDER.glob("*.py")]
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names if name != "train"})
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def corpus_folder(bytelm: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = tmp_path_factory.mktemp("sources")
    for number in range(20):
        (sources / f"module_{number}.py").write_text(f"def number_{number}() -> int:\n    return {number}\n" * 20)
    (sources / "test").mkdir()
    (sources / "test" / "test_left_out.py").write_text("left out")
    out = tmp_path_factory.mktemp("data")
    bytelm.prepare.prepare(root=sources, out=out)
    return out


def test_preparing_twice_gives_the_same_bytes(bytelm: Any, corpus_folder: Path, tmp_path: Path) -> None:
    sources = corpus_folder.parent / "sources0"
    bytelm.prepare.prepare(root=sources, out=tmp_path)
    assert (tmp_path / "tokens.bin").read_bytes() == (corpus_folder / "tokens.bin").read_bytes()
    assert (tmp_path / "meta.json").read_text() == (corpus_folder / "meta.json").read_text()
    assert b"left out" not in (tmp_path / "tokens.bin").read_bytes()


def test_preparing_nothing_is_refused(bytelm: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no \.py files under"):
        bytelm.prepare.prepare(root=tmp_path, out=tmp_path / "out")


def test_a_batch_depends_on_seed_step_and_rank_and_on_nothing_else(bytelm: Any, corpus_folder: Path) -> None:
    corpus = bytelm.data.Corpus.open(corpus_folder)
    wanted = {"seed": 1, "step": 7, "rank": 2, "size": 4, "context": 16}
    torch.manual_seed(99)
    inputs, targets = corpus.batch(**wanted)
    torch.manual_seed(5)
    again, _ = bytelm.data.Corpus.open(corpus_folder).batch(**wanted)
    assert torch.equal(inputs, again)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    for other in ({"seed": 2}, {"step": 8}, {"rank": 3}):
        assert not torch.equal(inputs, corpus.batch(**(wanted | other))[0])


def test_rejects_tokens_that_are_not_those_of_the_meta_file(bytelm: Any, corpus_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text((corpus_folder / "meta.json").read_text())
    with pytest.raises(bytelm.settings.RefusedError, match="no prepared data in"):
        bytelm.data.Corpus.open(tmp_path)
    (tmp_path / "tokens.bin").write_bytes((corpus_folder / "tokens.bin").read_bytes()[:-1])
    with pytest.raises(bytelm.settings.RefusedError, match="wait until the import is complete"):
        bytelm.data.Corpus.open(tmp_path)


def test_the_model_knows_nothing_at_first_and_learns(bytelm: Any, corpus_folder: Path) -> None:
    corpus = bytelm.data.Corpus.open(corpus_folder)
    model = bytelm.model.build_model(bytelm.model.ModelConfig(context=32, width=32, heads=2, layers=1), seed=0)
    optimizer = bytelm.adamw.FlatAdamW(model.parameters())
    losses = []
    for step in range(60):
        loss = model.loss(*corpus.batch(seed=0, step=step, rank=0, size=8, context=32))
        loss.backward()
        optimizer.step(step + 1, learning_rate=1e-2)
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(256), abs=0.1)
    assert losses[-1] < 2.0


def test_the_model_does_not_look_ahead(bytelm: Any) -> None:
    model = bytelm.model.build_model(bytelm.model.ModelConfig(context=8, width=16, heads=2, layers=2), seed=0)
    tokens = torch.arange(8).unsqueeze(0)
    changed = tokens.clone()
    changed[0, 5] = 200
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


def test_the_optimizer_agrees_with_torch(bytelm: Any) -> None:
    torch.manual_seed(0)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    optimizer = bytelm.adamw.FlatAdamW(ours.parameters())
    reference = torch.optim.AdamW(theirs.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.01)
    for number in range(1, 6):
        inputs = torch.randn(7, 5)
        ours(inputs).square().sum().backward()
        theirs(inputs).square().sum().backward()
        optimizer.step(number, learning_rate=1e-2)
        reference.step()
        reference.zero_grad()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


IDENTITY = {"seed": 0, "world_size": 4}


def save(bytelm: Any, folder: Path, *steps: int, keep: int = 3) -> None:
    for step in steps:
        state = {"values": torch.full((3,), float(step))}
        bytelm.checkpoint.save(folder=folder, step=step, state=state, identity=IDENTITY, keep=keep)


def load(bytelm: Any, folder: Path, *, allow_older: bool = False, **identity: int) -> tuple[Any, str]:
    found: tuple[Any, str] = bytelm.checkpoint.load(
        folder=folder, identity=IDENTITY | identity, allow_older=allow_older
    )
    return found


def test_a_checkpoint_comes_back_as_it_was_saved(bytelm: Any, tmp_path: Path) -> None:
    assert load(bytelm, tmp_path / "none") == (None, "")
    save(bytelm, tmp_path, 5, 10, 15, 20)
    found, damage = load(bytelm, tmp_path)
    assert (found["step"], damage) == (20, "")
    assert torch.equal(found["state"]["values"], torch.full((3,), 20.0))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"latest", "step-10.pt", "step-15.pt", "step-20.pt"}


def test_a_damaged_checkpoint_is_refused_unless_an_older_one_is_allowed(bytelm: Any, tmp_path: Path) -> None:
    save(bytelm, tmp_path, 5, 10)
    content = bytearray((tmp_path / "step-10.pt").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "step-10.pt").write_bytes(content)
    with pytest.raises(bytelm.settings.RefusedError, match=r"step-10\.pt is damaged .* step 5 is whole: give --allow"):
        load(bytelm, tmp_path)
    found, damage = load(bytelm, tmp_path, allow_older=True)
    assert found["step"] == 5
    assert "step-10.pt is damaged" in damage


def test_never_starts_over_when_checkpoints_exist_but_none_is_whole(bytelm: Any, tmp_path: Path) -> None:
    save(bytelm, tmp_path, 5, 10)
    (tmp_path / "step-5.pt").unlink()
    (tmp_path / "step-10.pt").write_bytes(b"")
    with pytest.raises(bytelm.settings.RefusedError, match=r"no checkpoint in .* is whole: .*move them away"):
        load(bytelm, tmp_path, allow_older=True)


@pytest.mark.parametrize("content", [None, "{", '[{"step": 5}]'])
def test_never_starts_over_when_the_list_of_checkpoints_is_lost(
    bytelm: Any, tmp_path: Path, content: str | None
) -> None:
    save(bytelm, tmp_path, 5)
    (tmp_path / "latest").unlink()
    if content is not None:
        (tmp_path / "latest").write_text(content)
    with pytest.raises(bytelm.settings.RefusedError, match="restore it, or move"):
        load(bytelm, tmp_path, allow_older=True)


def test_a_checkpoint_of_another_run_is_refused(bytelm: Any, tmp_path: Path) -> None:
    save(bytelm, tmp_path, 5)
    with pytest.raises(bytelm.settings.RefusedError, match=r"is of another run: world_size 4 \(now 8\)"):
        load(bytelm, tmp_path, world_size=8)


def test_an_unfinished_write_is_never_seen(bytelm: Any, tmp_path: Path) -> None:
    save(bytelm, tmp_path, 5)
    (tmp_path / ".step-10.pt.tmp").write_bytes(b"half")
    assert load(bytelm, tmp_path)[0]["step"] == 5


def test_a_place_comes_from_slurm(bytelm: Any) -> None:
    place = bytelm.settings.find_place(
        {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "MASTER_ADDR": "ip-10-1-0-12", "MASTER_PORT": "20001"}
    )
    assert (place.rank, place.world_size, place.address, place.port) == (3, 4, "ip-10-1-0-12", 20001)


def test_rejects_a_rank_outside_the_world(bytelm: Any) -> None:
    with pytest.raises(bytelm.settings.RefusedError, match="rank must be from 0 to 3, got 4"):
        bytelm.settings.find_place({"RANK": "4", "WORLD_SIZE": "4"})


def test_rejects_a_step_count_of_zero(bytelm: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bytelm.settings.parse_settings(["--checkpoints", "x", "--steps", "0"])
    assert ended.value.code == 2
    assert "--steps must be more than 0, got 0" in capsys.readouterr().err


def test_the_meta_file_says_what_the_tokens_are(corpus_folder: Path) -> None:
    meta = json.loads((corpus_folder / "meta.json").read_text())
    assert meta["files"] == 20
    assert meta["tokens"] == (corpus_folder / "tokens.bin").stat().st_size
