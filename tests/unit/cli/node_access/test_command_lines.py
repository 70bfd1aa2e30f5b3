import shlex
import subprocess

import pytest

from holdfast.cli.node_access import OutputError, exit_code_of, framed, parse_framed


def answer(line):
    """Output as the agent has it: both streams in one."""
    return subprocess.run(
        shlex.split(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
    ).stdout


def test_the_frame_is_of_the_shell_that_sh_is_here():
    argv = ["/bin/sh", "-c", "head -c 5; printf ' err\\377' >&2; exit 3"]
    found = parse_framed(argv, answer(_as_caller(framed(argv, text="hello world"))))
    assert (found.stdout, found.stderr, found.returncode) == (b"hello", b" err\xff", 3)


def _as_caller(line):
    """The line as root's own, for tests without root."""
    return line.replace('[ "$(id -u)" = 0 ]', "true")


def test_output_without_an_end_is_an_error_with_its_last_line():
    with pytest.raises(OutputError, match="sudo: a password is required"):
        parse_framed(["true"], b"1aGVsbG8K\nsudo: a password is required\n")
    with pytest.raises(OutputError, match="without the exit code"):
        parse_framed(["true"], b"")


def test_damaged_output_is_an_error():
    with pytest.raises(OutputError, match="damaged"):
        parse_framed(["true"], b"1aGVsb\n=0\n")


def test_other_lines_are_skipped():
    assert parse_framed(["true"], b"Starting session\n1aGVsbG8K\n\n=0\n").stdout == b"hello\n"


def test_a_line_that_no_session_takes_is_refused():
    with pytest.raises(ValueError, match="allowed: 65,535"):
        framed(["echo", "x" * 70_000])


def test_the_exit_code_of_a_terminal_is_found_and_removed():
    assert exit_code_of(b"bye\r\n\x1eabc:7\x1e", mark="abc") == (b"bye\r\n", 7)
    assert exit_code_of(b"\x1eabd:7\x1e", mark="abc") == (b"\x1eabd:7\x1e", None)
