"""Variables that a job gets from whoever submits it, and the text of its file."""

import pytest

from holdfast.cli.submission import JobTextError, check_text, from_caller, late_options, options_of

CALLER = {
    "STEPS": "100", "MODEL": "a b", "PATH": "/here", "HOME": "/root", "LD_LIBRARY_PATH": "/here", "HF_TOKEN": "x",
    "WANDB_API_KEY": "x", "AWS_PROFILE": "me", "DATA_PATH": "/fsx/data", "MAX_TOKENS": "9", "TOKENIZER": "bytes",
    "SLURM_JOB_ID": "1", "DB": "postgres://me:secret@host/db", "GITHUBTOKEN": "x", "PYTHONPATH": "/here",
    "UNNAMED": "1",
    "SEEN": "hf_abcdefghijklmnopqrstuvwxyz",
}  # fmt: skip


def passed(text: str, *, options: tuple[str, ...] = (), lines: tuple[str, ...] = ()) -> dict[str, str]:
    return dict(from_caller(CALLER, text=text, options=options, script_options=lines).passed)


@pytest.mark.parametrize(
    "text", ["echo $STEPS", 'python x.py --n "${STEPS:-10}"', "echo ${#STEPS}", "os.environ['STEPS']",
             'os.environ.get("STEPS", 1)', 'os.getenv("STEPS")', ": ${STEPS:=5}"]
)  # fmt: skip
def test_a_variable_that_the_job_file_names_travels(text: str) -> None:
    assert passed(f"#!/bin/bash\n{text}\n") == {"STEPS": "100"}


def test_what_the_job_file_does_not_name_or_only_in_a_comment_stays() -> None:
    assert passed("#!/bin/bash\n# run with $STEPS\necho STEPS $STEPSIZE\n") == {}


def test_nothing_of_this_machine_and_no_credential_travels_and_what_was_named_is_told() -> None:
    found = from_caller(CALLER, text=" ".join(f"${name}" for name in CALLER), options=(), script_options=())
    assert set(found.passed) == {"STEPS", "MODEL", "DATA_PATH", "MAX_TOKENS", "TOKENIZER", "UNNAMED"}
    assert found.refused == ("AWS_PROFILE", "DB", "GITHUBTOKEN", "HF_TOKEN", "LD_LIBRARY_PATH", "SEEN", "WANDB_API_KEY")
    assert found.line.startswith("variables passed to the job: DATA_PATH, MAX_TOKENS, MODEL, STEPS")
    assert "secret" not in found.line


@pytest.mark.parametrize(
    ("options", "lines", "variables", "export"),
    [
        (("--export=UNNAMED",), (), {"UNNAMED"}, "UNNAMED,HOLDFAST_TOKEN,HOLDFAST_SUBMISSION"),
        (("--export", "UNNAMED,A=b"), (), {"UNNAMED"}, "UNNAMED,A=b,HOLDFAST_TOKEN,HOLDFAST_SUBMISSION"),
        (("--export=ALL,UNNAMED",), (), {"STEPS", "UNNAMED"}, None),
        (("--export=NONE",), (), set(), "HOLDFAST_TOKEN,HOLDFAST_SUBMISSION"),
        ((), ("--export=NONE",), set(), "HOLDFAST_TOKEN,HOLDFAST_SUBMISSION"),
        (("--export=ALL",), ("--export=NONE",), {"STEPS"}, None),
        (("--export=A=x,y,UNNAMED",), (), {"UNNAMED"}, "A=x,y,UNNAMED,HOLDFAST_TOKEN,HOLDFAST_SUBMISSION"),
        ((), (), {"STEPS"}, None),
    ],
)
def test_export_chooses_as_it_does_for_sbatch_and_the_launchers_token_passes_in_any_case(
    options: tuple[str, ...], lines: tuple[str, ...], variables: set[str], export: str | None
) -> None:
    found = from_caller(CALLER, text="echo $STEPS", options=options, script_options=lines)
    assert (set(found.passed), found.export) == (variables, export)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbf#!/bin/bash\n", r"byte order mark; remove it: sed -i '1s/\^\\xEF\\xBB\\xBF//' a.sbatch"),
        (b"#!/bin/bash\r\necho\r\n", r"CRLF.*sed -i 's/\\r\$//' a.sbatch"),
        (b"#!/bin/bash\recho\r", r"old Macs.*sed -i 's/\\r/\\n/g' a.sbatch"),
        ("#!/bin/bash\n".encode("utf-16"), "UTF-16; make it UTF-8: iconv"),
        (b"echo\n", "does not begin with #!"),
    ],
)
def test_a_file_that_sbatch_does_not_take_is_refused_with_what_mends_it(content: bytes, message: str) -> None:
    with pytest.raises(JobTextError, match=message):
        check_text(content, name="a.sbatch")


def test_options_after_the_first_command_are_named_and_those_of_other_files_are_not() -> None:
    text = "#!/bin/bash\n#SBATCH -N1\n\n# why\ncat > b <<'EOF'\n#SBATCH -N9\nEOF\n#SBATCH --mem=0\n"
    assert late_options(text) == [(8, "#SBATCH --mem=0")]
    assert options_of(text) == ["-N1"]


@pytest.mark.parametrize("command", ['cat <<< "done"', "echo $((1 <<SIZE))", "read -r a b <<<hello"])
def test_what_only_looks_like_a_here_document_hides_no_late_option(command: str) -> None:
    assert late_options(f"#!/bin/bash\n{command}\n#SBATCH --nodes=5\ndone\n") == [(3, "#SBATCH --nodes=5")]
