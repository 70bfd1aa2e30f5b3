"""5xx: scripts that never end, and those that change what HyperPod manages."""

import re
from collections.abc import Iterator

from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import Deployment, Script
from holdfast.validation.rules.lifecycle.scripts import lines_of

_FOREVER = re.compile(r"^\s*(?:while\s+(?:true|:|\[\s*1\s*\])\s*;?|for\s*\(\(\s*;\s*;\s*\)\)|until\s+false\s*;?)")
_WAITS = re.compile(r"^\s*(?:sudo\s+)?(?:tail\s+(?:\S+\s+)*-[fF]\b|sleep\s+infinity|journalctl\s+(?:\S+\s+)*-f\b)")
_LEAVES = re.compile(r"\b(?:break|exit|return|exec)\b")
_HERE = re.compile(r"<<-?\s*[\\'\"]?(\w+)")
_PARTITIONS = re.compile(r"slurm\.conf.*\b(?:PartitionName|NodeName)|\b(?:PartitionName|NodeName)\b.*slurm\.conf")

_SUDO = r"^\s*(?:sudo\s+)?"
_MANAGED = (
    (
        re.compile(_SUDO + r"(?:reboot|shutdown|poweroff|halt|init\s+[06]|systemctl\s+(?:reboot|poweroff))\b"),
        "restarts the node",
    ),
    (
        re.compile(_SUDO + r"systemctl\s+(?:--now\s+)?(?:stop|disable|mask)\s.*\b(?:amazon-ssm-agent|kubelet)\b"),
        "stops a service that HyperPod needs",
    ),
    (re.compile(_SUDO + r"rm\s+-\w*r\w*\s.*/opt/(?:ml|slurm|aws|amazon)\b"), "removes files of HyperPod"),
    (
        re.compile(_SUDO + r"(?:apt|apt-get|yum|dnf)\s.*\binstall\s.*(?<![\w-])(?:slurm|nvidia-driver|cuda-drivers)"),
        "installs what the AMI has",
    ),
    (re.compile(r"(?:>|\btee\s+(?:-a\s+)?|\bsed\s+-i.*)\s*/opt/ml/config/"), "changes the cluster's configuration"),
)
"""Commands, and what they do to a node."""


@rule(
    "HF525",
    title="Scripts end",
    each=Script,
    source="SageMaker developer guide, 'Customize SageMaker HyperPod clusters using lifecycle scripts'",
)
def scripts_end(script: Script, _: Deployment) -> Iterator[Broken]:
    """
    A node joins when its scripts have ended. What has to go on is a service, or is put into the background with `&`.
    """
    for number, line in _endless(list(lines_of(script))):
        yield refused(
            script.path,
            f"line {number} of {script.name}, which never ends: {line.strip()[:60]}",
            allowed="scripts that end",
            fix="make it a service of systemd, or put it into the background with &",
        )


@rule(
    "HF526",
    severity="warning",
    title="Scripts leave what HyperPod manages to HyperPod",
    each=Script,
    source="SageMaker developer guide, 'Getting started with SageMaker HyperPod using the AWS CLI' (partitions), "
    "'Customize SageMaker HyperPod clusters using lifecycle scripts' (/opt/ml/config); that the others fail: assumed",
)
def managed_by_hyperpod(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """
    With the strategy Managed an update fails where nodes or partitions in slurm.conf were changed, with Overwrite the
    change is lost; continuous provisioning and Merge keep it. HyperPod reads /opt/ml/config, reaches nodes through the
    agent of Systems Manager, and restarts nodes itself: one that restarts in its script is taken for a failed one.
    Slurm and drivers are in its AMI, in versions that belong together.
    """
    cluster = deployment.cluster
    checked = cluster.slurm is not None and not cluster.continuous and cluster.slurm.config_strategy != "Merge"
    for number, line in lines_of(script):
        what = next((what for pattern, what in _MANAGED if pattern.search(line)), None)
        if what is None and checked and _PARTITIONS.search(line) and re.search(r"\bsed\b|\btee\b|>", line):
            what = "changes partitions in slurm.conf"
        if what is not None:
            yield Broken(
                path=script.path,
                message=f"line {number} of {script.name} {what}: {line.strip()[:60]}",
                fix="set partitions by the groups, or take the strategy Merge"
                if "slurm.conf" in what
                else "leave it out",
            )


def _endless(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    end: str | None = None
    for index, (number, line) in enumerate(lines):
        if end is not None:
            end = None if line.strip() == end else end
            continue
        here = _HERE.search(line)
        if here is not None:
            end = here[1]
        elif (_WAITS.match(line) and not _in_background(line)) or (
            _FOREVER.match(line) and not _is_left([text for _, text in lines[index:]])
        ):
            yield number, line


def _is_left(lines: list[str]) -> bool:
    """True if a loop that begins in the first line is left, or runs in the background."""
    depth = 0
    for line in lines:
        if _LEAVES.search(line):
            return True
        depth += len(re.findall(r"\bdo\b", line)) - len(re.findall(r"\bdone\b", line))
        if depth <= 0 and re.search(r"\bdone\b", line):
            return _in_background(line)
    return False


def _in_background(line: str) -> bool:
    return line.rstrip().endswith("&") and not line.rstrip().endswith("&&")
