"""A node in a scratch folder: its files, and stand-ins for its programs that note how they are called."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast_lifecycle import Context, Result, Runner, plan
from holdfast_lifecycle.steps import STEPS

ADDRESS, CONTROLLER_ADDRESS = "10.1.0.12", "10.1.0.4"
SLURM_CONF = """\
ClusterName=local
SlurmctldHost=ip-10-1-0-4(10.1.0.4)
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
include accounting.conf
NodeName=ip-10-1-0-12 State=UNKNOWN
PartitionName=dev Nodes=ALL Default=YES
"""
_SYSTEMCTL = """\
#!/bin/sh
case "$1" in
is-active) if [ -e {units}/$2 ]; then echo active; else echo inactive; exit 3; fi ;;
enable) [ -e {units}/$3.broken ] && echo "Job for $3.service failed" >&2 && exit 1; touch {units}/$3 ;;
restart) touch {units}/$2 ;;
stop) rm -f {units}/$2 ;;
disable) rm -f {units}/$3 ;;
esac
"""


class ScratchNode:
    """Its root, its programs, and what was asked of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "root"
        self._bin, self._units, self._log = folder / "bin", folder / "units", folder / "calls"
        for place in ("etc/munge", "fsx", "proc/self", "opt/slurm/etc", "var/lib", "var/spool/slurmctld"):
            (self.root / place).mkdir(parents=True)
        for made in (self._bin, self._units):
            made.mkdir()
        self._log.touch()
        own = self.root.stat()
        self.owner = own.st_uid, own.st_gid
        account = f"x:{own.st_uid}:{own.st_gid}:"
        self.write("etc/passwd", f"root:{account}:/root:/bin/sh\nslurm:{account}:/:/bin/sh\n")
        self.write("etc/munge/munge.key", "key")
        self.mount("/fsx", "ext4", root="/fsx/fs-1")
        self.write("opt/slurm/etc/slurm.conf", SLURM_CONF)
        self.write("opt/slurm/etc/accounting.conf", "")
        self.program("systemctl", _SYSTEMCTL.format(units=self._units))
        monkeypatch.setenv("PATH", f"{self._bin}:/usr/bin:/bin")
        self.context = Context(
            root=self.root,
            bundle=folder,
            cluster_name="local",
            instance_group="controller",
            instance_id="i-0",
            address=CONTROLLER_ADDRESS,
            role="Controller",
            controller_address=CONTROLLER_ADDRESS,
            users=(),
            fsx_mount_path="/fsx",
            events_path="/var/log/events.jsonl",
        )

    def has(self, **changes: Any) -> "ScratchNode":
        """Change what the lifecycle knows."""
        self.context = self.context._replace(**changes)
        return self

    def worker(self) -> "ScratchNode":
        return self.has(instance_group="workers", instance_id="i-1", address=ADDRESS, role="Compute")

    def write(self, name: str, content: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def mount(self, path: str, kind: str, *, root: str = "/", options: str = "rw") -> None:
        with (self.root / "proc/self/mountinfo").open("a") as file:
            file.write(f"50 40 8:1 {root} {path} rw - {kind} source {options}\n")

    def program(self, name: str, text: str = "#!/bin/sh\n") -> None:
        """A stand-in, which notes its arguments and what it reads, and then does what the text says."""
        path = self._bin / name
        first, _, rest = text.partition("\n")
        path.write_text(f'{first}\necho "{name} $*" >>{self._log}\n{rest}')
        path.chmod(0o755)

    def calls(self, program: str = "") -> list[str]:
        return [line for line in self._log.read_text().splitlines() if line.startswith(program)]

    def forget(self) -> None:
        self._log.write_text("")

    def runs(self, *units: str) -> None:
        for unit in units:
            (self._units / unit).touch()

    def breaks(self, unit: str) -> None:
        (self._units / f"{unit}.broken").touch()

    def running(self) -> set[str]:
        return {path.name for path in self._units.iterdir() if path.suffix != ".broken"}

    def lifecycle(self, *names: str) -> dict[str, Result]:
        """Run steps of the plan of this node, all or some."""
        chosen: Sequence[Any] = plan(STEPS, role=self.context.role, hook=self.context.hook)
        if names:
            chosen = [step for step in chosen if step.name in names]
        results = Runner(context=self.context, report=lambda _: None).run(chosen)
        return {result.step: result for result in results}

    def step(self, name: str) -> Result:
        return self.lifecycle(name)[name]
