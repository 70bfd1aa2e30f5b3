"""``holdfast packages``: names, and paths in scripts."""

from pathlib import Path

import pytest

from holdfast.cli.submission import check_requirements, move_scripts
from holdfast.cli.terminal import CommandError


def test_an_environment_is_called_as_the_folder_of_its_requirements(tmp_path: Path) -> None:
    file = tmp_path / "my repo (2)" / "requirements.txt"
    file.parent.mkdir()
    file.write_text("einops\n")
    assert check_requirements(file, name=None) == "my-repo-2"
    assert check_requirements(file, name="llama-8b") == "llama-8b"


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a b", "a" * 65])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "requirements.txt").write_text("")
    with pytest.raises(CommandError, match=r"allowed: letters, digits, '\.', '_' and '-', 64 at most"):
        check_requirements(tmp_path / "requirements.txt", name=name)


def test_a_folder_is_no_requirements_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="which is no file; allowed: a requirements file"):
        check_requirements(tmp_path, name=None)


def test_scripts_begin_with_the_interpreter_that_nodes_have(tmp_path: Path) -> None:
    made = tmp_path / "llama"
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_text(f"home = /usr/bin\ncommand = /usr/bin/python3 -m venv {made}\n")
    (made / "bin" / "torchrun").write_text(f"#!{made}/bin/python\n")
    (made / "bin" / "activate").write_text(f'VIRTUAL_ENV="{made}"\n')
    (made / "bin" / "ninja").write_bytes(b"\x7fELF\0" + str(made).encode())
    (made / "bin" / "python").symlink_to("/usr/bin/python3")

    move_scripts(made, to="/fsx/envs/llama")

    assert (made / "bin" / "torchrun").read_text() == "#!/fsx/envs/llama/bin/python\n"
    assert (made / "bin" / "activate").read_text() == 'VIRTUAL_ENV="/fsx/envs/llama"\n'
    assert str(made).encode() in (made / "bin" / "ninja").read_bytes()
    assert str(made) not in (made / "pyvenv.cfg").read_text()
