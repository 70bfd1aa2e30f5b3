import re
from collections.abc import Iterator
from pathlib import Path

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node.services import wait_until

FOLDER = "/opt/slurm/etc"
CONFIGURATION_S = 120.0
"""How long HyperPod's agent may take until it has written slurm.conf; AWS's own scripts wait for 60 s."""
_LINE = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(.*?)\s*$")
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*$", re.IGNORECASE)


def slurm_file(context: Context, name: str) -> Path:
    return context.path(f"{FOLDER}/{name}")


def slurm_settings(context: Context, name: str = "slurm.conf") -> dict[str, str]:
    """Lower-case name and last value of each setting, with included files; lines of nodes are not split."""
    return {key.lower(): value for key, value in _settings(slurm_file(context, name))}


def wait_for_configuration(context: Context) -> None:
    """On the controller: wait until HyperPod has written slurm.conf, also where it starts nothing."""
    if not wait_until(lambda: "slurmctldhost" in slurm_settings(context), timeout_s=CONFIGURATION_S):
        raise StepError(
            expected=f"HyperPod writes SlurmctldHost into {FOLDER}/slurm.conf",
            seen=f"not after {CONFIGURATION_S:g} s",
            action="check that the cluster has Orchestrator.Slurm and this group the node type Controller",
        )


def includes(context: Context, name: str) -> bool:
    lines = _lines(slurm_file(context, "slurm.conf"))
    return any(Path(found.group(1)).name == name for found in map(_INCLUDE.match, lines) if found)


def _settings(path: Path) -> Iterator[tuple[str, str]]:
    for line in _lines(path):
        included = _INCLUDE.match(line)
        if included:
            yield from _settings(path.parent / Path(included.group(1)).name)
        setting = _LINE.match(line)
        if setting:
            yield setting.group(1), setting.group(2).strip('"')


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [re.split(r"(?<!\\)#", line, maxsplit=1)[0] for line in text.splitlines()]
