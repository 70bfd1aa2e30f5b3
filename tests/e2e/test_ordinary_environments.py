"""The Python, the packages and the sizes that ordinary job files bring or ask for, on one local cluster."""

import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from submitted_jobs import SubmittedJobs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(900)]

VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
MAKE = f"""#!/bin/bash
set -e
site=$(python -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')
base=$(python -c 'import sys; print(sys.base_prefix)')
for name in venv bare dead; do "$base/bin/python3" -m venv --without-pip /fsx/$name; done
mkdir -p /fsx/conda/bin /fsx/conda/lib
cp -L "$base/bin/{VERSION}" /fsx/conda/bin/
for name in python python3; do ln -s {VERSION} /fsx/conda/bin/$name; done
cp -rL "$base/lib/{VERSION}" /fsx/conda/lib/
rm -rf /fsx/conda/lib/{VERSION}/site-packages && mkdir /fsx/conda/lib/{VERSION}/site-packages
for name in venv conda; do
    echo "$site" > /fsx/$name/lib/{VERSION}/site-packages/torch.pth
    echo "value = '$name'" > /fsx/$name/lib/{VERSION}/site-packages/mine.py
done
rm /fsx/dead/bin/python*
ln -s /usr/bin/python3.99 /fsx/dead/bin/python3
ln -s python3 /fsx/dead/bin/python
echo made
"""
USE = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
if [ "$1" = conda ]; then
    export CONDA_PREFIX=/fsx/conda PATH=/fsx/conda/bin:$PATH PYTHONPATH=/fsx/of-the-user
else
    source "/fsx/$1/bin/activate"
    export PYTHONPATH=/fsx/of-the-user
fi
srun bash -c 'echo "path $PATH"; echo "pythonpath $PYTHONPATH"'
srun bash -lc 'echo "login $(command -v python)"'
srun python -c 'import sys, mine; print("python", mine.value, sys.prefix)'
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint="$head:29500" train.py torchrun
srun holdfast-run --nproc-per-node 1 train.py launcher
"""
FILES = {
    "make.sbatch": MAKE,
    "use.sbatch": USE,
    "train.py": """
import sys, torch, mine
sys.stdout.write(f"{sys.argv[1]} {mine.value} {sys.prefix}\\n")
""",
    "without.sbatch": """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
source "/fsx/$1/bin/activate"
srun --ntasks=1 --nodes=1 python --version
srun --ntasks=1 --nodes=1 holdfast-run train.py launcher
srun --ntasks=1 --nodes=1 torchrun --nproc-per-node=1 train.py torchrun
""",
    "megatron.sbatch": """#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
srun bash -c 'echo "task $SLURM_PROCID gpu $CUDA_VISIBLE_DEVICES cpus $SLURM_CPUS_PER_TASK"'
""",
    "memory.sbatch": """#!/bin/bash
#SBATCH --ntasks-per-node=8 --cpus-per-task=12
srun bash -c 'echo "task $SLURM_PROCID on $SLURM_CPUS_ON_NODE"'
""",
    "packages.sbatch": """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
source /fsx/envs/repo/bin/activate
srun bash -c 'ordinary; command -v ordinary'
""",
    "aws.sbatch": """#!/bin/bash
