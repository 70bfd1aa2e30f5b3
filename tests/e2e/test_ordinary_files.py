"""
Job files of as many kinds on one local cluster, each as its public source has the habit, submitted unchanged.

`tests/cases/ordinary_jobs/README.md` has their sources. What each has to print is written from the source.
"""

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ordinary_environments as made
import pytest
from submitted_jobs import SubmittedJobs, not_printed

from holdfast.localcloud.containers import ImageStore

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1800)]

CASES = Path(__file__).parents[1] / "cases" / "ordinary_jobs" / "slurm"
KINDS, AT_LEAST = 38, 35
GOOD = "COMPLETED"
TRAIN, CONDA, HF = "/fsx/envs/train", "/fsx/ubuntu/miniconda3", "/fsx/envs/hf"
CONTAINER = "nvcr.io#nvidia/pytorch:25.03-py3"
IGNORED_BYTES = 70 << 20  # more than one submission takes


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job file, and what its source says that it does."""

    file: str
    lines: tuple[str, ...]
    """Each is in a line of the output of its own. {job}, {home} and {bucket} are filled in."""
    folder: str = ""
    """What travels, where that is not the folder of the file."""
    words: tuple[str, ...] = ()
    user: str = "ubuntu"
    rows: int = 1
    why: str = ""
    """End of the reason of a job that fails; {nodes} is its last node."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A job file that needs what the local cluster lacks."""

    file: str
    words: tuple[str, ...]
    """All are in the one sentence of the refusal."""


def ranks(world: int, *, per_node: int, prefix: str = "") -> tuple[str, ...]:
    total = world * (world - 1) // 2
    return tuple(f"{prefix}rank {rank} of {world}, local rank {rank % per_node}: sum {total}" for rank in range(world))


def tasks(made_by: str, prefix: str, torch: str) -> tuple[str, ...]:
    return tuple(f"task {task}: {made_by} {prefix}, torch from {torch}" for task in range(2))


