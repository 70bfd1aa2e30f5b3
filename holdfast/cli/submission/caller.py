"""
Environment variables that a job gets from the caller, as in ``STEPS=100 sbatch job.sbatch``. Pure.

sbatch passes its whole environment. Here the job runs on another machine, so only variables that the job file or
``--export`` names are passed, without those of this machine and without credentials.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.submission.job_text import value_of

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_IN_SHELL = re.compile(rf"\$(?:\{{[#!]?)?({_NAME})")
_IN_PYTHON = re.compile(rf"(?:environ(?:\.get)?|getenv)\s*[\[(]\s*[\"']({_NAME})[\"']")
_OF_THE_MACHINE = frozenset({
    "BASH_ENV", "CLASSPATH", "CPATH", "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES", "DISPLAY", "EDITOR", "ENV", "EUID", "HOME",
    "HOSTNAME", "IFS",
    "LIBPATH", "LOGNAME", "MAIL", "MANPATH", "NODE_PATH", "OLDPWD", "PATH", "PERL5LIB", "PPID", "PS1",
    "PWD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "SHELL", "SHLVL", "TEMP", "TERM", "TMP", "TMPDIR",
    "UID", "USER", "VIRTUAL_ENV", "_",
})  # fmt: skip
_PREFIXES_OF_THE_MACHINE = (
    "BASH_", "CONDA_", "DBUS_", "DYLD_", "GPG_", "HOLDFAST_", "LD_", "SALLOC_", "SBATCH_", "SLURM", "SRUN_", "SSH_",
    "SUDO_", "XDG_",
)  # fmt: skip
_SUFFIXES_OF_THE_MACHINE = ("LIBRARY_PATH", "INCLUDE_PATH", "PKG_CONFIG_PATH")
_SECRET_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_APPLICATION_", "KUBE")
_SECRET_ENDS = ("APIKEY", "CREDENTIAL", "CREDENTIALS", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN")
_SECRET_PARTS = frozenset({"AUTH", "BEARER", "COOKIE", "KEY", "PASS", "PAT", "PW", "PWD", *_SECRET_ENDS})
_SECRET_VALUE = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bhf_\w{20,}|\bgh[pousr]_\w{20,}|\bgithub_pat_|\bsk-[\w-]{16,}|\bxox[abprs]-"
    r"|\bglpat-|-----BEGIN|://[^/@:\s]*:[^/@\s]+@|\beyJ[\w-]{10,}\."
)
OWN = ("HOLDFAST_TOKEN", "HOLDFAST_SUBMISSION")


@dataclass(frozen=True, kw_only=True)
class FromCaller:
    passed: Mapping[str, str]
    refused: tuple[str, ...] = ()
    """Names of the caller's variables that describe this machine, or are credentials."""
    export: str | None = None
    """Value of ``--export`` that sbatch gets in the place of the one given; None: as it is."""

    @property
    def line(self) -> str:
        """Summary for users; empty if no variable was named."""
        notes = [f"variables passed to the job: {', '.join(sorted(self.passed))}"] if self.passed else []
        if self.refused:
            notes.append(f"not passed, since they are credentials or belong to this machine: {', '.join(self.refused)}")
        return "; ".join(notes)


def from_caller(
    environment: Mapping[str, str], *, text: str, options: Sequence[str], script_options: Sequence[str]
) -> FromCaller:
    """Choose the variables; ``options`` of the command line override the ``#SBATCH`` lines in ``script_options``."""
    given = value_of(tuple(options), "--export")
    export = given if given is not None else value_of(tuple(script_options), "--export")
    listed = [] if export is None else [word for word in re.split(r",(?=\w+(?:=|,|$))", export) if word]
    names = {word for word in listed if "=" not in word} - {"ALL", "NONE", "NIL"}
    hands_on_all = export is None or "ALL" in listed
    named = names | (_named_by(text) if hands_on_all else set())
    there = {name for name in named if name in environment}
    refused = {name for name in there if belongs_here(name, environment[name])}
    # The job's environment has a PATH and a HOME in any case: that those of the caller do not travel surprises nobody.
    named_refusals = refused - _OF_THE_MACHINE - {name for name in refused if name.startswith(("SLURM", "HOLDFAST_"))}
    own = ",".join([*(word for word in listed if word not in ("NONE", "NIL")), *OWN])
    return FromCaller(
        passed={name: environment[name] for name in sorted(there - refused)},
        refused=tuple(sorted(named_refusals | (refused & names))),
        export=None if hands_on_all else own,
    )


def belongs_here(name: str, value: str) -> bool:
    """Return True for this machine's paths, accounts and sessions, and for credentials."""
    upper = name.upper()
    return (
        upper in _OF_THE_MACHINE
        or upper.startswith((*_PREFIXES_OF_THE_MACHINE, *_SECRET_PREFIXES))
        or upper.endswith((*_SUFFIXES_OF_THE_MACHINE, *_SECRET_ENDS))
        or not _SECRET_PARTS.isdisjoint(upper.split("_"))
        or _SECRET_VALUE.search(value) is not None
    )


def _named_by(text: str) -> set[str]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {*_IN_SHELL.findall(lines), *_IN_PYTHON.findall(lines)}
