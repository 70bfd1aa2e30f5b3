"""Content of the layer, as data: path to file, link or directory. Reads the machine, writes nothing."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.localcloud.spank import slurm_version

from . import services, slurm
from .interpreter import Interpreter
from .stand_in import stand_ins

PROGRAMS = "/usr/local/lib/holdfast"
START_ENABLED = f"{PROGRAMS}/bin/start-enabled"
"""Command of PID 1 at a boot on AWS: start every enabled unit."""
PYTHON = "/opt/holdfast/python"
ENVIRONMENT_PYTHON = "/opt/holdfast/env/bin/python"
"""Path of Holdfast's environment on nodes, with boto3."""
_AWS = """\
#!/bin/sh
# The AWS CLI from PyPI, in an environment of its own. sudo empties the environment: what is not set is in a file.
python=/opt/holdfast/env/share/holdfast/aws-cli/bin/python
if [ ! -x $python ]; then
    echo "aws: not installed. On the machine, in its checkout: make setup. Elsewhere, with Holdfast's environment" \\
        "active: python3 -m venv \\$VIRTUAL_ENV/share/holdfast/aws-cli, then its bin/pip install awscli" >&2
    exit 127
fi
if [ -r /etc/holdfast/aws ]; then
    while IFS='=' read -r name value; do
        case $name in AWS_*) eval "[ -n \\"\\${$name+set}\\" ] || export $name=\\"\\$value\\"" ;; esac
    done < /etc/holdfast/aws
fi
exec $python -I -m awscli "$@"
"""
_OF_JOBS = f"""\
# A job without an environment of its own has the packages of the training environment.
if [ -n "$SLURM_JOB_ID" ] && [ -z "$VIRTUAL_ENV$CONDA_PREFIX" ] && [ -x {ENVIRONMENT_PYTHON} ]; then
    exec {ENVIRONMENT_PYTHON} "$@"
fi
"""
UNITS = "/etc/systemd/system"
DEVICES = "/opt/holdfast/devices/gpu"
"""GPUs as Slurm sees them, a number after each: it refuses a GPU without a device file (gres.conf(5), "File")."""
MOST_GPUS = 16
MOUNT_POINTS = ("/opt/sagemaker", "/opt/dlami/nvme")
"""Mount points of an instance's EBS volume and instance store; ``mount`` has to show them."""


@dataclass(frozen=True, kw_only=True)
class LayerEntry:
    content: bytes | None = None
    link: str | None = None
    hidden: bool = False
    """The machine's file at this path is not on nodes. Default: a directory, or what the other fields say."""
    mode: int = 0o644
    owner: str = "root"


def layer(*, orchestrator: str, interpreter: Interpreter, programs_python: str) -> dict[str, LayerEntry]:
    entries = {**_system(orchestrator), **_python(interpreter, orchestrator=orchestrator)}
    entries |= _programs(programs_python)
    entries |= _slurm_entries() if orchestrator == "slurm" else _eks_entries()
    return entries


def _text(text: str, *, mode: int = 0o644) -> LayerEntry:
    return LayerEntry(content=text.encode(), mode=mode)


def _folder(mode: int = 0o755, owner: str = "root") -> LayerEntry:
    return LayerEntry(mode=mode, owner=owner)


def _service(name: str, text: str) -> dict[str, LayerEntry]:
    path = f"/usr/lib/systemd/system/{name}.service"
    link = f"{UNITS}/multi-user.target.wants/{name}.service"
    return {path: _text(text), link: LayerEntry(link=path)}


