"""5xx: lifecycle scripts: where they are, what they are written in, and whether that is right."""

import ast
import re
from collections.abc import Iterator

from holdfast.catalog.facts import page_fact
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Deployment, EnvironmentFile, Script

_UBUNTU = re.compile(
    r"^\s*(?:sudo\s+(?:-\S+\s+)*)?(?:DEBIAN_FRONTEND=\S+\s+)?(apt-get|apt|dpkg|add-apt-repository|snap)\s+\S"
)
_AMAZON = re.compile(r"^\s*(?:sudo\s+(?:-\S+\s+)*)?(yum|dnf|rpm|amazon-linux-extras)\s+\S")
_ASKS = re.compile(
    r"command\s+-v|which\s|type\s+-[pP]|hash\s|/etc/os-release|lsb_release|uname|if\s+\[|apt-get.*\|\||yum.*\|\|"
)


@rule(
    "HF540",
    title="Scripts have no syntax error",
    each=Script,
    source="bash(1), -n; Python language reference",
)
def syntax(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """
    A script with an unclosed quote or a missing fi fails every node at the place where it breaks off. Shell scripts are
    read with `bash -n`, which runs nothing; Python as the Python of the nodes reads it: 3.9 on EKS, 3.10 under Slurm.
    """
    if script.text is None:
        return
    if script.mistake is not None:
        yield refused(
            script.path,
            f"{script.name}: {script.mistake}",
            allowed="what bash -n takes",
            fix="correct the script until bash -n reports nothing",
        )
    if script.name.endswith(".py") or script.text.startswith(("#!/usr/bin/env python", "#!/usr/bin/python")):
        orchestrator = "slurm" if deployment.cluster.eks is None else "eks"
        version = tuple(page_fact("node_python")[orchestrator])
        try:
            ast.parse(script.text, feature_version=(version[0], version[1]))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            what = getattr(error, "msg", None) or str(error)
            yield refused(
                script.path,
                f"{script.name}{f' line {line}' if line else ''}: {what}",
                allowed=f"Python {version[0]}.{version[1]}, that of the nodes",
                fix="correct the script for that Python",
            )


@rule(
    "HF541",
    title="Scripts and checks are inside the folder of the environment file",
    each=EnvironmentFile,
    source="Holdfast: scripts are copied into one bundle; SageMaker API reference, OnCreate: a file under SourceS3Uri",
)
def inside_the_folder(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    A script, or a health check, is named by its path from the folder of the environment file. An absolute path, or one
    that leads out of the folder, is another file on each machine that deploys, and may be one that was never meant for
    nodes.
    """
    for setting, names in (("scripts", file.scripts), ("checks", file.checks)):
        for index, name in enumerate(names):
            if not name.startswith("/") and ".." not in name.split("/"):
                continue
            what = "an absolute path" if name.startswith("/") else "a path that leads out of the folder"
            yield refused(
                f"{file.at(setting)}.{index}",
                f"{show(name)}, {what}",
                allowed="a path below the folder of this file",
                fix=f"put the script beside this file and write scripts/{name.rpartition('/')[2]}",
            )


@rule(
    "HF542",
    title="Scripts are written for the nodes' operating system",
    each=Script,
    source="SageMaker developer guide, 'SageMaker HyperPod AMI': Ubuntu under Slurm, Amazon Linux 2023 on EKS",
)
def operating_system(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """
    Nodes of EKS run Amazon Linux 2023, with dnf; those of Slurm run Ubuntu, with apt-get. The other's command is not
    found, and the node fails. A script that asks which it is on can have both.
    """
    if script.text is None or _ASKS.search(script.text):
        return
    on_eks = deployment.cluster.eks is not None
    for number, line in enumerate(script.text.splitlines(), start=1):
        match = (_UBUNTU if on_eks else _AMAZON).match(line)
        if match is not None:
            system, other = ("Amazon Linux 2023", "dnf") if on_eks else ("Ubuntu", "apt-get")
            yield refused(
                script.path,
                f"{match[1]} in line {number} of {script.name}, for nodes that run {system}",
                allowed=f"{other} there",
                fix=f"write {other} install, or ask for the system first",
            )
            return


@rule(
    "HF543",
    title="Scripts are written for a shell of Linux",
    each=Script,
    source="execve(2); SageMaker developer guide, lifecycle scripts run as root on Linux",
)
def kinds_of_scripts(script: Script, _: Deployment) -> Iterator[Broken]:
    """
    Nodes run Linux. Batch files, PowerShell and archives are not run there, and an interpreter that the AMI does not
    have is not found.
    """
    if script.text is None:
        return
    if script.name.endswith((".bat", ".cmd", ".ps1", ".exe", ".zip", ".tar", ".gz", ".ipynb")):
        yield refused(
            script.path,
            show(script.name),
            allowed="scripts that run on Linux, such as .sh and .py",
            fix="write it as a shell script",
        )
        return
    first = script.text.partition("\n")[0].rstrip("\r")
    match = re.match(r"#!\s*(\S+)(?:\s+(\S+))?", first)
    if match is not None and script.name.endswith((".sh", ".bash")):
        program = (match[2] or "") if match[1].endswith("/env") else match[1].rpartition("/")[2]
        if program not in ("bash", "sh", "dash", "-S") or not match[1].startswith("/"):
            yield refused(script.path, show(first), allowed="#!/bin/bash or #!/bin/sh", fix="begin with #!/bin/bash")
