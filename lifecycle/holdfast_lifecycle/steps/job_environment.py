"""
What every job finds is there: who and where it is, where events go, the packages that write them and keep it running.

Whole files under names of our own, so repeated runs give the same files.
"""

import shlex
from pathlib import Path
from typing import Optional

from holdfast_lifecycle.model import SLURM, Context, StepError
from holdfast_lifecycle.node import SERIES, SharedState

_LIBRARY = "/opt/holdfast/lib"
_PACKAGES = ("holdfast_common", "holdfast_runtime")
_PROGRAMS = "/opt/holdfast/env/bin"
_ENVIRONMENT = "/etc/holdfast/environment"
_PROFILE = "/etc/profile.d/holdfast.sh"
_LAUNCHER = "/usr/local/bin/holdfast-run"
"""In PATH of every shell and of every task of Slurm, also where no profile is read."""
_LAUNCH = f"""#!/bin/sh
# Written by holdfast_lifecycle at node creation; changes are lost.
# The first python3 of PATH starts the launcher, as PATH is the job's own. Errors are reported before any rank starts.
fail() {{
    echo "holdfast-run: $1" >&2
    exit 2
}}
again="make it again on a file system that all nodes have, with a Python that they have"
python=
set -f
IFS=:
for folder in ${{PATH:-}}; do
    if [ -f "$folder/python3" ] && [ -x "$folder/python3" ]; then
        python=$folder/python3
        break
    fi
    [ ! -L "$folder/python3" ] ||
        fail "$folder/python3 leads to $(command -p readlink -m "$folder/python3"), which is not on this node; $again"
    case $folder in
        "${{VIRTUAL_ENV:-/none}}/bin" | "${{CONDA_PREFIX:-/none}}/bin")
            fail "there is no $folder/python3 on this node; $again"
            ;;
    esac
done
[ -n "$python" ] || fail "got PATH='${{PATH:-}}', without a python3; activate an environment, or add /usr/bin to PATH"
PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{_LIBRARY} exec "$python" -m holdfast_runtime.launcher "$@"
"""
_OF_THE_NODE = ("HOLDFAST_INSTANCE_ID", "HOLDFAST_INSTANCE_GROUP")
_MODES = {_LAUNCHER: 0o755}
_FILE_MODE = 0o644
_FOLDER_MODE = 0o755
_EVENTS_MODE, _JOB_EVENTS_MODE = 0o640, 0o666
"""Jobs write a log of their own: what is in the other is the agent's and the lifecycle's."""


def _variables(context: Context) -> dict[str, str]:
    image = {"HOLDFAST_TRAINING_IMAGE": context.training_image} if context.training_image else {}
    return {
        "HOLDFAST_CLUSTER": context.cluster_name,
        "HOLDFAST_INSTANCE_ID": context.instance_id,
        "HOLDFAST_INSTANCE_GROUP": context.instance_group,
        "HOLDFAST_EVENTS": context.job_events_path,
        **image,
        **_series(context),
        **context.job_environment,
    }


def _series(context: Context) -> dict[str, str]:
    """Name of the series of job numbers; the controller writes it with Slurm's state."""
    if context.role not in SLURM or not context.fsx_mount_path:
        return {}
    folder = SharedState.of(context).folder.relative_to(context.root)
    return {"HOLDFAST_JOB_SERIES": f"/{folder / SERIES}"}


def _append(variable: str, folder: str) -> str:
    """Shell that appends a folder once: the user's come first."""
    present = f"${{{variable}:-}}"
    return f'case ":{present}:" in *":{folder}:"*) ;; *) {variable}="${{{variable}:+${variable}:}}{folder}" ;; esac'


def _default(name: str, value: str) -> str:
    """Shell that sets a variable unless the user has; the node's own names are always set."""
    assignment = f"{name}={shlex.quote(value)}"
    return assignment if name in _OF_THE_NODE else f'[ -n "${{{name}+set}}" ] || {assignment}'


def _files(context: Context) -> dict[str, bytes]:
    variables = _variables(context)
    plain = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    profile = (
        "# Written by holdfast_lifecycle at node creation; changes are lost.\n"
        + "".join(f"{_default(name, value)}\n" for name, value in variables.items())
        + f"{_append('PYTHONPATH', _LIBRARY)}\n"
        f"if [ -d {_PROGRAMS} ]; then {_append('PATH', _PROGRAMS)}; fi\n"
        f"export {' '.join(variables)} PYTHONPATH PATH\n"
    )
    files = {
        _ENVIRONMENT: f"{plain}PYTHONPATH={_LIBRARY}\n".encode(),
        _PROFILE: profile.encode(),
        _LAUNCHER: _LAUNCH.encode(),
    }
    for package in _PACKAGES:
        for source in sorted((context.bundle / package).rglob("*")):
            if source.suffix in (".json", ".py", ".typed"):
                files[f"{_LIBRARY}/{source.relative_to(context.bundle)}"] = source.read_bytes()
    return files


def _mode(path: Path) -> Optional[int]:
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return None


def _wrong(context: Context) -> list[str]:
    wrong = []
    for name, content in _files(context).items():
        path = context.path(name)
        if not path.is_file() or path.read_bytes() != content:
            wrong.append(name)
        elif name in _MODES and _mode(path) != _MODES[name]:
            wrong.append(f"mode of {name}")
    for log, mode in _logs(context).items():
        if _mode(context.path(log).parent) != _FOLDER_MODE:
            wrong.append(f"mode of {Path(log).parent}")
        if _mode(context.path(log)) != mode:
            wrong.append(f"mode of {log}")
    return wrong


def _logs(context: Context) -> dict[str, int]:
    """Logs of events with their modes; root owns both folders, so users cannot replace a file."""
    return {context.events_path: _EVENTS_MODE, context.job_events_path: _JOB_EVENTS_MODE}


def check(context: Context) -> bool:
    return not _wrong(context)


def apply(context: Context) -> None:
    for name, content in _files(context).items():
        path = context.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.tmp")
        unfinished.write_bytes(content)
        unfinished.chmod(_MODES.get(name, _FILE_MODE))
        unfinished.replace(path)
    for name, mode in _logs(context).items():
        path = context.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(_FOLDER_MODE)
        path.touch()
        path.chmod(mode)


def verify(context: Context) -> str:
    wrong = _wrong(context)
    if wrong:
        raise StepError(
            expected="the job environment is written",
            seen=f"not as written: {', '.join(wrong)}",
            action="check for a program on the node that changes these files, and the free space of its disk",
        )
    return f"{_ENVIRONMENT}, {_PROFILE}, {_LIBRARY}, {_LAUNCHER}"
