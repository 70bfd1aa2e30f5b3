"""Names that others choose are data: no shell runs them, and no console reads them as markup."""

import ast
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import holdfast
from rich.console import Console
from submitting import Machine

from holdfast.cli import views
from holdfast.cli.deployed import JobView, StatusView, job_output, parse_slurm
from holdfast.cli.submission import check_submission
from holdfast.cli.terminal import CommandError, error_console, step
from holdfast.cli.terminal import console as output_console

REPOSITORY = Path(__file__).parents[3]
NASTY = (
    "a b.sbatch",
    "a;id>x.sbatch",
    "$(touch x).sbatch",
    "`touch x`.sbatch",
    "'\".sbatch",
    "-n.sbatch",
    "a\\ b\n.sbatch",
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", NASTY)
def test_a_job_file_of_any_name_is_submitted_and_never_run_as_a_command(machine: Machine, name: str) -> None:
    for each in (name, "data with spaces", "sub;dir/$(touch y)"):
        path = machine.folder / each
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")

    assert machine.submit(name) == "17"

    where, token, _, *given = machine.seen.read_text().split("\0")[:-1]
    assert given == ["--parsable", f"{where}/{name}"]
    assert len(token) == 64
    assert Path(where).parent == machine.jobs
    assert {str(path.relative_to(where)) for path in Path(where).rglob("*") if path.is_file()} == {
        name,
        "data with spaces",
        "sub;dir/$(touch y)",
    }


@pytest.mark.parametrize(("given", "handed_on"), [(None, "none"), ("llama-8b", "llama-8b")])
def test_a_job_belongs_to_the_submission_that_is_named_and_otherwise_to_its_number(
    machine: Machine, given: str | None, handed_on: str
) -> None:
    (machine.folder / "job.sbatch").write_text("#!/bin/sh\n")
    machine.submit("job.sbatch", submission=given)
    assert machine.seen.read_text().split("\0")[2] == handed_on


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 65, "$(id)", "\u0667"])
def test_a_submission_has_a_name_that_folders_and_messages_can_have(name: str) -> None:
    with pytest.raises(CommandError, match=r"allowed: up to 64 letters"):
        check_submission(name)


def test_a_name_that_is_no_text_travels_as_it_is(machine: Machine) -> None:
    (machine.folder / "job.sbatch").write_text("#!/bin/sh\n")
    for name in ("a\udcff", "two\nlines"):
        (machine.folder / name).write_text("content")
    machine.submit("job.sbatch")

    assert sorted(path.name for path in machine.sent().iterdir()) == ["a\udcff", "job.sbatch", "two\nlines"]


@pytest.mark.parametrize("job", ["1;id", "$(id)", "1 2", "²", "-1", ""])
def test_logs_takes_numbers_of_jobs_only(job: str) -> None:
    with pytest.raises(CommandError, match="allowed: a number"):
        job_output(SimpleNamespace(), job=job)  # type: ignore[arg-type]


def test_the_name_of_a_job_cannot_disturb_the_queue() -> None:
    states, jobs = parse_slurm(
        "N|ip-1|idle\nJ|7|RUNNING|ip-1|0:01|None|a|b|c\nJ|8|PENDING||0:00|Resources|x\nN|y\nz|1\n"
    )

    assert states == {"ip-1": "idle"}
    assert [(job.job_id, job.name, job.state) for job in jobs] == [("7", "a|b|c", "RUNNING"), ("8", "x", "PENDING")]


@pytest.mark.parametrize("printer", [output_console, error_console], ids=["console", "error_console"])
def test_what_looks_like_markup_is_printed_as_it_is(printer: Console) -> None:
    with printer.capture() as printed:
        printer.print("[/x] [bold]a[/bold] :smile:")

    assert printed.get() == "[/x] [bold]a[/bold] :smile:\n"


