"""
Safeguards switched off one at a time in a copy of this checkout, and the tests that have to notice.

``tests/cases/mutations/*.yaml`` has a file per guarantee: in each entry the file, the text there, what stands in its
place, and the tests. A text that is there no more, or twice, is an error: the entry is to follow the code.
"""

import os
import subprocess
import sys
from dataclasses import dataclass

import yaml
from checkout_copy import ROOT, Checkout

CASES = ROOT / "tests" / "cases" / "mutations"
TIMEOUT_S = 900.0
"""On a full machine, for the tests of all entries."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One safeguard, and how it is switched off."""

    guarantee: str
    safeguard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Of ``make test``; at least one of them fails without the safeguard."""

    @property
    def name(self) -> str:
        return f"{self.guarantee}: {self.safeguard}"


def mutations() -> list[Mutation]:
    """All of them, in the order of their files."""
    found = []
    for path in sorted(CASES.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text()):
            tests = entry.pop("tests")
            found.append(
                Mutation(guarantee=path.stem, tests=(tests,) if isinstance(tests, str) else tuple(tests), **entry)
            )
    return found


def missing(mutation: Mutation) -> str:
    """Why a mutation cannot be made; empty when it can."""
    path = ROOT / mutation.file
    if not path.is_file():
        return f"{mutation.file} is not there"
    count = path.read_text().count(mutation.old)
    if count != 1:
        return f"{mutation.file} has {mutation.old!r} {count} times"
    gone = [test for test in mutation.tests if not (ROOT / test.split("::")[0]).is_file()]
    return f"no file of {gone}" if gone else ""


def run_tests(checkout: Checkout, tests: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
    """Some tests of the copy; where its packages are is the copy's own pytest configuration's to say."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, **checkout.variables, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=checkout.folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def survives(checkout: Checkout, mutation: Mutation) -> str:
    """What the tests said of a mutation that none of them noticed; empty when one did."""
    path = checkout.folder / mutation.file
    before = path.read_text()
    checkout.patch(mutation.file, (mutation.old, mutation.new))
    try:
        done = run_tests(checkout, mutation.tests)
    finally:
        path.write_text(before)
    # 1: tests failed. Anything else, such as a file that cannot be imported or no such test, shows nothing.
    return "" if done.returncode == 1 else f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