TABLE: tuple[Case | Refused, ...] = (
    Case(file="01-own-venv.sbatch", lines=(f"{TRAIN}/bin/python", *tasks("venv", TRAIN, TRAIN))),
    Case(
        file="02-conda-prefix.sbatch",
        lines=(*tasks("conda", f"{CONDA}/envs/train", f"{CONDA}/envs/train"), *ranks(2, per_node=1)),
    ),
    Case(file="03-torchrun.sbatch", lines=("Node IP: ", *ranks(2, per_node=1))),
    Case(file="04-lightning.sbatch", lines=ranks(8, per_node=8)),
    Case(file="05-megatron.sbatch", lines=ranks(16, per_node=8)),
    Case(file="06-memory.sbatch", lines=("MB per node: 1536000", "float32 ones: 1048576")),
    Case(file="07-cpus-per-task.sbatch", lines=tuple(f"task {task} of 12 threads tensor(3.)" for task in range(8))),
    Case(
        file="08-mpi.sbatch",
        lines=tuple(f"{by}: rank {rank} of 4, sum 6" for by in ("srun", "mpirun") for rank in range(4)),
    ),
    Case(
        file="09-pyxis.sbatch",
        lines=(f"0: {made.IMAGE_NAME}", f"1: {made.IMAGE_NAME}", *ranks(2, per_node=1, prefix=": ")),
    ),
    Case(file="10-sqsh.sbatch", lines=(made.IMAGE_NAME, made.IMAGE_NAME, *ranks(2, per_node=1))),
    Case(
        file="11-user-home.sbatch",
        user="alice",
        lines=("alice has {home}", "alice has {home}", *tasks("venv", "{home}/venv", TRAIN), "files: 2"),
    ),
    Case(
        file="12-repository/slurm/train.sbatch",
        folder="12-repository",
        lines=tuple(f"step {step} of 3: loss is finite: True" for step in range(3)),
    ),
    Case(
        file="13-logs/train.sbatch",
        lines=(*ranks(2, per_node=2), "fsdp_{job}.out", "fsdp_{job}.err"),
    ),
    Case(
        file="14-array.sbatch",
        rows=4,
        lines=(
            *(f"I am job {{job}}_{task}" for task in range(1, 5)),
            *(f"learning rate {rate}" for rate in ("0.1", "0.03", "0.01", "0.003")),
        ),
    ),
    Case(
        file="15-heterogeneous.sbatch",
        rows=2,
        lines=("critic answered 2 actors", "actor 0: reward 40", "actor 1: reward 42"),
    ),
    Case(file="16-dependency.sbatch", lines=("submitted ",)),
    Case(
        file="17-no-kill.sbatch",
        words=("--", "4"),
        lines=tuple(f"task {case % 2}: case {case} modelled, 8 values" for case in range(4)),
    ),
    Case(
        file="18-requeue-on-signal.sbatch",
        lines=(
            "attempt 0",
            "begins at step 0",
            "caught USR1",
            "attempt 1",
            "begins at a checkpoint",
            "trained to the end",
        ),
    ),
    Case(
        file="19-s3.sbatch",
        words=("--", "s3://{bucket}/ordinary"),
        lines=(
            *(f"to s3://{{bucket}}/ordinary/shards/shard-{number}.bin" for number in range(3)),
            "to s3://{bucket}/ordinary/manifest.json",
            "Total Objects: 5",
            "shards: 3",
        ),
    ),
    Case(file="20-hf-trainer.sbatch", lines=("trained 4 steps on 2 processes, finite: True",)),
    Case(
        file="21-slurm-folder/slurm/train.sbatch",
        lines=tuple(f"rank {rank} step {step}: finite: True" for rank in range(2) for step in range(2)),
    ),
    Case(
        file="22-multi-prog.sbatch",
        lines=("0: coordinator", "1: worker:1 offset:0", "2: evaluator on ip-", "3: worker:3 offset:1"),
    ),
    Case(file="23-node-loop.sbatch", lines=("8 GPUs on each of 2 nodes", *ranks(2, per_node=1, prefix="0: "))),
    Case(
        file="24-two-services.sbatch",
        lines=tuple(
            line.format(step) for step in range(2) for line in ("trainer 0: reward for step-{}", "served /step-{}")
        ),
    ),
    Case(file="25-ssh-hosts.sbatch", lines=(*(" slots=1",) * 2, *ranks(2, per_node=1))),
    Case(
        file="26-export-none.sbatch",
        lines=(
            "of the caller: nothing",
            *(f"rate 0.25, home /fsx/ubuntu, user ubuntu, python {TRAIN}/bin/python",) * 2,
        ),
    ),
    Case(
        file="27-sigterm.sbatch",
        lines=(" time is almost up", "checkpoint written: True", "the program ended with 0"),
    ),
    Case(file="28-singleton.sbatch", lines=("Submitted batch job", "link 1 begins", "link 1 ends")),
    Case(
        file="29-local-scratch.sbatch",
        lines=(*("/tmp/ubuntu/job-{job}",) * 2, "files on each node: 2 2", "scratch removed"),
    ),
    Case(
        file="30-python-batch.sbatch",
        lines=("job {job} of 2 nodes, rate 0.1", "0: ip-", "1: ip-", "all steps are done"),
    ),
    Case(
        file="31-odd-lines.sbatch",
        lines=("job <odd lines> with 2 tasks of 1", "0: task runs", "1: task runs"),
    ),
    Case(
        file="32-step-files.sbatch",
        lines=(
            "steps are done",
            *(
                line.format(task)
                for task in range(4)
                for line in ("first of task {}", "second of task {}", "warning of {}")
            ),
        ),
    ),
    Case(file="33-overlap.sbatch", lines=(*ranks(4, per_node=2), "monitored: 2 nodes")),
    Case(
        file="34-bad-exit.sbatch",
        lines=("rank 0 begins", "RuntimeError: loss is nan"),
        why=": rank 2 on {nodes}: RuntimeError: loss is nan",
    ),
    Case(file="35-xargs.sbatch", lines=(*(f"point {point} with 2 CPUs" for point in range(1, 7)), "left: ")),
    Case(
        file="36-conda-hook.sbatch",
        lines=("GPU 0: ", *tasks("conda", f"{CONDA}/envs/train", f"{CONDA}/envs/train")),
    ),
    Case(
        file="37-script-folder.sbatch",
        lines=("read from standard input: 37-script-folder.sbatch True",),
    ),
    Refused(
        file="38-other-cluster.sbatch",
        words=("invalid partition specified: gpu", "the cluster has partition dev: ", "options after the job file"),
    ),
)


