"""
Ten ordinary job files on one local cluster, submitted as a stranger would, behave as on HyperPod.

None of them writes events of ours.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from submitted_jobs import SubmittedJobs

from holdfast.localcloud import LocalCloud

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
ENDS_WITHIN_S = 240.0
GOOD = "COMPLETED"

DISTRIBUTED = """
import os
import torch.distributed as dist
dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of", dist.get_world_size(), flush=True)
dist.barrier()  # who leaves while another still connects breaks that one's connections
dist.destroy_process_group()
"""
FILES = {
    "torchrun.sbatch": """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint="$head:29500" train.py
""",
    "python.sbatch": """#!/bin/bash
#SBATCH --nodes=2
srun python -c 'import torch, os; print("task", os.environ["SLURM_PROCID"], torch.__version__ > "2")'
""",
    "gres.sbatch": """#!/bin/bash
#SBATCH --gres=gpu:8
#SBATCH --exclusive
srun bash -c 'echo "devices $CUDA_VISIBLE_DEVICES on node $SLURM_GPUS_ON_NODE"'
""",
    "per node.sbatch": """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
srun bash -c 'echo "devices $CUDA_VISIBLE_DEVICES"'
""",
    "array.sbatch": """#!/bin/bash
#SBATCH --array=0-2
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
""",
    "requeue.sbatch": """#!/bin/bash
