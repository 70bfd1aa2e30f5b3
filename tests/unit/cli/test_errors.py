"""What a user sees of a mistake: one message, an exit code, no traceback."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import holdfast

from holdfast.cli.submission import check_job_file
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud, LocalCloudError, from_environment


def test_a_command_without_anything_up_says_how_to_start(tmp_path: Path) -> None:
    answer = holdfast("status", home=tmp_path)

    assert answer.returncode == 2
    assert answer.stderr == f"holdfast: nothing is up in {tmp_path}; start with: holdfast up local\n"


def test_a_stopped_local_cloud_is_named_with_the_command_that_brings_it_back(tmp_path: Path) -> None:
    session = {
        "environment": "local",
        "cloud": "embedded",
        "region": "us-west-2",
        "stack_name": "holdfast-local",
        "cluster_name": "local",
        "port": 5710,
    }
    (tmp_path / "session.json").write_text(json.dumps(session))

    answer = holdfast("status", home=tmp_path)

    assert answer.returncode == 2
    assert "the local cloud is not running (stopped: aws, hyperpod)" in answer.stderr
    assert "restore it with: holdfast up local" in answer.stderr


def test_a_damaged_session_is_refused_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text("{")

    answer = holdfast("events", home=tmp_path)

    assert answer.returncode == 2
    assert answer.stderr.endswith("is not a session of this version; run: holdfast down\n")


def test_an_unknown_environment_lists_the_known_ones(tmp_path: Path) -> None:
    answer = holdfast("status", "--environment", "lcoal", home=tmp_path)

    assert answer.returncode == 2
    assert re.search(r"there is no environment 'lcoal'; did you mean local\? allowed: a path .*local", answer.stderr)


def test_a_job_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"job file .*missing.sbatch does not exist"):
        check_job_file(tmp_path / "missing.sbatch")


def test_a_folder_is_not_a_job_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not a file; name the job file itself"):
        check_job_file(tmp_path)


def test_a_file_that_is_no_script_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")

    with pytest.raises(CommandError, match="does not begin with #!"):
        check_job_file(path)


def test_a_busy_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=rf"port {port} on localhost is in use .* HOLDFAST_PORT=<port>"):
            LocalCloud(home=tmp_path / "home", port=port).start_aws()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("port", ["", "http", "0", "70000"])
def test_a_port_that_is_none_is_refused(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_PORT", port)

    with pytest.raises(LocalCloudError, match="allowed: a number from 1 to 65535"):
        from_environment()


def test_ctrl_c_while_the_command_is_still_loading_is_no_traceback() -> None:
    loading = (
        "import builtins, os, signal\n"
        "real = builtins.__import__\n"
        "def slow(name, *rest, **more):\n"
        "    if name == 'holdfast.cli.entry_point':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = slow\n"
        "from holdfast.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (130, "holdfast: interrupted\n")


def test_ctrl_c_while_a_command_that_is_done_ends_takes_nothing_back() -> None:
    """Python takes its signal handlers away before it ends, and by default the signal would end it."""
    ending = (
        "import os, signal\n"
        "from holdfast.cli import main\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.SIGINT):\n"
        "        kill(me, number)\n"
        "last = Last()\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", ending, "--version"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