class Cluster(SubmittedJobs):
    """The cluster with what its administrator and its users put on the file system before their first job."""

    ends_within_s = 420.0  # a requeued job waits for two minutes

    def __init__(self, product: Any) -> None:
        super().__init__(product)
        self.files = product.work / "files"
        shutil.copytree(CASES, self.files)
        checkpoints = self.files / "12-repository" / "checkpoints"
        checkpoints.mkdir()
        with (checkpoints / "last.pt").open("wb") as file:
            file.truncate(IGNORED_BYTES)
        (self.fsx,) = {path.parent for path in product.home.glob("fsx/*/checkpoints")}
        outputs = product.client("cloudformation").describe_stacks()["Stacks"]
        found = {one["OutputKey"]: one["OutputValue"] for stack in outputs for one in stack.get("Outputs", ())}
        self.bucket = found["DataBucketName"]
        self.home = self.account("alice")[5]
        assert self.home.startswith("/fsx/")
        self._put_environments()
        self._put_images()

    def _put_environments(self) -> None:
        made.make_venv(self.fsx / TRAIN.removeprefix("/fsx/"), at=TRAIN)
        made.make_venv(self.fsx / HF.removeprefix("/fsx/"), at=HF, requirements=CASES / "requirements.txt")
        made.make_conda(self.fsx / CONDA.removeprefix("/fsx/"), at=CONDA, environment="train")
        home = self.fsx / self.home.removeprefix("/fsx/")
        made.make_venv(home / "venv", at=f"{self.home}/venv", uses=TRAIN)
        self.give(home / "venv", to="alice")
        self.give(self.fsx / "ubuntu", to="ubuntu")

    def give(self, folder: Path, *, to: str) -> None:
        """As `chown -R`, by the accounts of the nodes."""
        uid, gid = map(int, self.account(to)[2:4])
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, uid, gid, follow_symlinks=False)

    def account(self, name: str) -> list[str]:
        return self.on_controller("getent", "passwd", name).strip().split(":")

    def _put_images(self) -> None:
        root = self.product.work / "root"
        made.make_image_root(root)
        made.add_image(ImageStore(home=self.product.home), root, names=(CONTAINER,))
        (self.fsx / "images").mkdir()
        squashed = self.fsx / "images" / "pytorch.sqsh"
        fast = ("-quiet", "-no-progress", "-noI", "-noD", "-noF", "-noX")
        subprocess.run(["mksquashfs", str(root), str(squashed), *fast], check=True)

    def on_controller(self, *argv: str) -> str:
        nodes = self.product.status()["nodes"]
        host = next(one["hostname"] for one in nodes if one["instance_group"] == "controller")
        return str(self.product.run("ssh", host, "--user", "root", "--", *argv).stdout)

    def submit(self, case: Case | Refused) -> "subprocess.CompletedProcess[str]":
        options: list[str] = []
        if isinstance(case, Case):
            options += ["--user", case.user]
            options += ["--folder", str(self.files / case.folder)] if case.folder else []
            options += [word.format(bucket=self.bucket) for word in case.words]
        done: subprocess.CompletedProcess[str] = self.product.run(
            "submit", str(self.files / case.file), "--json", *options, check=False
        )
        return done


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    work = tmp_path_factory.mktemp("files")
    product = new_product(work)
    users = {"users": [{"name": "alice", "uid": 2001}]}
    try:
        product.run("up", str(product.environment(workers=2, spares=1, lifecycle=users)))
        yield Cluster(product)
    except made.EnvironmentsError as error:
        pytest.skip(str(error))
    finally:
        product.run("down")
    assert not product.home.exists()