def _system(orchestrator: str) -> dict[str, LayerEntry]:
    entries = {
        "/usr/lib/os-release": _text(services.OS_RELEASE[orchestrator]),
        "/etc/os-release": LayerEntry(link="../usr/lib/os-release"),
        "/etc/sudoers.d/90-hyperpod": _text("ubuntu ALL=(ALL) NOPASSWD:ALL\n", mode=0o440),
        "/etc/ssh/sshd_config": _text(services.SSHD_SETTINGS),
        "/etc/ssh/ssh_config": _text(services.SSH_SETTINGS),
        "/etc/ssh/ssh_config.d/initsmhp-ssh.conf": _text(services.SSH_BETWEEN_NODES),
        "/etc/ssh/sshd_config.d": _folder(),
        "/usr/lib/sysusers.d/holdfast.conf": _text(services.SYSUSERS),
        "/var/log/provision": _folder(),
        "/var/log/holdfast/units": _folder(),
        "/opt/ml/config": _folder(),
        "/usr/local/bin/aws": _text(_AWS, mode=0o755),
        "/usr/bin/aws": LayerEntry(link="/usr/local/bin/aws"),
        # "present on all HyperPod nodes": AWS's job files ask for it before they say --auto-resume=1.
        "/opt/sagemaker_cluster": _folder(),
    }
    entries |= {path: _folder() for path in MOUNT_POINTS}
    entries |= _service("containerd", services.CONTAINERD) | _service("dlami-nvme", services.DLAMI_NVME)
    if Path("/usr/sbin/sshd").exists():
        entries |= _service("ssh", services.SSH)
        entries[f"{UNITS}/sshd.service"] = LayerEntry(link="/usr/lib/systemd/system/ssh.service")
    return entries


def _slurm_entries() -> dict[str, LayerEntry]:
    conf = slurm.SETTINGS
    entries = {
        "/etc/slurm": LayerEntry(link=conf),
        "/etc/lsb-release": _text(services.LSB_RELEASE),
        "/etc/profile": _text(services.PROFILE),
        "/etc/environment": _text(services.ENVIRONMENT),
        "/etc/logrotate.d/sagemaker-hyperpod-slurm": _text(slurm.LOGROTATE),
        f"{conf}/accounting.conf": _text(slurm.NO_ACCOUNTING),
        f"{conf}/cgroup.conf": _text(slurm.cgroup_conf(slurm_version())),
        f"{conf}/plugstack.conf": _text(""),
        f"{conf}/plugstack.conf.d": _folder(),
        f"{conf}/slurmdbd.conf.template": _text(slurm.SLURMDBD_TEMPLATE),
        "/opt/slurm/include": LayerEntry(link="/usr/include"),
        "/var/log/slurm": _folder(owner="slurm"),
        "/var/spool/slurmd": _folder(),
        "/var/spool/slurmctld": _folder(mode=0o700, owner="slurm"),
    }
    for folder, source, names in (
        ("/opt/slurm/bin", "/usr/bin", slurm.COMMANDS),
        ("/opt/slurm/sbin", "/usr/sbin", slurm.DAEMONS),
        (f"{slurm.OPEN_MPI}/bin", "/usr/bin", slurm.MPI_PROGRAMS),
    ):
        present = [name for name in names if Path(source, name).exists()]
        entries |= {f"{folder}/{name}": LayerEntry(link=f"{source}/{name}") for name in present}
    for libraries in Path("/usr/lib").glob("*-linux-gnu/openmpi/lib"):
        entries[f"{slurm.OPEN_MPI}/lib"] = LayerEntry(link=str(libraries))
    if "/opt/slurm/sbin/slurmd" in entries:
        entries["/opt/slurm/sbin/slurmd"] = _text(slurm.SLURMD, mode=0o755)
    # Options of the machine's own daemons are not for these.
    entries |= {f"/etc/default/{name}": _text("") for name in ("munge", "slurmctld", "slurmd")}
    entries["/etc/default/slurmdbd"] = _text(f"MYSQL_UNIX_PORT={services.MARIADB_SOCKET}\n")
    units = slurm.units()
    entries |= {f"{UNITS}/{name}.service": _text(text) for name, text in units.items()}
    if Path("/usr/bin/python").exists():
        # Ubuntu 22.04 has no such program: "python" of a job is that of its environment, or the training environment's.
        entries["/usr/bin/python"] = LayerEntry(hidden=True)
    entries |= {f"{DEVICES}{number}": LayerEntry(link="/dev/null") for number in range(MOST_GPUS)}
    entries |= _service("docker", services.DOCKER)
    if Path("/usr/sbin/munged").exists():
        entries |= _service("munge", services.MUNGE)
    if Path("/usr/sbin/mariadbd").exists():
        entries |= {
            "/usr/lib/systemd/system/mariadb.service": _text(services.MARIADB),
            "/etc/mysql/my.cnf": _text(services.MARIADB_FILES),
            "/etc/mysql/conf.d": _folder(),
            "/etc/mysql/mariadb.conf.d/90-holdfast.cnf": _text(services.MARIADB_SETTINGS),
            "/usr/bin/mysql_secure_installation": LayerEntry(link="mariadb-secure-installation"),
            "/var/lib/mysql": _folder(mode=0o755, owner="mysql"),
        }
    return entries


