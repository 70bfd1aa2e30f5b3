"""Files that scripts of other repositories read, written into the folder in which they run."""

import pickle
import random
import shutil
from array import array
from itertools import accumulate
from pathlib import Path

WORDS = ["a", "the", "one", "cat", "dog", "sees", "finds", "likes", "runs", "sits", "near", "far", "red", "blue"]


def sentences(count: int, *, seed: int) -> str:
    chance = random.Random(seed)
    return "".join(" ".join(chance.choice(WORDS) for _ in range(6)) + "\n" for _ in range(count))


def results(work: Path, source: Path) -> None:
    (work / "results").mkdir()


def checkpoint(work: Path, source: Path) -> None:
    (work / "checkpoint").mkdir()


def corpus(work: Path, source: Path) -> None:
    (work / "corpus").mkdir()
    for number, (name, count) in enumerate({"train": 120, "valid": 20, "test": 20}.items()):
        (work / "corpus" / f"{name}.txt").write_text(sentences(count, seed=number))


def tokens(work: Path, source: Path) -> None:
    shutil.copy(source / "configurator.py", work)
    folder = work / "data" / "small"
    folder.mkdir(parents=True)
    for seed, name in enumerate(("train", "val")):
        chance = random.Random(seed)
        steps = accumulate(chance.randrange(1, 3) for _ in range(4000))
        (folder / f"{name}.bin").write_bytes(array("H", (step % 24 for step in steps)).tobytes())
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 24}))


def names(work: Path, source: Path) -> None:
    chance = random.Random(0)
    lines = ["".join(chance.choice("abcde") for _ in range(chance.randrange(2, 7))) for _ in range(300)]
    (work / "names.txt").write_text("\n".join(lines))


def verdict(work: Path, source: Path) -> None:
    (work / "the-verdict.txt").write_text(sentences(40, seed=5))