def test_a_job_called_like_markup_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    job = JobView(job_id="1", name="[/x]", state="[/y]", nodes="[/n]", elapsed="0:01", reason="[red]")
    view = StatusView(
        environment="[/e]", cloud="embedded", endpoint="", problem="", stack_name="[/s]", stack_status="",
        stack_outputs={}, cluster_name="[/c]", cluster_status="", cluster_message="[/m]", orchestrator="slurm",
        nodes=[], jobs=[job], file_system=None, stand_ins={"[/g]": "[/h]"},
    )  # fmt: skip

    with output_console.capture() as printed:
        output_console.print(views.render_status(view))

    assert all(word in printed.get() for word in ("[/x]", "[/y]", "[/e]", "[/s]", "[/c]", "[/m]", "[/g]", "[/h]"))


def test_a_step_called_like_markup_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, markup=False, width=80)
    monkeypatch.setattr("holdfast.cli.terminal.output.console", terminal)

    with step("submit [/x]") as progress:
        progress.update("[/y]")

    assert "submit [/x]" in terminal.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "command",
    [
        ["check", "[/x].yaml"],
        ["submit", "[/x]/job"],
        ["up", "[/x]"],
        ["plan", "[/x].yaml"],
        ["status", "--[/x]"],
        ["[/x]"],
    ],
)
def test_a_path_called_like_markup_is_told_in_one_message(command: list[str], tmp_path: Path) -> None:
    answer = holdfast(*command, home=tmp_path)

    assert answer.returncode == 2
    assert "[/x]" in answer.stderr


def shell_programs(tree: ast.AST) -> list[ast.expr]:
    """What follows ``-c`` in lists of arguments, and ``shell=True``."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            for before, after in zip(node.elts, node.elts[1:], strict=False):
                if isinstance(before, ast.Constant) and before.value in ("-c", "-lc", "-ec", "-qec"):
                    found.append(after)
        if isinstance(node, ast.keyword) and node.arg == "shell":
            found.append(node.value)
    return found


def known_names(tree: ast.AST) -> set[str]:
    """Names that are only given constant text; and parameters, whose callers name a constant."""
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (
                    zip(target.elts, node.value.elts, strict=False)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if isinstance(name, ast.Name):
                        given.setdefault(name.id, []).append(value)
    constant = {name for name, values in given.items() if all(is_constant(value) for value in values)}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return constant | {argument.arg for function in functions for argument in function.args.args}


def is_constant(value: ast.expr) -> bool:
    """Text of the program itself, or put together from names in capitals."""
    if isinstance(value, ast.JoinedStr):
        return all(is_constant(part) for part in value.values)
    if isinstance(value, ast.FormattedValue):
        return isinstance(value.value, ast.Name) and value.value.id.isupper()
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id.isupper())


SHELLS_OF_DATA = {
    "holdfast/cli/commands/cluster/ssh.py": ["' '.join(words)"],  # a command line of the caller, as ssh takes it
    "holdfast/localcloud/aws/ssm/plugins.py": ["plan.command"],  # a command line of the caller, as the agent takes it
    "holdfast/localcloud/nodes/node.py": ["shlex.join(program)"],  # script(1) takes one text; each word is quoted
}


def test_no_program_of_a_shell_is_made_of_data() -> None:
    made = {}
    for top in ("holdfast", "lifecycle", "containers", "examples", "scripts"):
        for path in sorted((REPOSITORY / top).rglob("*.py")):
            text = path.read_text()
            if "shell=" not in text and 'c",' not in text:
                continue
            tree = ast.parse(text)
            known = known_names(tree)
            programs = [
                ast.unparse(program)
                for program in shell_programs(tree)
                if not (is_constant(program) or (isinstance(program, ast.Name) and program.id in known))
            ]
            if programs:
                made[str(path.relative_to(REPOSITORY))] = programs

    assert made == SHELLS_OF_DATA


def test_a_folder_that_is_too_large_is_refused_before_it_is_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.folder / "job.sbatch").write_text("#!/bin/sh\n")
    with (machine.folder / "model.bin").open("wb") as sparse:
        sparse.truncate(1 << 33)
    monkeypatch.setattr("holdfast.cli.submission.archives.read_entry", lambda *_: pytest.fail("something was read"))

    with pytest.raises(CommandError, match="at most 64 MiB can be uploaded"):
        machine.submit("job.sbatch")