def _eks_entries() -> dict[str, LayerEntry]:
    return {
        **_service("kubelet", services.KUBELET),
        "/var/lib/containerd": _folder(mode=0o711),
        "/var/lib/kubelet": _folder(),
        "/etc/containerd/config.toml": _text("version = 2\n"),
    }


def _python(interpreter: Interpreter, *, orchestrator: str) -> dict[str, LayerEntry]:
    version = f"{interpreter.version[0]}.{interpreter.version[1]}"
    site = f"{PYTHON}/lib/python{version}/site-packages"
    own = f'exec {PYTHON}/bin/python3 "$@"\n'
    wrapper = _text(f"#!/bin/sh\n{_OF_JOBS if orchestrator == 'slurm' else ''}{own}", mode=0o755)
    pip = f'import os, sys\nos.execv("{PROGRAMS}/bin/pip", ["pip", *sys.argv[1:]])\n'
    home = interpreter.executable.parent
    entries = {
        f"{PYTHON}/pyvenv.cfg": _text(f"home = {home}\ninclude-system-site-packages = false\nversion = {version}\n"),
        f"{PYTHON}/bin/python3": LayerEntry(link=str(interpreter.executable)),
        f"{PYTHON}/bin/python{version}": LayerEntry(link="python3"),
        f"{site}/pip/__init__.py": _text(""),
        f"{site}/pip/__main__.py": _text(pip),
        "/usr/local/bin/python3": wrapper,
        f"/usr/local/bin/python{version}": wrapper,
        "/usr/local/bin/pip3": _text(f'#!/bin/sh\nexec {PYTHON}/bin/python3 -m pip "$@"\n', mode=0o755),
        "/etc/holdfast-image": _text(f"{orchestrator}: python3 is {interpreter.note}\n"),
    }
    spec = importlib.util.find_spec("yaml")
    assert spec is not None, "Holdfast itself needs PyYAML"
    for folder in spec.submodule_search_locations or ():
        entries |= {
            f"{site}/yaml/{path.name}": LayerEntry(content=path.read_bytes()) for path in Path(folder).glob("*.py")
        }
    return entries


def _programs(python: str) -> dict[str, LayerEntry]:
    entries = {}
    source = Path(__file__).parent / "node"
    for package in ("systemctl", "standins"):
        for path in sorted((source / package).rglob("*.py")):
            entries[f"{PROGRAMS}/{path.relative_to(source)}"] = LayerEntry(content=path.read_bytes())
    for name in ("systemctl", "journalctl"):
        entries[f"/usr/bin/{name}"] = _text(_start(f"{python} -IS", "systemctl", name), mode=0o755)
    entries[START_ENABLED] = _text(_start(f"{python} -IS", "systemctl", "start_enabled"), mode=0o755)
    for target, text in _stand_in_programs(python):
        entries[target] = _text(text, mode=0o755)
    return entries


def _stand_in_programs(python: str) -> Iterator[tuple[str, str]]:
    for one in stand_ins():
        module, _, function = one.call.partition(":")
        if one.path in ("/usr/local/bin/curl", "/usr/local/bin/wget", "/usr/local/bin/git"):
            # A shell decides first: starting Python for each curl of a script would cost more than the curl.
            name = one.path.rpartition("/")[2]
            patterns = {"curl": "*/NVIDIA/enroot/*", "wget": "*go.dev/dl/*", "git": "clone*"}
            stand_in = f"{PROGRAMS}/bin/{name}"
            decide = f'case "$*" in {patterns[name]}) exec {stand_in} "$@" ;; esac'
            yield one.path, f'#!/bin/sh\n{decide}\nexec /usr/bin/{name} "$@"\n'
            yield stand_in, _start(f"{python} -IS", f"standins.{module}", function)
        else:
            yield one.path, _start(f"{python} -IS", f"standins.{module}", function)


def _start(python: str, module: str, function: str) -> str:
    return (
        f'#!{python}\nimport sys\n\nsys.path.insert(0, "{PROGRAMS}")\nfrom {module} import {function}\n\n'
        f"sys.exit({function}(sys.argv[1:]))\n"
    )
