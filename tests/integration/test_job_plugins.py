"""Plugins for jobs, in the steps of a real Slurm."""

import getpass
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_slurm import BareSlurm, bare_slurm

from holdfast.localcloud.job_plugins import compile_into, plugstack_lines
from holdfast.localcloud.spank import cannot_compile

pytestmark = [pytest.mark.root, pytest.mark.slurm]

PROGRAMS = "/opt/holdfast/env/bin"
LEFT_BY_SCRIPTS = """\
# made by lifecycle scripts
HOLDFAST_CLUSTER=of-scripts
NOTE='two words'
PYTHONPATH=/opt/holdfast/lib
not a name=x
"""
OF_THE_SERVICE = "HOLDFAST_CLUSTER=of-the-service\nHOLDFAST_INSTANCE_ID=i-here\nAWS_REGION=us-west-2\n"


@pytest.fixture(scope="module")
def slurm() -> Iterator[BareSlurm]:
    if problems := cannot_compile():
        pytest.skip("; ".join(problems))
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    try:
        (folder / "left").write_text(LEFT_BY_SCRIPTS)
        (folder / "service").write_text(OF_THE_SERVICE)
        compile_into(folder / "plugins")
        files = (str(folder / "left"), str(folder / "absent"), str(folder / "service"))
        with bare_slurm(folder, nodes=1, plugstack=plugstack_lines(folder / "plugins", variables=files)) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment(slurm: BareSlurm, **given: str) -> dict[str, str]:
    """What a task finds whose submitter has these variables, beside a PATH."""
    words = {"PATH": "/usr/bin:/bin", "USER": getpass.getuser(), **given}
    program = ["env", "-i", f"SLURM_CONF={slurm.environment['SLURM_CONF']}", *(f"{k}={v}" for k, v in words.items())]
    lines = slurm.run([*program, "srun", "env"]).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_a_task_finds_the_variables_of_its_node(slurm: BareSlurm) -> None:
    found = environment(slurm)
    assert (found["HOLDFAST_CLUSTER"], found["HOLDFAST_INSTANCE_ID"]) == ("of-scripts", "i-here")
    assert (found["NOTE"], found["AWS_REGION"], found["PYTHONPATH"]) == ("two words", "us-west-2", "/opt/holdfast/lib")
    assert "not a name" not in found


def test_what_a_job_brings_wins_except_for_the_names_of_the_node(slurm: BareSlurm) -> None:
    found = environment(slurm, AWS_REGION="eu-west-1", NOTE="mine", HOLDFAST_INSTANCE_ID="i-of-the-controller")
    assert (found["AWS_REGION"], found["NOTE"]) == ("eu-west-1", "mine")
    assert found["HOLDFAST_INSTANCE_ID"] == "i-here"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/usr/bin:/bin", f"/usr/bin:/bin:{PROGRAMS}"),
        ("/fsx/venv/bin:/usr/local/bin:/usr/bin", f"/fsx/venv/bin:/usr/local/bin:/usr/bin:{PROGRAMS}"),
        ("/usr/bin:/fsx/tools", f"/usr/bin:/fsx/tools:{PROGRAMS}"),
        (f"{PROGRAMS}:/usr/bin", f"{PROGRAMS}:/usr/bin"),
        ("/fsx/a", f"/fsx/a:{PROGRAMS}"),
    ],
)
def test_folders_of_the_user_precede_those_of_the_node(slurm: BareSlurm, given: str, found: str) -> None:
    lines = slurm.run(["srun", f"--export=SLURM_CONF,PATH={given}", "/usr/bin/env"]).splitlines()
    assert f"PATH={found}" in lines


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_without_its_interpreter_is_named_and_no_other_takes_its_place(
    slurm: BareSlurm, tmp_path: Path, name: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to("/usr/bin/python3.99")
    (tmp_path / "bin" / "python").symlink_to("python3")
    given = f"--export=SLURM_CONF,{name}={tmp_path},PATH={tmp_path}/bin:{PROGRAMS}:/usr/bin"
    done = subprocess.run(
        ["srun", "--ntasks=2", given, "/usr/bin/env"],
        env=slurm.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.count(f"PATH={tmp_path}/bin:/usr/bin\n") == 2
    said = f"{name} is {tmp_path}: its interpreter /usr/bin/python3.99 is not on this node; make the environment again"
    assert done.stderr.count(said) == 1


@pytest.mark.parametrize("name", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_environment_with_its_interpreter_keeps_the_programs_of_the_node_behind_it(
    slurm: BareSlurm, tmp_path: Path, name: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/env")
    given = f"--export=SLURM_CONF,{name}={tmp_path},PATH={tmp_path}/bin:/usr/bin"
    lines = slurm.run(["srun", given, "/usr/bin/env"]).splitlines()
    assert f"PATH={tmp_path}/bin:/usr/bin:{PROGRAMS}" in lines


def test_a_python_path_of_the_user_is_first(slurm: BareSlurm) -> None:
    assert environment(slurm, PYTHONPATH="/fsx/mine")["PYTHONPATH"] == "/fsx/mine:/opt/holdfast/lib"


@pytest.mark.e2e
def test_a_batch_job_gets_them_too_and_the_folder_of_its_output_is_made(slurm: BareSlurm) -> None:
    slurm.run(
        ["sbatch", "--wait", "--output=new/%j/a.out", "--error=err/a.err", "--wrap", "echo $HOLDFAST_INSTANCE_ID"]
    )
    (output,) = slurm.folder.glob("new/*/a.out")
    assert output.read_text() == "i-here\n"
    assert (slurm.folder / "err" / "a.err").is_file()
