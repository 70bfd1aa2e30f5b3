"""The first line of a launcher: whether its allocation outlives a node, from what the job was submitted with."""

from pathlib import Path

import pytest

from holdfast_runtime.launcher.allocation import (
    SubmittedJob,
    job_of,
    no_kill_of,
    no_kill_of_script,
    no_kill_of_sruns,
    read_submitted,
    survival,
)

PLAIN = "#!/bin/bash\n#SBATCH --nodes=5\n#SBATCH --exclusive\n\nsrun holdfast-run train.py\n"
BOTH = PLAIN.replace("--exclusive", "--exclusive --no-kill").replace("srun ", "srun --no-kill ")
STEP = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "5", "SLURM_STEP_ID": "0"}


def sentence(**known: object) -> str:
    return survival(SubmittedJob(**{"environment": {}, **known})).sentence  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--nodes=5 --no-kill job.sh", True),
        ("-N5 -k job.sh", True),
        ("-Hk job.sh", True),
        ("-N 5 --no-ki job.sh", True),
        ("--no-kill --no-kill=off job.sh", False),
        ("-koff job.sh", False),
        ("--nodes 5 job.sh --no-kill", None),
        ("--job-name -k job.sh", None),
        ("--no-requeue job.sh -k", None),
        ("--exclusive --no-kill job.sh", True),
        ("-- -k", None),
    ],
)
def test_options_count_before_the_program_and_the_last_one_wins(line: str, says: bool | None) -> None:
    assert no_kill_of(line.split()) is says


def test_lines_of_a_job_file_count_up_to_its_first_command() -> None:
    assert no_kill_of_script(BOTH)
    assert no_kill_of_script("#!/bin/sh\n# words\n\n#SBATCH -k\n") is True
    assert no_kill_of_script("#!/bin/sh\necho\n#SBATCH --no-kill\n") is None


def test_sruns_of_a_job_file_count_where_all_say_the_same() -> None:
    assert no_kill_of_sruns(BOTH)
    assert no_kill_of_sruns(PLAIN) is False
    assert no_kill_of_sruns("srun -l \\\n  --no-kill a.out &\n# srun b\n") is True
    assert no_kill_of_sruns("srun hostname\nsrun --no-kill holdfast-run a.py") is None


def test_with_the_option_of_job_and_step_it_does_except_of_the_node_with_the_job_file() -> None:
    said = sentence(script=BOTH, job_line="sbatch job.sh", step_line="srun --no-kill holdfast-run", batch_host="ip-1")
    assert said == ("this allocation survives the loss of a node: yes, except of ip-1, which runs the job file")


def test_without_it_the_line_says_what_is_lost_and_what_to_add() -> None:
    said = sentence(script=PLAIN, job_line="sbatch job.sh", step_line="srun holdfast-run")
    assert said == (
        "this allocation survives the loss of a node: no: Slurm ends it with its first lost node, and all steps since "
        "the last checkpoint; add #SBATCH --no-kill and srun --no-kill"
    )


def test_only_what_is_missing_is_to_be_added() -> None:
    script = BOTH.replace("srun --no-kill", "srun")
    assert sentence(script=script, job_line="sbatch job.sh").endswith("; add srun --no-kill")


@pytest.mark.parametrize(
    "known",
    [
        {"script": PLAIN, "step_line": "srun --no-kill a", "job_line": "sbatch --no-kill job.sh"},
        {
            "script": PLAIN,
            "step_line": "srun --no-kill a",
            "job_line": "sbatch a",
            "environment": {"SBATCH_NO_KILL": "1"},
        },
        {"script": BOTH, "job_line": "sbatch job.sh", "environment": {"SLURM_NO_KILL": "yes"}},
        {"job_line": "srun -N5 --no-kill holdfast-run a", "step_line": "srun -N5 --no-kill holdfast-run a"},
        {"job_line": "salloc -N5 -k", "step_line": "srun -k holdfast-run a"},
    ],
)
def test_it_may_be_said_in_each_way_that_slurm_has(known: dict[str, object]) -> None:
    assert ": yes" in sentence(**known)


def test_a_command_line_takes_back_what_the_job_file_says() -> None:
    known = {"script": BOTH, "step_line": "srun --no-kill a"}
    assert ": no:" in sentence(**known, job_line="sbatch --no-kill=off job.sh")


def test_what_cannot_be_read_is_not_known() -> None:
    said = sentence()
    assert said.startswith("this allocation survives the loss of a node: not known: Slurm does not report it")
    assert ": not known" in sentence(script=PLAIN, step_line="srun --no-kill a"), "sbatch's own line may have it"


def test_a_job_array_and_one_node_have_no_such_allocation() -> None:
    assert job_of(STEP) == "7"
    assert job_of({**STEP, "SLURM_JOB_NUM_NODES": "1"}) == ""
    assert job_of({**STEP, "SLURM_ARRAY_TASK_ID": "0"}) == ""
    assert job_of({**STEP, "SLURM_JOB_NUM_NODES": "1", "HOLDFAST_ALLOCATION": "3"}) == "3"


def test_what_slurm_reports_is_put_together() -> None:
    answers = {
        "show": "JobId=7 NumNodes=5 NumCPUs=10 BatchHost=ip-1 OverSubscribe=NO TRES=cpu=10,gres/gpu=40",
        "write": BOTH,
        "-n": "7|sbatch job.sh\n7.batch|\n7.0|srun --no-kill a | b\n",
    }
    said = read_submitted(
        STEP, run=lambda command: answers[next(word for word in command if word in answers)], sruns=lambda _: []
    )
    assert survival(said).answer == "yes"
    assert said.step_line == "srun --no-kill a | b"


def test_a_node_without_slurms_programs_knows_its_own_srun() -> None:
    def missing(_command: object) -> str:
        raise FileNotFoundError

    said = read_submitted(STEP, run=missing, sruns=lambda _: [["srun", "--no-kill", "a b"]])
    assert (said.script, said.step_line) == (None, "srun --no-kill 'a b'")
    assert survival(said).add == ("#SBATCH --no-kill",)


def test_examples_in_one_allocation_survive_a_node() -> None:
    for name in ("bytelm/bytelm-allocation.sbatch", "recipes/one-job.sbatch"):
        script = (Path(__file__).parents[5] / "examples" / name).read_text()
        assert ": yes" in sentence(script=script, job_line=f"sbatch {name}"), name
