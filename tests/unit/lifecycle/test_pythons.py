"""Lifecycle and common code run on the Python of each AMI: by their text everywhere, and truly where it is here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from node_python import PYTHONS, interpreter, node_sources, unions

TOO_NEW = {
    "a union in an annotation": "def f(x: int | None) -> None: ...\n",
    "a union in an alias": "A = int | None\n",
    "a union of classes": "class K: ...\ndef f(x: object) -> bool:\n    return isinstance(x, K | int)\n",
    "match": "def f(x: int) -> int:\n    match x:\n        case 1:\n            return 2\n    return 3\n",
    "keywords only": "from dataclasses import dataclass\n@dataclass(kw_only=True)\nclass K:\n    x: int\n",
    "slots": "from dataclasses import dataclass\n@dataclass(slots=True)\nclass K:\n    x: int\n",
    "zip with strict": "print(list(zip([1], [2], strict=True)))\n",
    "a method of Path": "from pathlib import Path\nPath('x').hardlink_to('y')\n",
    "a name of datetime": "from datetime import UTC\nprint(UTC)\n",
    "pairwise": "import itertools\nprint(list(itertools.pairwise([1, 2])))\n",
}


def complaints(path: Path, *, repository: Path) -> str:
    """What the tools of `make lint` and the search for unions say of a file as if it were a node's."""
    source, programs = path.read_text(), Path(sys.executable).parent
    vermin = [str(programs / "vermin"), "--quiet", "--no-tips", "--violations", "--target=3.9-", str(path)]
    ruff = [str(programs / "ruff"), "check", "--quiet", "--select=FA102", "--stdin-filename=lifecycle/new.py", "-"]
    told = []
    for command in (vermin, ruff):
        done = subprocess.run(
            command, input=source, cwd=repository, capture_output=True, text=True, check=False, timeout=60
        )
        told.append(done.stdout if done.returncode else "")
    return "".join([*told, *(f"line {line}: a union" for line in unions(source))])


@pytest.mark.parametrize("fault", TOO_NEW)
def test_what_python_39_cannot_run_is_found(fault: str, tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text(TOO_NEW[fault])
    assert complaints(path, repository=repository)


def test_what_python_39_runs_is_not_complained_about(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "fine.py"
    path.write_text("import os\nfrom typing import Optional\nX: Optional[int] = os.O_RDWR | os.O_CREAT\nY = {} | {}\n")
    assert complaints(path, repository=repository) == ""


def test_no_file_of_a_node_has_a_union_that_is_evaluated(repository: Path) -> None:
    found = [f"{path}:{line}" for path in node_sources(repository) for line in unions(path.read_text())]
    assert found == []


def test_make_lint_asks_for_python_39(repository: Path) -> None:
    assert (
        "vermin --quiet --no-tips --violations --target=3.9- lifecycle containers/common"
        in (repository / "Makefile").read_text()
    )


def python_of(setting: str) -> str:
    found = interpreter(setting)
    if found is None:
        major, minor = PYTHONS[setting]
        pytest.skip(f"no Python {major}.{minor} runs here: none in PATH, and {setting} names none")
    return found


def bundle(folder: Path, repository: Path) -> Path:
    """As it lies on a node, where S3 has kept no modes."""
    for source in (repository / "lifecycle", repository / "containers/common"):
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for script in folder.glob("*.sh"):
        script.chmod(0o644)
    settings = {"cluster_name": "local", "users": [], "fsx_mount_path": "/fsx", "events_path": "/var/log/events.jsonl"}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


EVERY_MODULE = """
import importlib, pkgutil, sys
import holdfast_common, holdfast_lifecycle
for package in (holdfast_common, holdfast_lifecycle):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print(len([name for name in sys.modules if name.startswith("holdfast_")]))
"""


@pytest.mark.parametrize("setting", PYTHONS)
def test_every_module_of_a_node_is_imported_by_its_python(setting: str, repository: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python_of(setting), "-S", "-W", "error", "-c", EVERY_MODULE],
        env={"PYTHONPATH": str(bundle(tmp_path / "bundle", repository)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    modules = [path for path in node_sources(repository) if path.name != "__main__.py"]
    assert int(done.stdout) == len(modules)


RUN = """
import sys
from pathlib import Path
from holdfast_lifecycle import main
from holdfast_lifecycle.model import context
context.own_addresses = lambda: {"10.1.0.12"}
bundle, root, hook = sys.argv[1:]
arguments = ["--hook", hook, "--config", bundle + "/config.json", "--only", "job_environment"]
sys.exit(main(arguments, root=Path(root)))
"""


@pytest.mark.parametrize("setting", PYTHONS)
@pytest.mark.parametrize("hook", ["OnCreate", "OnInitComplete"])
def test_a_step_runs_under_the_python_of_a_node(setting: str, hook: str, repository: Path, tmp_path: Path) -> None:
    python, place = python_of(setting), bundle(tmp_path / "bundle", repository)
    groups = [
        {"Name": "controller", "Instances": [{"InstanceId": "i-0", "CustomerIpAddress": "10.1.0.4"}]},
        {"Name": "workers", "Instances": [{"InstanceId": "i-1", "CustomerIpAddress": "10.1.0.12"}]},
    ]
    (tmp_path / "resources.json").write_text(json.dumps({"InstanceGroups": groups}))
    done = subprocess.run(
        [python, "-S", "-c", RUN, str(place), str(tmp_path / "root"), hook],
        env={
            **os.environ,
            "PYTHONPATH": str(place),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SAGEMAKER_RESOURCE_CONFIG_PATH": str(tmp_path / "resources.json"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"begins {hook}" in done.stdout
    assert "lifecycle: job_environment: done" in done.stdout


@pytest.mark.parametrize("setting", [*PYTHONS, ""])
@pytest.mark.parametrize(("script", "hook"), [("on_create.sh", "OnCreate"), ("on_init_complete.sh", "OnInitComplete")])
def test_the_scripts_run_from_anywhere_without_modes_and_say_their_hook(
    setting: str, script: str, hook: str, repository: Path, tmp_path: Path
) -> None:
    python = python_of(setting) if setting else "/usr/bin/python3"
    place = bundle(tmp_path / "bundle", repository)
    resources = tmp_path / "resources.json"
    resources.write_text('{"InstanceGroups": [{"Name": "controller", "Instances": null}]}')
    done = subprocess.run(
        ["bash", str(place / script), "--plan"],
        cwd="/",
        env={
            "PATH": "/usr/bin:/bin",
            "HOLDFAST_PYTHON": python,
            "HOLDFAST_PROVISIONING_LOG": "",
            "PYTHONDONTWRITEBYTECODE": "1",
            "SAGEMAKER_RESOURCE_CONFIG_PATH": str(resources),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1, done.stderr
    assert f"but {resources} has only none" in done.stdout
    parsed = subprocess.run(
        ["bash", "-x", str(place / script), "--only", "users"],
        env={"PATH": "/usr/bin:/bin", "HOLDFAST_PYTHON": "/bin/true", "HOLDFAST_PROVISIONING_LOG": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    (last,) = [line for line in parsed.stderr.splitlines() if "/bin/true -S" in line]
    assert last.rpartition("--hook ")[2].split()[0] == hook
    assert last.endswith("--only users")
