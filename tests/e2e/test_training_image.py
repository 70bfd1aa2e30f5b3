"""
The training image is built and run, where buildah, podman and mmdebstrap are installed.

The base is made here from Debian's packages and this environment's torch, so nothing is pulled from a registry of
images; with it the build takes every step but the installation of EFA.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

TOOLS = ("buildah", "podman", "mmdebstrap")
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=f"needs root and {', '.join(MISSING or TOOLS)}"),
]
BASE, IMAGE = "localhost/holdfast-base:test", "localhost/holdfast-training:test"
PYTHON_OF_DEBIAN = "usr/lib/python3/dist-packages"
PACKAGES = ("torch", "torchgen", "numpy", "numpy.libs", "sympy", "mpmath", "networkx", "jinja2", "markupsafe")
MODULES = ("filelock", "fsspec", "typing_extensions.py", f"torch-{torch.__version__}.dist-info")

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
    print("trained", run.step, "epoch", run.epoch, "user", os.getuid())
"""


class Storage:
    """Images of their own, away from those of the machine."""

    def __init__(self, folder: Path) -> None:
        self._options = ["--root", str(folder / "images"), "--runroot", str(folder / "run")]

    def run(self, tool: str, *arguments: str, options: Sequence[str] = ()) -> str:
        """What a command prints; its errors fail the test."""
        done = subprocess.run(
            [tool, *self._options, *options, *arguments], capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{tool} {' '.join(arguments[:3])}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        return done.stdout


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder = tmp_path_factory.mktemp("images")
    storage = Storage(folder)
    try:
        _make_base(storage, folder)
        yield storage
    finally:
        storage.run("podman", "system", "reset", "--force")
        shutil.rmtree(folder, ignore_errors=True)
        for group in Path("/sys/fs/cgroup").glob("**/libpod_parent"):
            for leaf in sorted(group.rglob("*/"), reverse=True):
                leaf.rmdir()
            group.rmdir()


def _make_base(storage: Storage, folder: Path) -> None:
    archive = folder / "base.tar"
    command = ["mmdebstrap", "--variant=minbase", "--include=python3,libgomp1", "bookworm", str(archive)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if made.returncode:
        pytest.skip(f"Debian's packages cannot be had: {made.stderr[-300:]}")
    container = storage.run("buildah", "from", "scratch").strip()
    storage.run("buildah", "add", container, str(archive), "/")
    root = Path(storage.run("buildah", "mount", container).strip())
    site = Path(torch.__file__).parents[1]
    for name in PACKAGES + MODULES:
        source, target = site / name, root / PYTHON_OF_DEBIAN / name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
    storage.run("buildah", "umount", container)
    storage.run("buildah", "commit", "--disable-compression", container, BASE)
    storage.run("buildah", "rm", container)


def test_the_image_is_built_and_trains_through_the_loss_of_a_rank(
    storage: Storage, repository: Path, tmp_path: Path
) -> None:
    containers = repository / "containers"
    arguments = [
        "--build-arg",
        f"BASE_IMAGE={BASE}",
        "--build-arg",
        "ACCELERATOR=cpu",
        "--isolation",
        "chroot",
        "--format",
        "docker",
    ]
    dockerfile = str(containers / "training" / "Dockerfile")
    storage.run("buildah", "build", *arguments, "--tag", IMAGE, "--file", dockerfile, str(containers))
    (tmp_path / "program.py").write_text(PROGRAM)
    tmp_path.chmod(0o755)

    said = _run(storage, "--nproc-per-node", "2", "--spares", "1", "/job/program.py", folder=tmp_path)

    assert "trained 8 epoch 3 user 10001" in said


def test_the_image_refuses_what_cannot_be_with_one_message(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"--nproc-per-node is 0; allowed: 1 or more"):
        _run(storage, "--nproc-per-node", "0", "/job/program.py", folder=tmp_path)


def _run(storage: Storage, *arguments: str, folder: Path) -> str:
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []
    options = [*runtime, "--cgroup-manager", "cgroupfs"]
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
    mount = ["--volume", f"{folder}:/job:ro"]
    return storage.run(
        "podman", "run", "--rm", "--network", "none", *limits, *mount, IMAGE, *arguments, options=options
    )
