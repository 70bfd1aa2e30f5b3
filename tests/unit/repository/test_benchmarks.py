"""`make bench` runs every benchmark, and each says what it measures and how it is run."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BENCHMARKS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "benchmarks").glob("*.py")
    if 'if __name__ == "__main__":' in path.read_text() and not path.stem.endswith("_program")
)


def test_make_bench_runs_every_benchmark_and_nothing_else() -> None:
    said = subprocess.run(
        ["make", "--dry-run", "--silent", "--eval=listed: ; $(info {$(BENCHMARKS)})", "listed"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert sorted(said.strip("{}\n").split()) == BENCHMARKS


@pytest.mark.parametrize("path", BENCHMARKS)
def test_a_benchmark_says_what_it_measures_and_how_it_is_run(path: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / path).read_text())) or ""

    assert f"python {path}" in text
