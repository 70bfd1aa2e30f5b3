"""
Users of the environment file and MPI on one local cluster, and what an update and a second environment leave of it.

Job files as people write them: a home of one's own with a venv, ssh between nodes, srun --mpi=pmix, mpirun.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from submitted_jobs import SubmittedJobs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(900)]

HEAD = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1\n"
HOME = """srun -l sh -c 'touch $HOME/by-$(hostname); ls $HOME' >/dev/null
ls $HOME | grep -c ^by-
ssh -o BatchMode=yes "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -1)" 'echo "$HOME"'
"""
VENV = """python3 -m venv --without-pip ~/venv
. ~/venv/bin/activate
srun sh -c 'command -v python'
"""
MPI = """scontrol show hostnames "$SLURM_JOB_NODELIST" >~/hosts.$SLURM_JOB_ID
srun --mpi=pmix hostname
mpirun hostname
/opt/amazon/openmpi/bin/mpirun -np 2 -N 1 hostname
mpirun --mca plm rsh --hostfile ~/hosts.$SLURM_JOB_ID -np 2 -N 1 hostname
"""
RING = """cd $(mktemp -d -p ~) || exit
cat >ring.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
  int rank, size, sum;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d, sum %d\\n", rank, size, sum);
  MPI_Finalize();
  return 0;
}
C
mpicc ring.c -o ring && srun --mpi=pmix ./ring
"""
MPI_IS_HERE = shutil.which("mpirun") and any(Path("/usr/lib").glob("*-linux-gnu/slurm*/mpi_pmix*.so"))
needs_mpi = pytest.mark.skipif(not MPI_IS_HERE, reason="Open MPI, or Slurm's plugin for PMIx, is not installed")


class People(SubmittedJobs):
    """The cluster, and jobs of its users."""

    ends_within_s = 120.0

    def __init__(self, product: Any) -> None:
        super().__init__(product)
        self.file = product.environment(workers=2, spares=0, lifecycle=lifecycle())

    def said(self, text: str, *, user: str) -> list[str]:
        """What a job file of a user has written, once it is over."""
        folder = self.product.work / f"{user} {time.monotonic_ns()}"
        folder.mkdir()
        (folder / "job.sbatch").write_text(HEAD + text)
        done = self.product.run("submit", str(folder / "job.sbatch"), "--user", user, "--json")
        job = json.loads(done.stdout)["job_id"]
        (row,) = self.ended(job)
        lines = self.output(job)
        assert row["state"] == "COMPLETED", lines
        return lines


def lifecycle(**more: Any) -> dict[str, Any]:
    users = [
        {"name": "alice", "uid": 2001, "groups": ["docker"]},
        {"name": "bob", "uid": 2002, "home": "/fsx/people/bob"},
    ]
    return {"users": users, **more}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[People]:
    product = new_product(tmp_path_factory.mktemp("people"))
    made = People(product)
    try:
        product.run("up", str(made.file))
        yield made
    finally:
        product.run("down")
    assert not product.home.exists()


@pytest.mark.parametrize(
    ("user", "home"), [("ubuntu", "/fsx/ubuntu"), ("alice", "/fsx/alice"), ("bob", "/fsx/people/bob")]
)
def test_a_user_has_one_home_on_all_nodes_and_goes_from_node_to_node(people: People, user: str, home: str) -> None:
    assert people.said(HOME, user=user) == ["2", home]


def test_a_venv_in_a_home_is_what_python_is_on_both_nodes(people: People) -> None:
    assert people.said(VENV, user="alice") == ["/fsx/alice/venv/bin/python"] * 2
    assert people.said("id -nG\n", user="alice") == ["alice docker"]


@needs_mpi
@pytest.mark.parametrize("user", ["ubuntu", "alice"])
def test_mpi_starts_by_slurm_and_by_ssh(people: People, user: str) -> None:
    hosts = people.said(MPI, user=user)
    assert sorted(hosts) == sorted([*set(hosts)] * 4)
    assert len(set(hosts)) == 2


@needs_mpi
@pytest.mark.skipif(not list(Path("/usr/lib").glob("*/openmpi/include/mpi.h")), reason="there is no mpi.h")
def test_a_program_compiled_on_a_node_speaks_mpi_between_nodes(people: People) -> None:
    assert sorted(people.said(RING, user="ubuntu")) == ["rank 0 of 2, sum 1", "rank 1 of 2, sum 1"]


def test_a_group_that_fails_is_rolled_back_and_diff_and_the_next_up_agree(people: People) -> None:
    product, bucket = people.product, "sagemaker-lcs-123456789012"
    s3 = product.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket=bucket, Key="bad/on_create.sh", Body=b"#!/bin/bash\nexit 0\n")
    older = {
        "name": "older",
        "instance_type": "ml.g5.12xlarge",
        "instance_count": 1,
        "slurm": {"node_type": "Compute", "partition": "old"},
        "lifecycle_mode": "custom",
        "life_cycle_config": {"source_s3_uri": f"s3://{bucket}/bad", "on_create": "on_create.sh"},
    }
    document = yaml.safe_load(people.file.read_text())
    document["cluster"]["instance_groups"].append(older)
    bad = product.work / "bad.yaml"
    bad.write_text(yaml.safe_dump(document))

    refused = product.run("up", str(bad), check=False)

    assert refused.returncode == 1
    assert "did not register within" in refused.stderr
    assert "stack holdfast-local is in UPDATE_ROLLBACK_COMPLETE: it is unchanged" in refused.stderr
    assert product.status()["stack_status"] == "UPDATE_ROLLBACK_COMPLETE"
    same = product.run("diff", str(people.file))
    assert "matches the file" in same.stdout
    product.run("up", str(people.file))


def test_an_environment_that_fails_beside_it_leaves_it_current(people: People) -> None:
    product = people.product
    (product.work / "fail.sh").write_text("#!/bin/sh\nexit 7\n")
    document = yaml.safe_load(people.file.read_text())
    document |= {"name": "beside", "lifecycle": lifecycle(scripts=["fail.sh"])}
    beside = product.work / "beside.yaml"
    beside.write_text(yaml.safe_dump(document))

    refused = product.run("up", str(beside), check=False)

    assert refused.returncode == 1
    assert "current: local, as before" in refused.stderr
    assert product.status()["environment"] == "local"
    of_failed = json.loads(product.run("status", "--environment", str(beside), "--json").stdout)
    assert of_failed["stack_status"] == "ROLLBACK_COMPLETE"
    gone = product.run("use", str(beside), check=False)
    assert (gone.returncode, "beside is gone" in gone.stderr) == (2, True)
