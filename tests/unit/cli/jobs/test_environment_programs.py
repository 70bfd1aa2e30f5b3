"""Console scripts of a virtual environment, where the nodes have it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.localcloud.image import environment_programs


def environment(tmp_path: Path) -> Path:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("/usr/bin/python3.11")
    (programs / "torchrun").write_text(f"#!{programs}/python\nprint()\n")
    (programs / "long").write_text(f"#!/bin/sh\n'''exec' \"{programs}/python\" \"$0\" \"$@\"\n' '''\n")
    (programs / "ninja").write_bytes(b"\x7fELF\0\0")
    (programs / "holdfast").write_text(f"#!{programs}/python\n")
    for name in ("torchrun", "long"):
        (programs / name).chmod(0o755)
    return tmp_path / "venv"


def test_a_script_begins_with_the_interpreter_that_the_nodes_have(tmp_path: Path) -> None:
    originals, programs = environment_programs(tmp_path / "made", at="/at", prefix=environment(tmp_path))

    assert (programs.target, programs.read_only) == ("/at/bin", True)
    assert '"${VIRTUAL_ENV:-${CONDA_PREFIX:-/at}}/bin/python" "$0"' in (programs.source / "torchrun").read_text()
    assert '"/at/bin/python" "$0"' in (programs.source / "long").read_text()
    assert os.access(programs.source / "torchrun", os.X_OK)
    assert str((programs.source / "python").readlink()) == "/usr/bin/python3.11"
    assert str((programs.source / "ninja").readlink()) == f"{originals.target}/ninja"


def test_holdfasts_own_programs_are_not_of_the_nodes(tmp_path: Path) -> None:
    _, programs = environment_programs(tmp_path / "made", at="/at", prefix=environment(tmp_path))
    assert not (programs.source / "holdfast").exists()


def test_a_program_that_is_installed_later_is_there_at_the_next_start(tmp_path: Path) -> None:
    prefix = environment(tmp_path)
    first = environment_programs(tmp_path / "made", at="/at", prefix=prefix)
    again = environment_programs(tmp_path / "made", at="/at", prefix=prefix)
    (prefix / "bin" / "accelerate").write_text(f"#!{prefix}/bin/python\n")
    later = environment_programs(tmp_path / "made", at="/at", prefix=prefix)

    assert first == again
    assert "/at}}/bin/python" in (later[1].source / "accelerate").read_text()


@pytest.mark.parametrize(
    ("variables", "expected"), [((), "at"), (("CONDA_PREFIX",), "conda"), (("CONDA_PREFIX", "VIRTUAL_ENV"), "venv")]
)
def test_a_script_runs_with_the_interpreter_of_the_activated_environment(
    tmp_path: Path, variables: tuple[str, ...], expected: str
) -> None:
    own = {"CONDA_PREFIX": tmp_path / "conda", "VIRTUAL_ENV": tmp_path / "venv"}
    for folder in (tmp_path / "at", tmp_path / "conda"):
        (folder / "bin").mkdir(parents=True)
    prefix = environment(tmp_path)
    (prefix / "bin" / "torchrun").write_text(f"#!{prefix}/bin/python\nimport sys\nprint(sys.argv[1:])\n")
    _, programs = environment_programs(tmp_path / "made", at=str(tmp_path / "at"), prefix=prefix)
    for folder in (tmp_path / "at", tmp_path / "conda", prefix):
        (folder / "bin" / "python").unlink(missing_ok=True)
        (folder / "bin" / "python").write_text(f'#!/bin/sh\necho {folder.name}\nexec {sys.executable} "$@"\n')
        (folder / "bin" / "python").chmod(0o755)
    done = subprocess.run(
        [programs.source / "torchrun", "--x", "a b"],
        env={name: str(own[name]) for name in variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{expected}\n['--x', 'a b']\n"
