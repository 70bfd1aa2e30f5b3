"""What of a repository travels with a job, beside what git itself takes for the repository's."""

import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.submission import read_folder

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

NAMES = ("a", "b", "c.pt", "d.log", "runs", "data", "src", ".x", "k.pt", "e f")
PATTERNS = ("*.pt", "!k.pt", "runs/", "/runs", "data/*", "!data/a", "**/src", "src/**", "**/a/b", "*", "!a", "/b/", "a",
            "*.log", "!*.log", "d*", "b/c.pt", "# x", "", "\\!a", "e f", "e f ", "[ab]", "!data/", "/data/**/a", "!*/",
            "!.x")  # fmt: skip


def tree(root: Path, draw: random.Random) -> None:
    folders = [root]
    for number in range(20):
        path = draw.choice(folders) / draw.choice(NAMES)
        if path.exists():
            continue
        if number < 6:
            path.mkdir()
            folders.append(path)
        else:
            path.write_text("")
    for folder in draw.sample(folders, min(2, len(folders))):
        (folder / ".gitignore").write_text("\n".join(draw.choices(PATTERNS, k=draw.randint(1, 5))) + "\n")


@pytest.mark.parametrize("seed", range(40))
def test_the_files_that_travel_are_those_that_git_takes(tmp_path: Path, seed: int) -> None:
    subprocess.run(["git", "init", "-q", "--template=", str(tmp_path)], check=True)
    tree(tmp_path, random.Random(seed))
    words = ["git", "-C", str(tmp_path), "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout

    found = read_folder(tmp_path, always="\0")

    travels = {one.path for one in found.entries if not stat.S_ISDIR(one.info.st_mode)}
    assert travels == set(filter(None, listed.split("\0")))