aws --version
echo content > /tmp/file
aws s3 cp --no-progress /tmp/file "s3://$1/checkpoints/of-aws" && aws s3 ls "s3://$1/checkpoints/"
aws s3 cp --quiet "s3://$1/checkpoints/of-aws" - && env -i /usr/local/bin/aws sts get-caller-identity --query Account
""",
}


class Jobs(SubmittedJobs):
    """The folder of job files, and the cluster that they run on."""

    def __init__(self, product: Any) -> None:
        super().__init__(product)
        self.folder = product.work / "jobs"
        self.folder.mkdir()
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def submit(self, name: str, *words: str) -> str:
        done = self.product.run("submit", str(self.folder / f"{name}.sbatch"), "--json", *words)
        return str(json.loads(done.stdout)["job_id"])

    def said(self, name: str, *words: str) -> list[str]:
        """All lines of a job, once it has ended."""
        job = self.submit(name, *words)
        self.ended(job)
        return self.output(job)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Jobs]:
    work = tmp_path_factory.mktemp("environments")
    product = new_product(work)
    try:
        product.run("up", str(product.environment(workers=2, spares=0)))
        jobs = Jobs(product)
        assert jobs.said("make")[-1] == "made"
        yield jobs
    finally:
        product.run("down")
    assert not product.home.exists()


def test_eight_tasks_with_eight_cpus_and_a_gpu_each_run_on_a_machine_of_any_size(jobs: Jobs) -> None:
    assert sorted(jobs.said("megatron")) == [f"task {n} gpu {n} cpus 8" for n in range(8)]


@pytest.mark.parametrize("memory", ["1500G", "0"])
def test_a_node_has_the_memory_and_the_cpus_of_its_instance_type(jobs: Jobs, memory: str) -> None:
    assert sorted(jobs.said("memory", f"--mem={memory}")) == [f"task {n} on 96" for n in range(8)]


@pytest.mark.parametrize("option", ["--mem=3000G", "--cpus-per-task=13"])
def test_more_than_the_instance_type_has_is_refused_at_once(jobs: Jobs, option: str) -> None:
    done = jobs.product.run("submit", str(jobs.folder / "memory.sbatch"), option, "--exclusive", check=False)
    assert done.returncode != 0
    assert "Requested node configuration is not available" in done.stderr


@pytest.mark.parametrize("name", ["venv", "conda"])
def test_an_environment_of_the_user_is_what_all_programs_of_a_job_run_in(jobs: Jobs, name: str) -> None:
    said = jobs.said("use", "--", name)
    own = f"/fsx/{name}"
    paths = [line.split()[1].split(":") for line in said if line.startswith("path ")]
    assert [path[0] for path in paths] == [f"{own}/bin"] * 2
    assert all(path[-1] == "/opt/holdfast/env/bin" for path in paths)
    assert said.count("pythonpath /fsx/of-the-user:/opt/holdfast/lib") == 2
    assert said.count(f"login {own}/bin/python") == 2
    for program in ("python", "torchrun", "launcher"):
        assert said.count(f"{program} {name} {own}") == 2, (program, said)


def test_an_environment_without_torch_is_named_before_any_rank_starts(jobs: Jobs) -> None:
    said = jobs.said("without", "--", "bare")
    (line,) = [line for line in said if line.startswith("holdfast-run: ")]
    assert line.startswith(
        "holdfast-run: /fsx/bare/bin/python3 has no numpy, torch, xxhash; run: /fsx/bare/bin/python3 -m"
    )
    assert not [line for line in said if "generation 1" in line]
    assert any("No module named 'torch'" in line for line in said), said


def test_an_environment_whose_python_is_not_on_the_nodes_is_named_and_no_other_takes_its_place(jobs: Jobs) -> None:
    said = jobs.said("without", "--", "dead")
    assert any(
        "VIRTUAL_ENV is /fsx/dead: its interpreter /usr/bin/python3.99 is not on this node" in line for line in said
    )
    assert any(line.startswith("holdfast-run: /fsx/dead/bin/python3 leads to /usr/bin/python3.99") for line in said)
    assert not [line for line in said if line.startswith("Python 3")]


def test_one_command_makes_an_environment_that_all_nodes_have(jobs: Jobs) -> None:
    repository = jobs.product.work / "repo"
    repository.mkdir()
    with zipfile.ZipFile(repository / "ordinary-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("ordinary.py", "def main():\n    import sys\n    print('ordinary in', sys.prefix)\n")
        about = "ordinary-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: ordinary\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\nordinary = ordinary:main\n")
        wheel.writestr(f"{about}/RECORD", "")
    (repository / "requirements.txt").write_text("ordinary==1.0\n")
    offline = ("--", "--no-index", "--find-links", str(repository))
    for _ in range(2):  # made again, it takes the place of the first
        done = jobs.product.run("packages", str(repository / "requirements.txt"), "--json", *offline)
        made = json.loads(done.stdout)
        assert (made["path"], made["packages"]) == ("/fsx/envs/repo", ["ordinary==1.0"])
    said = jobs.said("packages")
    assert sorted(said) == sorted(["ordinary in /fsx/envs/repo", "/fsx/envs/repo/bin/ordinary"] * 2)

    (repository / "wrong.txt").write_text("ordinary==2.0\n")
    refused = jobs.product.run("packages", str(repository / "wrong.txt"), *offline, check=False)
    assert refused.returncode == 1
    assert "pip could not install" in refused.stderr
    assert "No matching distribution found for ordinary==2.0" in refused.stderr


def test_nodes_have_the_aws_cli_with_s3(jobs: Jobs) -> None:
    if not Path(sys.prefix, "share", "holdfast", "aws-cli").is_dir():
        pytest.skip("make setup has not installed the AWS CLI")
    outputs = jobs.product.client("cloudformation").describe_stacks()["Stacks"]
    values = [
        one["OutputValue"] for stack in outputs for one in stack.get("Outputs", ()) if "ucket" in one["OutputKey"]
    ]
    (bucket,) = [value for value in values if "-data" in value]
    said = jobs.said("aws", "--", bucket)
    assert said[0].startswith("aws-cli/1.")
    assert any(line.endswith(" of-aws") for line in said), said
    assert said[-2:] == ["content", '"123456789012"']
