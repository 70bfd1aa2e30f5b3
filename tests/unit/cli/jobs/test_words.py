"""Words around a job file: options for sbatch, arguments for the file, and nothing that could be either."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast import cli
from holdfast.cli.deployed import Context, Session
from holdfast.cli.submission import SbatchArguments
from holdfast.cli.terminal import CommandError
from holdfast.localcloud import LocalCloud


@pytest.mark.parametrize(
    ("words", "arguments", "options", "passed"),
    [
        ([], None, (), ()),
        (["--nodes=2", "-N", "4", "-J", "a name", "-H"], None, ("--nodes=2", "-N", "4", "-J", "a name", "-H"), ()),
        (["-N2"], ["--lr", "3e-4"], ("-N2",), ("--lr", "3e-4")),
        (["--nodes", "2", "--exclusive", "-HJ", "x y"], None, ("--nodes", "2", "--exclusive", "-HJ", "x y"), ()),
        (["--job-name", "-x", "-N2"], None, ("--job-name", "-x", "-N2"), ()),
        ([], ["-x", "--", "y z"], (), ("-x", "--", "y z")),
        (["data", "--lr", "3"], None, (), ("data", "--lr", "3")),
    ],
)
def test_words_before_the_dashes_are_sbatchs_and_those_after_them_the_job_files(
    words: list[str], arguments: list[str] | None, options: tuple[str, ...], passed: tuple[str, ...]
) -> None:
    assert SbatchArguments.parse(words, arguments=arguments) == SbatchArguments(options=options, arguments=passed)


@pytest.mark.parametrize(
    ("words", "arguments", "options", "passed"),
    [
        (["--nodes=2", "-N", "4", "-H", "a.sbatch"], None, ("--nodes=2", "-N", "4", "-H"), ()),
        (
            ["--dependency", "afterok:4", "a.sbatch", "--lr", "3e-4", "data"],
            None,
            ("--dependency", "afterok:4"),
            ("--lr", "3e-4", "data"),
        ),
        (["-J", "b.sbatch", "a.sbatch", "x"], ["-y"], ("-J", "b.sbatch"), ("x", "-y")),
        (["a.sbatch", "-N2"], ["x"], ("-N2",), ("x",)),
    ],
)
def test_options_before_the_job_file_make_arguments_of_what_follows_it_as_sbatch_has_it(
    words: list[str], arguments: list[str] | None, options: tuple[str, ...], passed: tuple[str, ...]
) -> None:
    expected = "a.sbatch", SbatchArguments(options=options, arguments=passed)
    assert SbatchArguments.around(words, arguments=arguments) == expected


@pytest.mark.parametrize("words", [["--nodes", "2"], ["-H"], ["-N"]])
def test_options_without_a_job_file_are_refused(words: list[str]) -> None:
    with pytest.raises(CommandError, match="got no job file behind"):
        SbatchArguments.around(words, arguments=None)


@pytest.mark.parametrize(
    "words", [["--exclusive", "train.py"], ["-H", "x"], ["-k", "x"], ["--nod", "2"], ["-N", "2", "other"], ["-N2", "x"]]
)
def test_a_word_that_sbatch_might_take_for_the_job_file_is_refused(words: list[str]) -> None:
    with pytest.raises(CommandError, match="among the options of sbatch; allowed: options with their values"):
        SbatchArguments.parse(words, arguments=None)


@pytest.mark.parametrize("words", [["--nodes"], ["-N2", "-J"]])
def test_an_option_without_its_value_does_not_swallow_the_job_file(words: list[str]) -> None:
    with pytest.raises(CommandError, match="without its value"):
        SbatchArguments.parse(words, arguments=[])


@pytest.mark.parametrize("word", ["--wrap=reboot", "--wr=reboot", "--parsable", "--help", "-V", "--wait", "-HW"])
def test_what_would_make_sbatch_run_or_print_something_else_is_refused(word: str) -> None:
    with pytest.raises(
        CommandError, match=r"does not support; for sbatch itself: holdfast ssh NODE --user ubuntu -- sbatch"
    ):
        SbatchArguments.parse([word], arguments=None)


def test_the_command_line_keeps_its_own_options_and_hands_on_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a b.sbatch"
    file.write_text("#!/bin/sh\n")
    seen: list[object] = []
    job_ids = iter(["7", ""])

    def submit_job(_context: object, **given: object) -> str:
        seen.append(given)
        return next(job_ids)

    session = Session(
        environment="local", cloud="embedded", region="us-west-2", stack_name="s", cluster_name="local", port=1
    )
    context = Context(session=session, local=LocalCloud(home=tmp_path, port=1))
    monkeypatch.setattr("holdfast.cli.commands.jobs.submit.locate", lambda **_: context)
    monkeypatch.setattr(Context, "orchestrator", "slurm")
    monkeypatch.setattr("holdfast.cli.submission.submitting.submit_job", submit_job)
    done = CliRunner().invoke(
        cli.app, ["submit", str(file), "-N2", "--user", "trainer", "--qos=high", "--json", "--", "--json", "--user"]
    )

    assert done.exit_code == 0, done.output
    assert done.stdout == '{\n  "job_id": "7"\n}\n'
    words = SbatchArguments(options=("-N2", "--qos=high"), arguments=("--json", "--user"))
    assert seen == [{"file": file, "user": "trainer", "words": words, "submission": None, "folder": None}]

    done = CliRunner().invoke(
        cli.app, ["submit", "-N", "2", "--test-only", "--user", "trainer", str(file), "--lr", "1"]
    )
    words = SbatchArguments(options=("-N", "2", "--test-only"), arguments=("--lr", "1"))
    assert seen[1:] == [{"file": file, "user": "trainer", "words": words, "submission": None, "folder": None}]
    assert (done.exit_code, done.output) == (0, "")
