"""
The images are built and run, where buildah, podman and mmdebstrap are installed.

The base is made here from Debian's packages and this environment's torch, so nothing is pulled from a registry of
images; with it the builds take every step but the installation of EFA and of wheels.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from waiting import eventually

from holdfast.localcloud.containers import Buildah, PackagesError, build, make_base

TOOLS = ("buildah", "podman", "mmdebstrap")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=f"needs root and {', '.join(MISSING or TOOLS)}"),
]
BASE, IMAGE = "localhost/holdfast-base:test", "localhost/holdfast-training:test"
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
AGENT = "localhost/holdfast-health-agent:test"
GPU_LOST = "6,1042,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
"""A record as /dev/kmsg gives it."""
PROGRAM = """
import os, signal, torch, holdfast_runtime as holdfast
model = torch.nn.Linear(4, 4)
run = holdfast.Run(model, torch.optim.SGD(model.parameters(), lr=0.1))
marker = "/tmp/killed"
for step in run.steps(8):
    with step:
        model(torch.ones(2, 4)).sum().backward()
        if step.number == 3 and run.rank == 1 and not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        step.update()
if run.is_logger:
    print("trained", run.step, "generation", run.generation, "user", os.getuid())
"""


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """Images of their own, away from those of the machine."""
    folder = tmp_path_factory.mktemp("images")
    storage = Buildah(folder)
    try:
        make_base(storage, tag=BASE)
        yield storage
    except PackagesError as error:
        pytest.skip(str(error))
    finally:
        _podman(storage, "system", "reset", "--force")
        shutil.rmtree(folder, ignore_errors=True)
        for group in Path("/sys/fs/cgroup").glob("**/libpod_parent"):
            for leaf in sorted(group.rglob("*/"), reverse=True):
                leaf.rmdir()
            group.rmdir()


def test_the_image_is_built_and_trains_through_the_loss_of_a_rank(
    storage: Buildah, repository: Path, tmp_path: Path
) -> None:
    build(storage, containers=repository / "containers", base=BASE, tag=IMAGE)
    (tmp_path / "program.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)

    said = _run(storage, "--nproc-per-node", "2", "--spares", "1", "/job/program.py", folder=tmp_path)

    assert "trained 8 generation 3 user 10001" in said


def test_the_image_refuses_what_cannot_be_with_one_message(storage: Buildah, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"--nproc-per-node is 0; allowed: 1 or more"):
        _run(storage, "--nproc-per-node", "0", "/job/program.py", folder=tmp_path)


def test_the_agents_image_judges_a_kernel_log_with_the_rights_that_the_chart_leaves_it(
    storage: Buildah, repository: Path, tmp_path: Path
) -> None:
    build(storage, containers=repository / "containers", base=BASE, tag=AGENT, image="health-agent")
    log, events = tmp_path / "kmsg", tmp_path / "events.jsonl"
    log.touch()
    rights = ["--read-only", "--user", "0:0", "--cap-drop", "all", "--cap-add", "SYSLOG"]
    rights += ["--security-opt", "no-new-privileges", "--tmpfs", "/run/holdfast", "--tmpfs", "/tmp"]
    paths = {"kernel_log.path": log.name, "events.path": events.name, "state.path": "state.json"}
    told = [word for key, name in paths.items() for word in ("--set", f"{key}=/job/{name}")]
    told += ["--set", "remedies.mode=observe", "--set", "mounts.paths=", "--set", "disks.paths="]
    running = [
        "run",
        "--detach",
        "--network",
        "none",
        *LIMITS,
        "--volume",
        f"{tmp_path}:/job",
        *rights,
        AGENT,
        "run",
        *told,
    ]
    container = _podman(storage, *running, options=_engine()).strip()
    try:
        eventually(lambda: "agent_started" in _text(events), "an agent that runs", within_s=60)
        with log.open("a") as file:
            file.write(GPU_LOST)
        eventually(lambda: '"verdict"' in _text(events), "its verdict", within_s=30)
        asking = ["sh", "-c", "python3 -m holdfast_agent status --json || test $? -eq 1"]
        status = _podman(storage, "exec", container, *asking, options=_engine())
        _podman(storage, "stop", "--time", "20", container, options=_engine())
        code = _podman(storage, "inspect", "--format", "{{.State.ExitCode}}", container)
    finally:
        _podman(storage, "rm", "--force", container, options=_engine())

    (verdict,) = [event for event in map(json.loads, _text(events).splitlines()) if event["kind"] == "verdict"]
    assert (verdict["fault"], verdict["action"], verdict["detail"]["code"]) == ("gpu-lost", "replace", 79)
    assert [one["fault"] for one in json.loads(status)["incidents"]] == ["gpu-lost"]
    assert code.strip() == "0"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _podman(storage: Buildah, *arguments: str, options: Sequence[str] = ()) -> str:
    """What podman prints; its errors fail the test."""
    command = ["podman", *storage.options, *options, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"podman {' '.join(arguments[:3])}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
    return done.stdout


def _run(storage: Buildah, *arguments: str, folder: Path) -> str:
    mount = ["--volume", f"{folder}:/job:ro"]
    return _podman(storage, "run", "--rm", "--network", "none", *LIMITS, *mount, IMAGE, *arguments, options=_engine())


def _engine() -> list[str]:
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []
    return [*runtime, "--cgroup-manager", "cgroupfs"]