def test_the_table_has_a_kind_for_each_file_and_at_most_three_are_refused() -> None:
    listed = {f"{path.relative_to(CASES)}" for path in CASES.rglob("*.sbatch")} - {"stage.sbatch"}
    assert {case.file for case in TABLE} == listed
    assert len(TABLE) == KINDS
    assert sum(isinstance(case, Case) for case in TABLE) >= AT_LEAST


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.file.removesuffix(".sbatch"))
def test_a_job_file_does_what_its_source_says(cluster: Cluster, case: Case | Refused) -> None:
    submitted = cluster.submit(case)
    if isinstance(case, Refused):
        assert submitted.returncode != 0
        said = " ".join(submitted.stderr.split())
        assert "Traceback" not in said
        assert [word for word in case.words if word not in said] == [], said
        return
    assert submitted.returncode == 0, submitted.stderr
    job = str(json.loads(submitted.stdout)["job_id"])

    rows = cluster.ended(job)

    output = cluster.output(job)
    if case.why:
        assert rows[0]["why"].endswith(case.why.format(nodes=last_host(cluster, job))), output
    else:
        assert [row["state"] for row in rows] == [GOOD] * case.rows, (rows, output)
    lines = tuple(line.format(job=job, home=cluster.home, bucket=cluster.bucket) for line in case.lines)
    assert not_printed(lines, output) == [], output
    if case.file == "16-dependency.sbatch":
        check_chain(cluster, output)
    if case.file == "19-s3.sbatch":
        check_objects(cluster)
    if case.file == "28-singleton.sbatch":
        check_links(cluster, output)


def last_host(cluster: Cluster, job: str) -> str:
    """Of accounting: squeue leaves out the nodes on which a completing job has ended."""
    nodes = cluster.on_controller("sacct", "--noheader", "--parsable2", "-X", "-o", "NodeList", "-j", job).strip()
    return cluster.on_controller("scontrol", "show", "hostnames", nodes).split()[-1]


def check_links(cluster: Cluster, output: list[str]) -> None:
    """Each submits the next by its own script, which Slurm keeps in its spool folder."""
    for link in (2, 3):
        (job,) = [line.split()[-1] for line in output if "Submitted batch job" in line]
        assert [row["state"] for row in cluster.ended(job)] == [GOOD]
        output = cluster.output(job)
        assert [line for line in output if line.startswith("link")] == [f"link {link} begins", f"link {link} ends"]


def check_chain(cluster: Cluster, output: list[str]) -> None:
    (jobs,) = [line.split()[1:] for line in output if line.startswith("submitted ")]
    ended = {job: cluster.ended(job)[0] for job in jobs}
    assert [ended[job]["state"] for job in jobs] == [GOOD] * 3
    for before, after in itertools.pairwise(jobs):
        assert ended[after]["started"] >= ended[before]["ended"]
    said = [cluster.output(job) for job in jobs]
    assert said == [["stage prepare after none"], ["stage train after prepare"], ["stage evaluate after train"]]


def check_objects(cluster: Cluster) -> None:
    listed = cluster.product.client("s3").list_objects_v2(Bucket=cluster.bucket, Prefix="ordinary/")
    names = sorted(one["Key"] for one in listed["Contents"])
    shards = [f"ordinary/shards/{name}" for name in ("manifest.json", *(f"shard-{n}.bin" for n in range(3)))]
    assert names == ["ordinary/manifest.json", *shards]
