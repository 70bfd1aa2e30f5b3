"""What of a job folder travels: patterns, links, modes, and what is no file."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from submitting import Machine

from holdfast.cli.submission import check_job_file, read_folder
from holdfast.cli.terminal import CommandError

JOB = "#!/bin/sh\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path, monkeypatch)
    write(found.folder, {"slurm/job.sbatch": JOB, "src/train.py": "print()\n"})
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def sent(machine: Machine, *words: str) -> set[str]:
    machine.submit("slurm/job.sbatch", *words, root=machine.folder)
    return {path.relative_to(machine.sent()).as_posix() for path in machine.sent().rglob("*")}


def test_the_folder_that_is_named_travels_and_the_job_begins_at_its_root(machine: Machine) -> None:
    (machine.folder / "empty").mkdir()
    write(machine.folder, {".env.sample": "", "src/.hidden/x": ""})

    found = sent(machine)

    assert found == {"slurm", "slurm/job.sbatch", "src", "src/train.py", "empty", ".env.sample", "src/.hidden",
                     "src/.hidden/x"}  # fmt: skip
    assert machine.noted()[3:] == ["--parsable", f"{machine.sent()}/slurm/job.sbatch"]


def test_nested_patterns_and_negations_are_read_as_git_reads_them(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    patterns = {
        ".gitignore": "*.pt\n/runs/\n",
        "src/.gitignore": "!keep.pt\n*.log\n",
        ".holdfastignore": "notes\n",
    }
    caches = ("__pycache__/a", "src/__pycache__/b", ".git/config")
    named = ("a.pt", "src/keep.pt", "src/a.pt", "src/x.log", "x.log", "runs/1", "src/runs/1", "notes")
    files = dict.fromkeys((*named, *caches), "")
    write(machine.folder, {**patterns, **files})

    found = {path for path in sent(machine) if "." in path or "runs" in path}

    assert found == {"slurm/job.sbatch", "src/train.py", "src/keep.pt", "x.log", "src/runs", "src/runs/1", *patterns}
    told = capsys.readouterr().err.splitlines()
    by_pattern = "a.pt, runs/, src/a.pt, src/x.log (.gitignore); notes (.holdfastignore)"
    assert told == [f"left out: .git, __pycache__ (by default); {by_pattern}"]


def test_patterns_of_the_repository_hold_for_a_folder_in_it(machine: Machine) -> None:
    write(machine.folder, {".git/HEAD": "", ".gitignore": "*.bin\n/slurm/old\n", "slurm/a.bin": "", "slurm/old/x": ""})
    machine.submit("slurm/job.sbatch")
    assert [path.name for path in machine.sent().iterdir()] == ["job.sbatch"]


def test_a_folder_that_the_repository_ignores_travels_where_it_is_submitted(machine: Machine) -> None:
    write(machine.folder, {".git/HEAD": "", ".gitignore": "slurm/\n", "slurm/data": ""})
    machine.submit("slurm/job.sbatch")
    assert sorted(path.name for path in machine.sent().iterdir()) == ["data", "job.sbatch"]


def test_the_job_file_travels_whatever_the_patterns_say(machine: Machine) -> None:
    write(machine.folder, {".gitignore": "slurm/\n*.sbatch\n"})
    assert "slurm/job.sbatch" in sent(machine)


def test_a_job_file_that_names_files_beside_its_folder_is_told_of_the_option(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine.folder, {".git/HEAD": "", "slurm/job.sbatch": f"{JOB}srun python src/train.py\n"})
    machine.submit("slurm/job.sbatch")
    told = capsys.readouterr().err
    assert "job.sbatch names src/train.py, which is in the repository but outside the job folder slurm/;" in told
    assert f"--folder '{machine.folder}'" in told


@pytest.mark.parametrize("named", ["src/train.py", "$SLURM_SUBMIT_DIR/src/train.py", "${PWD}/src/train.py", "tool.py"])
def test_in_the_root_of_a_repository_a_job_begins_there_as_with_sbatch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    monkeypatch.chdir(machine.folder)
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}srun python {named}\n", "tool.py": ""})

    machine.submit("slurm/job.sbatch")

    assert machine.noted()[3:] == ["--parsable", f"{machine.sent()}/slurm/job.sbatch"]
    assert (machine.sent() / "src/train.py").is_file()
    assert f"the job folder is {machine.folder}, since slurm/job.sbatch names" in capsys.readouterr().err


@pytest.mark.parametrize("beside", [{"slurm/src/train.py": ""}, {"slurm/job.sbatch": f"{JOB}srun hostname\n"}])
def test_a_job_that_needs_nothing_of_the_current_folder_begins_beside_its_file(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, beside: dict[str, str]
) -> None:
    monkeypatch.chdir(machine.folder)
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}srun python src/train.py\n", **beside})

    machine.submit("slurm/job.sbatch")

    assert machine.noted()[3:] == ["--parsable", f"{machine.sent()}/job.sbatch"]


def test_a_home_is_no_job_folder_whatever_a_job_file_in_it_names(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine.folder)
    monkeypatch.setenv("HOME", str(machine.folder))
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}srun python src/train.py\n"})

    machine.submit("slurm/job.sbatch")

    assert machine.noted()[3:] == ["--parsable", f"{machine.sent()}/job.sbatch"]


@pytest.mark.parametrize(
    "line",
    [
        "export TRAIN_SCRIPT=${TRAIN_SCRIPT:=../src/train.py}",
        "python $SLURM_SUBMIT_DIR/../src/train.py",
        'REPO_ROOT="$(cd "$SLURM_SUBMIT_DIR/.." && pwd)"',
        "python ./../src/train.py",
    ],
)
def test_a_job_that_names_files_above_its_folder_starts_beside_its_file_with_them_above(
    machine: Machine, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}{line}\n"})

    machine.submit("slurm/job.sbatch", "--chdir=.")

    assert machine.noted()[3:] == ["--parsable", "--chdir=.", f"{machine.sent()}/job.sbatch"]
    assert (machine.sent() / "../src/train.py").is_file()
    told = capsys.readouterr().err
    assert f"the job folder is {machine.folder}, since slurm/job.sbatch names .." in told
    assert "the job starts in slurm" in told


@pytest.mark.parametrize(
    "line",
    ["cmake ../missing", "# see ../src/train.py", "cat $HOME/../src/train.py", "cd build; cd ..", "echo a../src"],
)
def test_a_folder_above_stays_where_the_job_file_names_nothing_of_it(machine: Machine, line: str) -> None:
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}{line}\n"})

    machine.submit("slurm/job.sbatch")

    assert list(machine.sent().rglob("*")) == [machine.sent() / "job.sbatch"]


def test_more_folders_above_than_there_are_end_at_the_root_which_is_not_uploaded(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}cat {'../' * 40}etc/hostname {'../' * 40}etc/passwd\n"})

    machine.submit("slurm/job.sbatch")

    assert list(machine.sent().rglob("*")) == [machine.sent() / "job.sbatch"]
    assert "/ is a folder of the system, which is not uploaded" in capsys.readouterr().err.replace("\n", " ")


def test_a_home_above_the_job_file_is_not_uploaded_and_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(machine.folder))
    write(machine.folder, {"slurm/job.sbatch": f"{JOB}srun python ../src/train.py\n"})

    machine.submit("slurm/job.sbatch")

    assert list(machine.sent().rglob("*")) == [machine.sent() / "job.sbatch"]
    assert f"job.sbatch names ../src/train.py, and {machine.folder} is a home folder" in capsys.readouterr().err


def test_all_of_it_is_done_by_the_jobs_account(machine: Machine) -> None:
    sent(machine)
    assert machine.users == ["ubuntu"] * 3


def test_two_submissions_do_not_share_a_folder(machine: Machine) -> None:
    sent(machine)
    first = machine.sent()
    sent(machine)
    assert machine.sent() != first


def test_links_travel_as_links_and_those_that_lead_nowhere_are_named(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    links = {
        "leak": "/etc/shadow", "data": "/fsx/data", "near": "src/train.py", "src/up": "../slurm", "out": "../../x",
        "left": "a.pt", "through": "data/part", "fsxy": "/fsxy/a", "root": "/fsx",
    }  # fmt: skip
    write(machine.folder, {".gitignore": "*.pt\n", "a.pt": ""})
    for path, target in links.items():
        (machine.folder / path).symlink_to(target)
    sent(machine)

    assert {path: str((machine.sent() / path).readlink()) for path in links} == links
    told = [line.split()[2] for line in capsys.readouterr().err.splitlines() if line.startswith("the link")]
    assert told == ["fsxy", "leak", "left", "out"]


def test_modes_are_kept_and_no_program_runs_as_its_owner(machine: Machine) -> None:
    modes = {"slurm/job.sbatch": 0o640, "src/train.py": 0o755, "src": 0o750}
    for path, mode in modes.items():
        (machine.folder / path).chmod(mode)
    write(machine.folder, {"root": ""})
    (machine.folder / "root").chmod(0o4711)
    sent(machine)

    found = {path: (machine.sent() / path).stat().st_mode & 0o7777 for path in (*modes, "root")}
    assert found == {**modes, "root": 0o711}
    assert machine.metadata["file-permissions"] == "0100400"
    assert machine.metadata["file-owner"] == str(os.getuid())


def test_what_is_no_file_stays_and_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(machine.folder / "a pipe\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(machine.folder / "talk"))
        found = sent(machine)
    assert not {"a pipe\n", "talk"} & found
    assert capsys.readouterr().err == "left out: 'a pipe\\n' (a FIFO); talk (a socket)\n"


def test_a_job_file_whose_name_has_a_line_end_is_named_in_one_line(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    write(machine.folder, {"a\nb.sbatch": f"{JOB}true\n#SBATCH -N2\n"})
    machine.submit("a\nb.sbatch", root=machine.folder)
    assert "'a\\nb.sbatch', line 3: sbatch ignores '#SBATCH -N2'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (
            {".gitignore": ".venv/\n"},
            ".venv/bin/activate, which is left out (.gitignore); to upload it: the line !/.venv/",
        ),
        ({".venv/.gitignore": "*\n"}, ".venv/bin/activate, which is left out (.gitignore); "),
        (
            {".gitignore": "/data\n"},
            "data/train.bin, which is left out (.gitignore); to upload it: the line !/data/ in",
        ),
    ],
)
def test_a_file_that_the_job_file_names_and_that_stays_is_named(
    machine: Machine, capsys: pytest.CaptureFixture[str], patterns: dict[str, str], told: str
) -> None:
    text = f"{JOB}source .venv/bin/activate\npython src/train.py data/train.bin\n"
    write(machine.folder, {**patterns, ".venv/bin/activate": "", "data/train.bin": "", "slurm/job.sbatch": text})
    sent(machine)
    assert f"job.sbatch names {told}" in capsys.readouterr().err


def test_a_pointer_of_git_lfs_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    write(machine.folder, {"model.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"})
    sent(machine)
    assert "model.bin is a Git LFS pointer and not the file; fetch it with: git lfs pull" in capsys.readouterr().err


def test_a_file_that_is_exchanged_after_it_was_listed_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange(path: Path) -> None:
        path.unlink()
        path.symlink_to("/etc/passwd")

    def grow(path: Path) -> None:
        path.write_text("more than before")

    path = machine.folder / "src" / "train.py"
    for change in (exchange, grow):
        path.unlink()
        path.write_text("print()\n")

        def begin(*_: object, change: Callable[[Path], None] = change) -> tuple[str, str, str]:
            change(path)
            return "bucket", "jobs", str(machine.jobs)

        # Asked between the list and the reading.
        monkeypatch.setattr("holdfast.cli.submission.job_files.jobs_prefix", begin)
        with pytest.raises(CommandError, match=r"train\.py' changed while it was read.*; submit again"):
            sent(machine)
        assert list(machine.jobs.iterdir()) == []


def test_a_job_file_that_is_a_link_out_of_its_folder_is_refused(machine: Machine) -> None:
    (machine.folder / "slurm" / "now.sbatch").symlink_to("job.sbatch")
    check_job_file(machine.folder / "slurm" / "now.sbatch")
    (machine.folder / "out.sbatch").symlink_to("/etc/shadow")
    with pytest.raises(CommandError, match=r"symbolic link that leads out of the job folder.*; name /etc/shadow"):
        check_job_file(machine.folder / "out.sbatch")


def test_the_largest_entries_are_named_where_too_much_would_travel(machine: Machine) -> None:
    for name, size in {"a/x": 40, "a/y": 10, "b": 20, "c": 5, "d": 1}.items():
        path = machine.folder / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size << 20)
    with pytest.raises(CommandError, match=r"76\.0 MiB.*largest: a \(50\.0 MiB\), b \(20\.0 MiB\), c \(5\.0 MiB\)"):
        sent(machine)
    assert list(machine.jobs.iterdir()) == []


def test_home_folders_and_those_of_the_system_are_refused_before_they_are_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = machine.folder / "slurm" / "job.sbatch"
    with pytest.raises(CommandError, match=r"^/ is a folder of the system"):
        check_job_file(file, folder=Path("/"))
    monkeypatch.setenv("HOME", str(machine.folder))
    monkeypatch.setattr("holdfast.cli.submission.folders.os.listdir", lambda _: pytest.fail("it was read"))
    for folder in (machine.folder, machine.folder / "slurm" / ".."):
        with pytest.raises(CommandError, match="is a home folder"):
            check_job_file(file, folder=folder)


def test_a_working_folder_is_one_of_the_job_folder_or_of_the_nodes(machine: Machine) -> None:
    sent(machine, "--chdir", "src")
    assert machine.noted()[3:] == ["--parsable", "--chdir", "src", f"{machine.sent()}/slurm/job.sbatch"]
    sent(machine, "--chdir=/fsx/runs")
    with pytest.raises(CommandError, match=r"got --chdir nowhere; allowed: a folder of the job folder"):
        sent(machine, "-D", "nowhere")
    with pytest.raises(CommandError, match=r"a path of this machine; on the nodes it is: --chdir src"):
        sent(machine, "--chdir", str(machine.folder / "src"))


def test_a_folder_that_cannot_be_unpacked_leaves_nothing_behind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.submission.job_files.UNPACK", 'mkdir "$3"; echo tar: no space >&2; exit 2')
    with pytest.raises(CommandError, match=r"cannot be unpacked in .*: tar: no space"):
        sent(machine)
    assert list(machine.jobs.iterdir()) == []


def test_a_slurmctld_that_has_not_started_is_waited_for(machine: Machine) -> None:
    tool = machine.seen.parent / "bin" / "sbatch"
    tool.rename(tool.with_name("second"))
    error = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    tool.write_text(f"#!/bin/sh\nmv {tool.with_name('second')} $0\necho '{error}' >&2\nexit 1\n")
    tool.chmod(0o755)
    assert "src/train.py" in sent(machine)


def test_a_job_that_sbatch_refuses_leaves_no_folder(machine: Machine) -> None:
    (machine.seen.parent / "bin" / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    with pytest.raises(CommandError, match=r"sbatch refused job\.sbatch: invalid partition"):
        sent(machine)
    assert list(machine.jobs.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "sbatch: error: invalid partition specified: gpu\nsbatch: error: submission failed",
            "invalid partition specified: gpu; submission failed; the cluster has partition dev: 5 nodes with 96 CPUs, "
            "2097152 MB, gpu:8; partition cpu: 1 nodes with 8 CPUs, 1 MB; options after the job file override its own, "
            "such as --partition=NAME",
        ),
        ("sbatch: error: Invalid --time specification", "Invalid --time specification"),
    ],
)
def test_a_request_for_another_cluster_is_refused_with_what_this_one_has(
    machine: Machine, said: str, told: str
) -> None:
    tools = machine.seen.parent / "bin"
    (tools / "sbatch").write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    nodes = ("dev: 5 nodes with 96 CPUs, 2097152 MB, gpu:8", "cpu: 1 nodes with 8 CPUs, 1 MB, (null)")
    lines = "".join(f"partition {one}, features (null)\\n" for one in nodes)
    (tools / "sinfo").write_text(f"#!/bin/sh\nprintf '{lines}'\n")
    (tools / "sinfo").chmod(0o755)
    with pytest.raises(CommandError) as refused:
        sent(machine)
    assert str(refused.value) == f"sbatch refused job.sbatch: {told}"


def test_an_option_with_which_sbatch_submits_nothing_prints_its_answer_and_writes_no_event(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[object] = []
    monkeypatch.setattr("holdfast.cli.submission.job_files.record_event", lambda *_, **given: events.append(given))
    estimate = "sbatch: Job 8 to start at 2026-11-29T10:00:00 using 2 processors"
    (machine.seen.parent / "bin" / "sbatch").write_text(f"#!/bin/sh\necho '{estimate}' >&2\n")

    assert machine.submit("slurm/job.sbatch", "--test-only", root=machine.folder) == ""

    said = capsys.readouterr()
    assert "nothing submitted" in said.out
    assert estimate in " ".join(said.err.split())
    assert events == []
    assert list(machine.jobs.iterdir()) == []


def test_a_controller_that_dies_while_it_unpacks_is_waited_for(machine: Machine) -> None:
    answers: list[int | str] = ["node head cannot be asked", -9]
    machine.before_unpacking = lambda: answers.pop(0) if answers else None
    assert "src/train.py" in sent(machine)
    assert answers == []


def test_a_controller_that_stays_dead_ends_the_submission_and_leaves_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.submission.job_files.APPEAR_TIMEOUT_S", 0.1)
    machine.before_unpacking = lambda: "node head cannot be asked"
    with pytest.raises(CommandError, match=r"nothing was submitted: node head cannot be asked"):
        sent(machine)
    assert list(machine.jobs.iterdir()) == []


def test_a_folder_of_too_many_files_is_refused_with_its_three_largest_folders_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.submission.folders.MAX_FILES", 20)
    for name, count in {"a": 12, "b/c": 4, "b/d": 5, "y": 3, "z/deep/deeper": 40}.items():
        (tmp_path / name).mkdir(parents=True)
        for number in range(count):
            (tmp_path / name / str(number)).touch()
    (tmp_path / "job.sbatch").touch()

    with pytest.raises(
        CommandError, match=r"has 65 files, and at most 20 can be uploaded; most of them in "
    ) as refused:
        read_folder(tmp_path, always="job.sbatch")

    assert "most of them in z (40), a (12), b (9); list files to leave out in .holdfastignore" in str(refused.value)


def test_counting_ends_where_a_folder_has_far_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.submission.folders.MAX_FILES", 5)
    monkeypatch.setattr("holdfast.cli.submission.folders.COUNTED_FILES", 8)
    for number in range(20):
        (tmp_path / f"{number:02}").touch()

    with pytest.raises(
        CommandError, match=r"has more than 8 files, and at most 5 can be uploaded; .* in the folder itself;"
    ):
        read_folder(tmp_path, always="00")


def test_a_thousand_files_are_packed_in_no_time_and_it_is_shown_how_far_that_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("holdfast.cli.terminal.Step.update", lambda _, note: said.append(note))
    write(machine.folder, {f"{number % 10}/{number}": "x" for number in range(1_000)})

    begun = time.process_time()
    machine.submit("slurm/job.sbatch", root=machine.folder)

    assert time.process_time() - begun < 5.0
    assert said[0].startswith("packing, 0 of 1,0")
    assert [note for note in said if note.startswith("packing, 1,000 of 1,0")]