#SBATCH --requeue
#SBATCH --open-mode=append
echo "attempt ${SLURM_RESTART_COUNT:-0}"
if [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then scontrol requeue "$SLURM_JOB_ID"; sleep 60; fi
""",
    "failing.sbatch": """#!/bin/bash
echo "about to look for the data"
echo "no such file: /fsx/data/train.bin" >&2
exit 3
""",
    "arguments.sbatch": """#!/bin/bash
./run.sh "$@" "$SLURM_JOB_NAME"
""",
    "auto resume.sbatch": """#!/bin/bash
#SBATCH --nodes 2
#SBATCH --exclusive
#SBATCH --open-mode=append
AUTO_RESUME=""
if [ -d "/opt/sagemaker_cluster" ]; then AUTO_RESUME="--auto-resume=1"; fi
srun $AUTO_RESUME ./train_auto_resume.sh
""",
    "launcher.sbatch": """#!/bin/bash
srun holdfast-run --nproc-per-node 2 script.py
""",
    "same folder.sbatch": """#!/bin/bash
python3 -m holdfast_runtime.runs "/fsx/checkpoints/$1" || exit 2
echo "goes on"
""",
    "sudo.sbatch": "#!/bin/bash\nsudo -n id -u\n",
    "sleeping.sbatch": "#!/bin/bash\nsleep 600\n",
    # As the developer guide has it, without its Conda environment.
    "train_auto_resume.sh": """#!/bin/bash
NODE_LIST=$(scontrol show jobid=$SLURM_JOBID | awk -F= '/NodeList=/{print $2}' | grep -v Exc)
MASTER_NODE=$(scontrol show hostname $NODE_LIST | head -n 1)
MASTER_ADDR=$(scontrol show node=$MASTER_NODE | awk -F= '/NodeAddr=/{print $2}' | awk '{print $1}')
torchrun --nnodes=$SLURM_NNODES --nproc_per_node=1 --node_rank=$SLURM_NODEID --master-addr=$MASTER_ADDR \\
    --master_port=1234 train.py || exit
# The first attempt meets a fault of its node, as a person or an agent marks it.
if [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then
    echo "waiting for a fault"
    until [ -e "/fsx/checkpoints/marked-$SLURM_JOB_ID" ]; do sleep 0.2; done
    exit 1
fi
echo "resumed after $SLURM_RESTART_COUNT"
""",
    "het.sbatch": """#!/bin/bash
#SBATCH --nodes=1 --ntasks=1
#SBATCH hetjob
#SBATCH --nodes=1 --ntasks=1
srun --het-group=0,1 --output %j_%t_log.out hostname
""",
    "shared.sbatch": """#!/bin/bash
#SBATCH --array=0-2 --output=shared.out --open-mode=append
echo "task $SLURM_ARRAY_TASK_ID"
""",
    "traceback.sbatch": """#!/bin/bash
#SBATCH --nodes=2
srun -l python raising.py
""",
    "raising.py": """import os, time
rank = int(os.environ["SLURM_PROCID"])
if rank == 0:
    time.sleep(60)
raise ValueError("bad shape")
""",
    "run.sh": '#!/bin/sh\nprintf "<%s>" "$@"\necho\n',
    "train.py": DISTRIBUTED,
    "script.py": 'import os\nprint("launched", os.environ["RANK"], flush=True)\n',
}


class Jobs(SubmittedJobs):
    """The folder of job files, and the cluster that they run on."""

    def __init__(self, product: Any) -> None:
        super().__init__(product)
        self.folder = product.work / "my jobs [x]"
        self.folder.mkdir()
        for name, text in FILES.items():
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)

    def submit(self, name: str, *words: str) -> str:
        done = self.product.run("submit", str(self.folder / f"{name}.sbatch"), "--json", *words)
        return str(json.loads(done.stdout)["job_id"])

    def controller(self, *argv: str) -> str:
        nodes = self.product.status()["nodes"]
        host = next(one["hostname"] for one in nodes if one["instance_group"] == "controller")
        return self.product.run("ssh", host, "--", shlex.join(argv)).stdout


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Jobs]:
    work = tmp_path_factory.mktemp("ordinary")
    product = new_product(work)
    try:
        product.run("up", str(product.environment(workers=2, spares=1)))
        yield Jobs(product)
    finally:
        product.run("down")
    assert not product.home.exists()


def test_the_first_job_of_the_page_runs_as_it_is_pasted(jobs: Jobs, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    block = page.partition("```sh\n")[2].partition("```")[0]
    pasted = block.partition("holdfast up local\n")[2].partition("holdfast down")[0]
    script = pasted.replace("/tmp/hello", str(tmp_path / "hello"))
    variables = {**os.environ, **jobs.product.variables, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-ec", script], env=variables, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nhello, world\n") == 1
    waits = r"^2 .* PENDING .* waits: its start time is in the future \(BeginTime\)"
    assert re.search(waits, done.stdout, re.MULTILINE)
    assert "job 2 is CANCELLED" in done.stdout


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("torchrun", ["rank 0 of 2", "rank 1 of 2"]),
        ("python", ["task 0 True", "task 1 True"]),
        ("gres", ["devices 0,1,2,3,4,5,6,7 on node 8"]),
        ("per node", ["devices 0,1,2,3", "devices 0,1,2,3"]),
        ("launcher", ["launched 0", "launched 1"]),
    ],
)
def test_a_job_file_runs_as_it_is(jobs: Jobs, name: str, lines: list[str]) -> None:
    job = jobs.submit(name)
    assert [one["state"] for one in jobs.ended(job)] == [GOOD], jobs.output(job)
    assert [line for line in sorted(jobs.output(job)) if line.startswith(lines[0].split()[0])] == lines


def test_an_array_has_an_output_for_each_task(jobs: Jobs) -> None:
    job = jobs.submit("array")
    assert {one["job_id"]: one["state"] for one in jobs.ended(job)} == {f"{job}_{task}": GOOD for task in range(3)}
    said = jobs.output(job)
    assert sorted(line for line in said if line.startswith("task")) == [f"task {task} of 3" for task in range(3)]
    assert jobs.output(f"{job}_1") == ["task 1 of 3"]


def test_a_job_is_followed_from_before_it_begins_until_it_ends(jobs: Jobs) -> None:
    job = jobs.submit("arguments", "--begin=now+5", "--job-name", "later", "--", "said")
    assert jobs.rows(job)[0]["state"] == "PENDING"
    followed = jobs.product.run("logs", "--job", job, "--follow")
    assert followed.stdout == "<said><later>\n"


def test_a_job_waits_for_another_and_never_runs_where_that_fails(jobs: Jobs) -> None:
    first = jobs.submit("arguments", "--begin=now+5", "--", "first")
    second = jobs.submit("arguments", f"--dependency=afterok:{first}", "--", "second")
    failing = jobs.submit("failing")
    never = jobs.submit("arguments", f"--dependency=afterok:{failing}", "--kill-on-invalid-dep=yes")
    assert jobs.ended(second)[0]["started"] >= jobs.ended(first)[0]["ended"]
    assert jobs.ended(never)[0]["state"] == "CANCELLED"


def test_a_job_that_requeues_itself_goes_on_in_the_same_file(jobs: Jobs) -> None:
    job = jobs.submit("requeue")
    assert [one["state"] for one in jobs.ended(job)] == [GOOD]
    said = jobs.output(job)
    assert said[0] == "attempt 0"
    assert said[-1] == "attempt 1"


@pytest.mark.parametrize("options", [(), ("--error=why-%j.txt",)])
def test_a_job_that_fails_comes_first_with_why(jobs: Jobs, options: tuple[str, ...]) -> None:
    job = jobs.submit("failing", *options)
    (row,) = jobs.ended(job)
    assert (row["state"], row["why"]) == ("FAILED", "exit code 3")
    assert jobs.rows(job)[0]["last_lines"][-1] == "no such file: /fsx/data/train.bin"
    newest = jobs.product.status()["ended"][0]
    assert (newest["job_id"], newest["why"]) == (job, "exit code 3")
    refused = jobs.product.run("rehearse", str(jobs.folder / "failing.sbatch"), check=False)
    assert refused.returncode == 1
    assert "is FAILED; its output ends with:" in refused.stderr


def test_options_arguments_spaces_and_executable_bits_arrive(jobs: Jobs) -> None:
    job = jobs.submit("arguments", "--job-name=a name", "--", "x y", "--json", "$(id)")
    jobs.ended(job)
    assert jobs.output(job) == ["<x y><--json><$(id)><a name>"]


def test_awss_sample_for_auto_resume_is_requeued_when_a_node_is_marked(jobs: Jobs) -> None:
    job = jobs.submit("auto resume")
    deadline = time.monotonic() + ENDS_WITHIN_S
    while "waiting for a fault" not in jobs.output_so_far(job):
        assert time.monotonic() < deadline, jobs.output(job)
        time.sleep(0.5)
    nodes = jobs.controller("squeue", "-h", "-j", job, "-o", "%N").strip()
    host = jobs.controller("scontrol", "show", "hostnames", nodes).split()[-1]
    jobs.controller("scontrol", "update", f"NodeName={host}", "State=fail", "Reason=Action:Replace")
    jobs.controller("touch", f"/fsx/checkpoints/marked-{job}")

    assert [one["state"] for one in jobs.ended(job)] == [GOOD]
    assert "resumed after 1" in jobs.output(job)


def test_a_run_folder_goes_on_with_its_submission_and_refuses_another(jobs: Jobs) -> None:
    def said(*words: str) -> str:
        job = jobs.submit("same folder", *words)
        jobs.ended(job)
        return "\n".join(jobs.output(job))

    assert [said("--submission", "mine", "--", "named") for _ in range(2)] == ["goes on", "goes on"]
    assert "belongs to submission mine, and this is submission yours" in said("--submission=yours", "--", "named")
    assert said("--", "numbered") == "goes on"
    assert "give it a folder of its own" in said("--", "numbered")


def test_parts_of_a_heterogeneous_job_have_names_that_are_taken_and_steps_their_own_files(jobs: Jobs) -> None:
    job = jobs.submit("het")
    rows = {one["job_id"]: one for one in jobs.ended(job)}
    assert {name: one["state"] for name, one in rows.items()} == {f"{job}+0": GOOD, f"{job}+1": GOOD}
    said = [line for line in jobs.output(job) if not line.startswith("==>")]
    assert sorted(said) == sorted(one["nodes"] for one in rows.values())
    assert [line for line in jobs.output(f"{job}+1") if "ip-" in line][-1] == rows[f"{job}+1"]["nodes"]
    assert f"job {job}+1 is COMPLETED, unchanged" in jobs.product.run("cancel", f"{job}+1").stdout


def test_a_file_that_tasks_share_is_printed_once_and_lines_of_it_are_chosen(jobs: Jobs) -> None:
    job = jobs.submit("shared")
    jobs.ended(job)
    assert sorted(jobs.output(job)) == ["task 0", "task 1", "task 2"]
    chosen = jobs.product.run("logs", "--job", job, "--grep", "task [12]", "--tail", "1").stdout
    assert chosen in ("task 1\n", "task 2\n")


def test_the_first_traceback_says_why_with_its_rank_and_host(jobs: Jobs) -> None:
    (row,) = jobs.ended(jobs.submit("traceback"))
    last = jobs.controller("scontrol", "show", "hostnames", row["nodes"]).split()[-1]
    assert row["why"] == f"exit code 1: rank 1 on {last}: ValueError: bad shape"
    assert row["last_lines"][-1] == "ValueError: bad shape"


def test_what_never_begins_says_why(jobs: Jobs) -> None:
    (row,) = jobs.ended(jobs.submit("arguments", "--output=/etc/nowhere/x.out"))
    assert row["why"] == "could not start (0:53): its output file or working folder cannot be opened on the node"
    job = jobs.submit("arguments", "--nodes=50")
    deadline = time.monotonic() + ENDS_WITHIN_S
    while "it asks for more" not in (why := jobs.rows(job)[0]["why"]):
        assert time.monotonic() < deadline, why
        time.sleep(0.5)
    jobs.product.run("cancel", job)


def test_a_repository_runs_as_it_lies_there(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "repo"
    script = 'mkdir -p out; echo "steps $STEPS token ${HF_TOKEN:-none}"; python src/train.py; cat leak.txt; ls -A'
    for name, text in {
        ".gitignore": "*.pt\n!keep.pt\n/runs/\n",
        "slurm/train.sbatch": f"#!/bin/bash\nexec 2>&1\n{script}\n",
        "src/train.py": 'print("trained")\n',
        "runs/1": "",
        "a.pt": "",
        "keep.pt": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "logs").mkdir()
    (root / "src" / "train.py").chmod(0o640)
    (root / "leak.txt").symlink_to("/etc/shadow")
    (root / "data").symlink_to("/fsx/data")
    monkeypatch.setenv("STEPS", "100")
    monkeypatch.setenv("HF_TOKEN", "secret")
    words = ("submit", str(root / "slurm" / "train.sbatch"), "--folder", str(root), "--output=logs/%j.out", "--json")
    done = jobs.product.run(*words)
    job = json.loads(done.stdout)["job_id"]

    assert jobs.ended(job)[0]["state"] == GOOD
    said = jobs.output(job)
    assert said[:2] == ["steps 100 token none", "trained"]
    assert any("leak.txt: Permission denied" in line for line in said)
    assert {"keep.pt", "logs", ".gitignore", "data", "out"} <= set(said)
    assert not {"a.pt", "runs"} & set(said)
    assert "variables passed to the job: STEPS;" in done.stderr
    assert "the link leak.txt -> /etc/shadow leads nowhere on the nodes" in done.stderr
    folder = jobs.controller("sacct", "-n", "-X", "-P", "-o", "WorkDir", "-j", job).strip()
    assert jobs.controller("stat", "-c", "%a %U", f"{folder}/src/train.py") == "640 ubuntu\n"


def test_a_drained_node_says_why_and_how_it_is_resumed(jobs: Jobs) -> None:
    node = jobs.controller("sinfo", "-h", "-N", "-o", "%N").split()[0]
    jobs.controller("scontrol", "update", f"NodeName={node}", "State=drain", "Reason=a bad cable")
    seen = {one["hostname"]: one for one in jobs.product.status()["nodes"]}[node]["drained"]
    assert seen.startswith("a bad cable; resume it with: holdfast ssh ")
    command = seen.partition(" -- ")[2]
    assert "holdfast ssh" in seen
    jobs.controller("sh", "-c", command)
    assert {one["hostname"]: one for one in jobs.product.status()["nodes"]}[node]["drained"] == ""


def test_sudo_is_the_administrators_and_a_job_is_told_so(jobs: Jobs) -> None:
    refused = jobs.submit("sudo")
    jobs.ended(refused)
    assert "holdfast submit --user root" in jobs.rows(refused)[0]["hint"]
    of_root = jobs.submit("sudo", "--user", "root")
    jobs.ended(of_root)
    assert jobs.output(of_root) == ["0"]
    node = jobs.rows(of_root)[0]["nodes"]
    assert jobs.product.run("ssh", node, "--user", "ubuntu", "--", "sudo", "-n", "id", "-u").stdout == "0\n"


def test_cancel_ends_a_job_and_the_history_outlives_slurms_memory(jobs: Jobs) -> None:
    job = jobs.submit("sleeping")
    said = jobs.product.run("cancel", job, "--json")
    assert json.loads(said.stdout) == {job: "CANCELLED"}
    assert jobs.rows(job)[0]["why"].startswith("cancelled")
    deadline = time.monotonic() + ENDS_WITHIN_S
    while job not in jobs.controller("sacct", "-n", "-X", "-a", "-o", "JobID").split():
        assert time.monotonic() < deadline, "the controller tells accounting in turns of seconds"
        time.sleep(0.5)
    unknown = jobs.product.run("cancel", "999999", check=False)
    assert "Slurm has no job 999999; nothing was cancelled" in unknown.stderr


def test_the_local_cloud_is_still_whole(jobs: Jobs) -> None:
    assert all(LocalCloud(home=jobs.product.home, port=jobs.product.port).running().values())
