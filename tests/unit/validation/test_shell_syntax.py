"""A script that bash could not read is never taken for one without a mistake."""

import subprocess
from collections.abc import Callable

import pytest

from holdfast.validation.shell import shell_mistake


def _too_late(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    raise subprocess.TimeoutExpired(argv, 30)


def _no_file_left(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    raise OSError(24, "Too many open files")


def _killed(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.CompletedProcess(argv, -9, b"", b"")


@pytest.mark.parametrize(
    ("run", "mistake"),
    [
        (_too_late, "bash -n did not end within 30 s"),
        (_no_file_left, "bash could not be run: [Errno 24] Too many open files"),
        (_killed, "bash -n ended with -9"),
    ],
)
def test_a_bash_that_did_not_answer_is_named(
    run: Callable[..., subprocess.CompletedProcess[bytes]], mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", run)

    assert shell_mistake(f"#!/bin/bash\ntrue # {mistake}\n") == mistake


def test_the_first_syntax_error_has_its_line() -> None:
    found = shell_mistake("#!/bin/bash\nif true; then\n") or ""
    assert found.startswith("line 3: syntax error: unexpected end of file"), "bash 5.3 also names the open if"
    assert shell_mistake("#!/bin/bash\ntrue\n") is None


def test_a_script_that_no_bash_could_read_is_read_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#!/bin/bash\nif true; then # read twice\n"
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nonexistent")
        assert shell_mistake(text) is None

    assert shell_mistake(text) is not None
