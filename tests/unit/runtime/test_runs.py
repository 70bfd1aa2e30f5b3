"""A run folder belongs to one submission, whatever number its job has."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast_runtime.runs import RunFolderError, Submission, claim, find_submission, main


def slurm(job: str = "1", *, series: Path | None = None, **more: str) -> Submission:
    environment = {"SLURM_JOB_ID": job, "SLURM_CLUSTER_NAME": "c", **more}
    if series is not None:
        environment["HOLDFAST_JOB_SERIES"] = str(series)
    found = find_submission(environment)
    assert found is not None
    return found


@pytest.fixture
def series(tmp_path: Path) -> Path:
    path = tmp_path / "series"
    path.write_text("a\n")
    return path


def test_a_job_and_its_restarts_have_their_folder(tmp_path: Path, series: Path) -> None:
    for restarts in ("", "1", "2"):
        claim(tmp_path / "run", slurm(series=series, SLURM_RESTART_COUNT=restarts, SLURM_JOB_START_TIME=restarts))


def test_a_job_of_the_same_number_from_another_series_is_refused_with_the_way_out(tmp_path: Path, series: Path) -> None:
    claim(tmp_path / "run", slurm(series=series))
    (tmp_path / "run" / "step-20.pt").touch()
    series.write_text("b\n")
    with pytest.raises(RunFolderError) as refused:
        claim(tmp_path / "run", slurm(series=series))
    assert str(refused.value) == (
        f"{tmp_path}/run belongs to job 1 of cluster c, series a, and this is job 1 of cluster c, series b; give it a "
        f"folder of its own, or, to go on with these checkpoints on purpose, adopt it with --adopt {tmp_path}/run"
    )


def test_another_number_and_another_cluster_are_refused(tmp_path: Path, series: Path) -> None:
    claim(tmp_path / "run", slurm(series=series))
    for other in (slurm("2", series=series), slurm(series=series, SLURM_CLUSTER_NAME="d")):
        with pytest.raises(RunFolderError):
            claim(tmp_path / "run", other)


def test_all_tasks_of_an_array_are_one_submission(tmp_path: Path, series: Path) -> None:
    for task in ("7", "8", "9"):
        claim(tmp_path / "run", slurm(task, series=series, SLURM_ARRAY_JOB_ID="7", SLURM_JOB_START_TIME=task))


def test_without_a_series_a_second_first_attempt_is_another_job_and_closes_the_folder(tmp_path: Path) -> None:
    claim(tmp_path / "run", slurm(SLURM_JOB_START_TIME="100"))
    claim(tmp_path / "run", slurm(SLURM_JOB_START_TIME="100"))
    with pytest.raises(RunFolderError, match="another job of the same number"):
        claim(tmp_path / "run", slurm(SLURM_JOB_START_TIME="900"))
    # It requeues itself, as many scripts do after any failure: it is not the old job's restart.
    with pytest.raises(RunFolderError):
        claim(tmp_path / "run", slurm(SLURM_JOB_START_TIME="950", SLURM_RESTART_COUNT="1"))


def test_a_given_submission_outlives_jobs(tmp_path: Path) -> None:
    for job in ("1", "2"):
        claim(tmp_path / "run", slurm(job, HOLDFAST_SUBMISSION="long-run"))
    with pytest.raises(RunFolderError, match="set HOLDFAST_SUBMISSION=long-run"):
        claim(tmp_path / "run", slurm("1"))


def test_checkpoints_that_nobody_claimed_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "step-000000020").mkdir()
    with pytest.raises(RunFolderError, match=r"has checkpoints \(step-000000020\) and no file SUBMISSION"):
        claim(tmp_path, slurm())


def test_outside_of_a_scheduler_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert find_submission({}) is None
    claim(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "null"])
def test_a_damaged_claim_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "SUBMISSION").write_text(content)
    with pytest.raises(RunFolderError, match="does not say whose the folder is"):
        claim(tmp_path, slurm())


def test_of_two_submissions_at_once_one_wins(tmp_path: Path) -> None:
    def attempt(number: int) -> bool:
        try:
            claim(tmp_path / "run", slurm(str(number)))
        except RunFolderError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, [1, 2] * 8))
    assert won in ([True, False] * 8, [False, True] * 8)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["SUBMISSION"]


def test_the_command_refuses_and_adopts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert main([run]) == 0
    monkeypatch.setenv("SLURM_JOB_ID", "2")
    assert main([run]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert main(["--adopt", run]) == 0
    assert main([run]) == 0
