"""The training image under srun --container-image: a rank is killed inside, and no bit differs from a run outside."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_lab import SlurmLab

from holdfast.localcloud.containers import BUILD_TOOLS, PackagesError, build_training_image, missing

MISSING = [*missing(), *(f"needs {tool}" for tool in BUILD_TOOLS if shutil.which(tool) is None)]
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.slurm,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING)),
]
STEPS = 24
PROGRAM = """
import os, pathlib, runpy, signal, sys, threading, time

out = pathlib.Path(sys.argv[1])
killed, lines = out / "killed", out / "rank1.jsonl"

def kill_in_the_middle():
    while not lines.exists() or lines.read_text().count("\\n") < 6:
        time.sleep(0.01)
    killed.write_text(pathlib.Path("/etc/hostname").read_text())
    os.kill(os.getpid(), signal.SIGKILL)

if "kill" in sys.argv and os.environ["RANK"] == "1" and not killed.exists():
    threading.Thread(target=kill_in_the_middle, daemon=True).start()
runpy.run_path("/fsx/runtime_program.py", run_name="__main__")
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[SlurmLab]:
    lab = SlurmLab(tmp_path_factory.mktemp("home"))
    try:
        build_training_image(lab.store, containers=repository / "containers")
        shared = lab.workers[0].root / "fsx"
        shutil.copyfile(repository / "tests/integration/runtime_program.py", shared / "runtime_program.py")
        (shared / "program.py").write_text(PROGRAM)
        for package in ("common/holdfast_common", "training/holdfast_runtime"):
            shutil.copytree(repository / "containers" / package, shared / "lib" / Path(package).name)
        yield lab
    except PackagesError as error:
        pytest.skip(str(error))
    finally:
        lab.close()


def train(lab: SlurmLab, name: str, *options: str, launcher: list[str], kill: bool = False) -> Path:
    """Two nodes with a rank and a warm spare each. Returns the folder of the results."""
    out = f"/fsx/{name}"
    lab.controller.run(["install", "-d", "-o", "ubuntu", out], timeout_s=10)
    arguments = ["--nproc-per-node", "1", "--spares", "1", "/fsx/program.py", out, str(STEPS), "0.05"]
    done = lab.run("srun", "-N2", *options, *launcher, *arguments, *(["kill"] if kill else []), timeout_s=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return lab.workers[0].root / out.lstrip("/")


def bits(folder: Path) -> dict[tuple[int, int], tuple[str, str]]:
    """Loss and digest of each step of each rank, which must be the same however often it was written."""
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for rank in (0, 1):
        for line in (folder / f"rank{rank}.jsonl").read_text().splitlines():
            record = json.loads(line)
            said = (record["loss"], record["digest"])
            assert found.setdefault((rank, record["step"]), said) == said
    return found


def test_a_rank_killed_in_its_container_is_recovered_with_the_bits_of_a_run_outside(lab: SlurmLab) -> None:
    outside = train(
        lab, "outside", launcher=["env", "PYTHONPATH=/fsx/lib", "python", "-m", "holdfast_runtime.launcher"]
    )
    inside = train(
        lab,
        "inside",
        "--container-image=holdfast-training",
        "--container-mounts=/fsx:/fsx",
        launcher=["holdfast-run"],
        kill=True,
    )

    assert (inside / "killed").read_text().strip() in [node.spec.hostname for node in lab.workers]
    records = [json.loads(line) for line in (inside / "rank1.jsonl").read_text().splitlines()]
    assert {record["generation"] for record in records} > {records[0]["generation"]}
    assert sorted(bits(inside)) == [(rank, step) for rank in (0, 1) for step in range(STEPS)]
    assert bits(inside) == bits(outside)


def test_the_image_refuses_what_cannot_be_with_one_message(lab: SlurmLab) -> None:
    done = lab.run(
        "srun", "-N1", "--container-image=holdfast-training", "holdfast-run", "--nproc-per-node", "0", "/fsx/program.py"
    )
    assert done.returncode == 2
    assert "--nproc-per-node is 0; allowed: 1 or more" in done.stderr
