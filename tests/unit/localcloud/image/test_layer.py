"""The image of a node: what the layer holds, which Python it names, what the list of stand-ins promises."""

import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.localcloud import image
from holdfast.localcloud.image import Interpreter, LayerEntry, build, layer, stand_ins
from holdfast.localcloud.image import __file__ as layers___file__

PYTHON_39 = Interpreter(version=(3, 9), executable=Path("/opt/p/bin/python3.9"), prefix=Path("/opt/p"), note="a test's")


def rendered(orchestrator: str = "slurm") -> dict[str, LayerEntry]:
    return layer(orchestrator=orchestrator, interpreter=PYTHON_39, programs_python="/usr/bin/python3.11")


def text(entries: dict[str, LayerEntry], path: str) -> str:
    return (entries[path].content or b"").decode()


def program(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_slurm_is_under_opt_slurm_and_etc_slurm_leads_there():
    entries = rendered()
    assert entries["/etc/slurm"].link == "/opt/slurm/etc"
    assert "${SLURM_DB_PASSWORD}" in text(entries, "/opt/slurm/etc/slurmdbd.conf.template")
    assert "/opt/slurm/sbin/slurmd -D -s -b $SLURMD_OPTIONS" in text(entries, "/etc/systemd/system/slurmd.service")
    assert not [path for path in rendered("eks") if path.startswith("/opt/slurm")]


@pytest.mark.parametrize(("orchestrator", "version"), [("slurm", '"22.04"'), ("eks", '"2023"')])
def test_os_release_is_that_of_the_ami(orchestrator: str, version: str):
    assert f"VERSION_ID={version}" in text(rendered(orchestrator), "/usr/lib/os-release")


def test_no_entry_replaces_a_link_of_the_machines_root():
    """A folder in the layer at /bin or /lib would hide /usr/bin behind the link."""
    linked = ("/bin/", "/sbin/", "/lib/", "/lib64/", "/var/run/")
    assert not [path for path in (*rendered(), *rendered("eks")) if path.startswith(linked)]


def test_every_listed_stand_in_is_a_program_of_the_layer_and_can_be_called():
    entries = rendered()
    for one in stand_ins():
        assert entries[one.path].mode == 0o755, one.path
        module, _, function = one.call.partition(":")
        source = (Path(layers___file__).parent / "node/standins" / f"{module}.py").read_text()
        assert f"def {function}(" in source, one.call
        assert one.answers
        assert one.why


def test_every_stand_in_module_is_listed():
    source = Path(layers___file__).parent / "node/standins"
    modules = {path.stem for path in source.glob("*.py")} - {"__init__", "common"}
    assert {one.call.partition(":")[0] for one in stand_ins()} == modules


@pytest.mark.documented("HP-94")
def test_an_interpreter_of_the_path_is_taken_if_it_runs_and_has_the_amis_version(tmp_path: Path):
    program(tmp_path, "python3.9", """echo '[[3, 9], "/p", "/p/bin/python3.9"]'""")
    found = image.find("eks", environ={"PATH": str(tmp_path)})
    assert (found.version, found.note) == ((3, 9), "python3.9 of PATH")


def test_the_setting_goes_over_the_path(tmp_path: Path):
    program(tmp_path, "python3.9", """echo '[[3, 9], "/p", "/p/bin/python3.9"]'""")
    other = program(tmp_path / "b", "mine", """echo '[[3, 9], "/q", "/q/bin/python3.9"]'""")
    found = image.find("eks", environ={"PATH": str(tmp_path), "HOLDFAST_PYTHON_EKS": str(other)})
    assert (found.prefix, found.note) == (Path("/q"), "python3.9 of HOLDFAST_PYTHON_EKS")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 127", r"python3\.9 \(PATH\) does not run"),
        ("""echo '[[3, 12], "/p", "/p/bin/p"]'""", r"is Python 3\.12"),
        ("echo nonsense", "does not run"),
    ],
)
def test_a_shim_that_fails_or_lies_leaves_the_machines_own_python_and_says_why(tmp_path: Path, body: str, why: str):
    program(tmp_path, "python3.9", body)
    found = image.find("eks", environ={"PATH": str(tmp_path)})
    assert found.note.startswith("the machine's own python 3.")
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(found.note)


def test_without_any_the_setting_is_named(tmp_path: Path):
    found = image.find("slurm", environ={"PATH": str(tmp_path)})
    assert "python3.10 is not on the PATH and HOLDFAST_PYTHON_SLURM is not set" in found.note


def test_an_unknown_orchestrator_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="must be one of slurm, eks, got 'nomad'"):
        build(tmp_path, orchestrator="nomad")


def test_a_layer_is_rendered_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    first = build(tmp_path, orchestrator="slurm")
    marks = first.path.stat().st_ino
    assert build(tmp_path, orchestrator="slurm") == first
    assert first.path.stat().st_ino == marks
    assert [path.name for path in tmp_path.iterdir()] == [first.path.name]
    assert stat.S_IMODE((first.path / "etc/sudoers.d/90-hyperpod").stat().st_mode) == 0o440
    assert list((first.path / "usr/local/lib/holdfast/systemctl/__pycache__").iterdir())
    assert first.notes[0] in (first.path / "etc/holdfast-image").read_text()


def test_a_job_without_an_environment_has_the_training_environments_python_and_scripts_have_the_amis(tmp_path: Path):
    wrapper = text(rendered(), "/usr/local/bin/python3")
    wrapper = wrapper.replace("/opt/holdfast/env/bin", str(tmp_path / "env")).replace(
        "/opt/holdfast/python/bin", str(tmp_path / "ami")
    )
    program(tmp_path / "env", "python", "echo training")
    program(tmp_path / "ami", "python3", "echo ami")

    def taken(**variables: str) -> str:
        return subprocess.run(["sh", "-c", wrapper], env=variables, capture_output=True, text=True, check=True).stdout

    assert taken() == "ami\n"
    assert taken(SLURM_JOB_ID="1") == "training\n"
    assert taken(SLURM_JOB_ID="1", VIRTUAL_ENV="/fsx/venv") == "ami\n"
    assert taken(SLURM_JOB_ID="1", CONDA_PREFIX="/fsx/conda") == "ami\n"
    assert "SLURM_JOB_ID" not in text(rendered("eks"), "/usr/local/bin/python3")


def test_a_login_shell_leaves_path_as_it_is():
    profile = text(rendered(), "/etc/profile")
    shown = subprocess.run(
        ["sh", "-c", f"{profile}\necho $PATH"], env={"PATH": "/fsx/venv/bin:/usr/bin"}, capture_output=True, text=True
    )
    assert shown.stdout.startswith("/fsx/venv/bin:")
    assert "PATH=" not in profile


def test_the_aws_cli_goes_by_the_file_where_the_environment_is_empty(tmp_path: Path):
    script = text(rendered(), "/usr/local/bin/aws")
    cli = tmp_path / "share/holdfast/aws-cli/bin"
    cli.parent.mkdir(parents=True)
    program(cli, "python", 'echo "$@"; env | grep ^AWS_ | sort')
    (tmp_path / "aws").write_text("AWS_ENDPOINT_URL=http://10.1.255.254:5710\nAWS_REGION=us-west-2\nPATH=/wrong\n")
    script = script.replace("/opt/holdfast/env", str(tmp_path)).replace("/etc/holdfast/aws", str(tmp_path / "aws"))
    done = subprocess.run(
        ["/bin/sh", "-c", script, "aws", "s3", "ls"],
        env={"AWS_REGION": "eu-west-1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "-I -m awscli s3 ls",
        "AWS_ENDPOINT_URL=http://10.1.255.254:5710",
        "AWS_REGION=eu-west-1",
    ]
