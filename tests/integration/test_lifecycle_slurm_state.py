"""A second controller takes over Slurm's state and accounting, with real slurmctld, slurmdbd and MariaDB."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ports import free_port
from waiting import eventually

from holdfast_common import parse_events
from holdfast_lifecycle import Context, Result, Runner, plan
from holdfast_lifecycle.controller import adopt
from holdfast_lifecycle.node import ACCOUNTING, SharedState
from holdfast_lifecycle.steps import STEPS
from holdfast_lifecycle.steps.slurm import state

NEEDED = ("mariadbd", "mariadb", "mariadb-install-db", "slurmdbd", "slurmctld", "sacctmgr")
SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin"
MISSING = [name for name in NEEDED if shutil.which(name, path=SEARCH) is None]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: slurmctld and MariaDB run as it"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]

SLURM_CONF = """\
ClusterName=proof
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={slurmctld}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=/var/spool/slurmctld
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmctldLogFile={root}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
AccountingStorageHost=127.0.0.1
AccountingStoragePort={slurmdbd}
include accounting.conf
NodeName=worker NodeAddr=127.0.0.1 State=FUTURE
PartitionName=dev Nodes=worker Default=YES
"""
SLURMDBD_CONF = """\
AuthType=auth/none
DbdHost={host}
DbdPort={slurmdbd}
SlurmUser=root
LogFile={root}/slurmdbd.log
PidFile={root}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""
SYSTEMCTL = """\
#!/bin/bash
# A stand-in that starts the real daemons of one node.
root={root}
unit=${{@: -1}}
pid=$root/run/$unit.test-pid
active() {{ [ -s "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null && [ "$(ps -o stat= -p "$(cat "$pid")")" != Z ]; }}
case "$1" in
is-active) active && echo active || {{ echo inactive; exit 3; }} ;;
stop) kill "$(cat "$pid")"; while active; do sleep 0.02; done ;;
enable)
    active && exit 0
    case "$unit" in
    mariadb) set -- mariadbd --no-defaults --user=root --datadir="$root/var/lib/mysql" \\
        --socket="$root/run/mysqld.sock" --pid-file="$root/run/mysqld.pid" \\
        --skip-networking --innodb-fast-shutdown=2 --innodb-log-file-size=8M --innodb-buffer-pool-size=16M ;;
    *) set -- "$unit" -D ;;
    esac
    sed "s#/var/spool#$root/var/spool#" "$root/opt/slurm/etc/slurm.conf" >"$root/conf/slurm.conf"
    cp "$root/opt/slurm/etc/accounting.conf" "$root/conf/"
    cp -p "$root/opt/slurm/etc/slurmdbd.conf" "$root/conf/"
    SLURM_CONF=$root/conf/slurm.conf MYSQL_UNIX_PORT=$root/run/mysqld.sock \\
        PATH={search} setsid "$@" >>"$root/$unit.out" 2>&1 </dev/null &
    echo $! >"$pid" ;;
esac
"""
CLIENT = """\
#!/bin/bash
export SLURM_CONF={root}/conf/slurm.conf MYSQL_UNIX_PORT={root}/run/mysqld.sock
exec {program} {options} "$@"
"""


@dataclass(frozen=True)
class Controller:
    """A scratch root with what HyperPod's configuration of the AMI puts there, and daemons of its own."""

    root: Path
    context: Context

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", f"{self.root}/bin:{SEARCH}")

    def run(self, program: str, *arguments: str) -> str:
        command = [str(self.root / "bin" / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    def start(self, *units: str) -> None:
        for unit in units:
            self.run("systemctl", "enable", "--now", unit)
            if unit == "mariadb":
                eventually(lambda: self.answers("mariadb", "-e", "SELECT 1"))
            if unit == "slurmdbd":
                eventually(lambda: self.answers("sacctmgr", "-n", "list", "cluster"))
            if unit == "slurmctld":
                eventually(lambda: self.answers("scontrol", "ping"))

    def answers(self, program: str, *arguments: str) -> bool:
        command = [str(self.root / "bin" / program), *arguments]
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0

    def lifecycle(self) -> dict[str, Result]:
        """The steps of this part, as on_init_complete.sh runs them."""
        chosen = [
            step
            for step in plan(STEPS, role="Controller", hook=self.context.hook)
            if step.name in ("slurm_state", "accounting", "slurm_daemon")
        ]
        return {step.step: step for step in Runner(context=self.context, report=lambda _: None).run(chosen)}

    def run_step(self, name: str) -> Result:
        chosen = plan(STEPS, role="Controller", hook=self.context.hook, only=name)
        return Runner(context=self.context, report=lambda _: None).run(chosen)[0]

    def pid(self, unit: str) -> int:
        return int((self.root / f"run/{unit}.test-pid").read_text())

    def pids(self, *units: str) -> list[int]:
        """Of some daemons, or all."""
        names = [path.name.partition(".")[0] for path in (self.root / "run").glob("*.test-pid")]
        return [self.pid(name) for name in units or names]

    def kill(self, *units: str) -> None:
        """They are gone with their instance, all unless some are named."""
        for pid in self.pids(*units):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            eventually(lambda pid=pid: is_gone(pid))  # type: ignore[misc]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder in memory where the machine has one: databases wait for disks, and what they wait for is no question."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def fresh_data(memory: Path) -> Path:
    """A data directory as the MariaDB package makes it."""
    data = memory / "package"
    options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"]
    command = ["mariadb-install-db", *options, f"--datadir={data}"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return data


@pytest.fixture
def controllers(memory: Path, fresh_data: Path) -> Iterator[tuple[Controller, Controller]]:
    folder = Path(tempfile.mkdtemp(dir=memory))
    (folder / "shared").mkdir()
    slurmdbd = free_port()
    made = tuple(a_controller(folder, name, slurmdbd, fresh_data) for name in ("i-first", "i-second"))
    try:
        yield made[0], made[1]
    finally:
        for controller in made:
            controller.kill()


def a_controller(folder: Path, name: str, slurmdbd: int, data: Path) -> Controller:
    root = folder / name
    for place in ("bin", "run", "conf", "etc", "proc/self", "opt/slurm/etc", "var/lib", "var/spool/slurmctld"):
        (root / place).mkdir(parents=True)
    (root / "fsx").symlink_to(folder / "shared")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "proc/self/mountinfo").write_text("50 40 8:1 /fsx/fs-1 /fsx rw - ext4 /dev/vda rw\n")
    shutil.copytree(data, root / "var/lib/mysql")
    values = {"root": root, "host": os.uname().nodename.split(".")[0], "password": f"secret-{name}"}
    values |= {"slurmctld": free_port(), "slurmdbd": slurmdbd}
    etc = root / "opt/slurm/etc"
    (etc / "slurm.conf").write_text(SLURM_CONF.format(**values))
    (etc / "accounting.conf").write_text("AccountingStorageType=accounting_storage/slurmdbd\n")
    (etc / "slurmdbd.conf").write_text(SLURMDBD_CONF.format(**values))
    (etc / "slurmdbd.conf").chmod(0o600)
    programs = {"systemctl": SYSTEMCTL.format(root=root, search=SEARCH)}
    for client in ("sacctmgr", "sacct", "scontrol", "squeue", "sbatch"):
        programs[client] = CLIENT.format(root=root, program=f"/usr/bin/{client}", options="")
    programs["mariadb"] = CLIENT.format(root=root, program="/usr/bin/mariadb", options="--no-defaults")
    for program, text in programs.items():
        (root / "bin" / program).write_text(text)
        (root / "bin" / program).chmod(0o755)
    context = Context(
        root=root,
        bundle=root,
        cluster_name="proof",
        instance_group="controller",
        instance_id=name,
        address="127.0.0.1",
        role="Controller",
        controller_address="127.0.0.1",
        users=(),
        fsx_mount_path="/fsx",
        events_path="/events.jsonl",
        hook="OnInitComplete",
    )
    return Controller(root=root, context=context)


def begin(first: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first controller: HyperPod started everything, a job came, then the lifecycle moved it all."""
    first.use(monkeypatch)
    first.start("mariadb")
    first.run("mariadb", "-e", "CREATE DATABASE slurm_acct_db; GRANT ALL ON slurm_acct_db.* TO"
              " slurm@localhost IDENTIFIED BY 'secret-i-first'")  # fmt: skip
    first.start("slurmdbd", "slurmctld")
    assert first.run("sbatch", "--hold", "--job-name=before", "--wrap=true").endswith(" 1")
    eventually(lambda: first.run("sacct", "--jobs=1", "--noheader", "--format=JobName") == "before")
    results = first.lifecycle()
    assert {name: result.outcome for name, result in results.items()} == {
        "slurm_state": "done",
        "accounting": "satisfied",
        "slurm_daemon": "satisfied",
    }, results
    events = first.root / "events.jsonl"
    eventually(events.exists)
    told = parse_events(events.read_text().splitlines()).events[-1]
    assert told.detail["outcome"] == "moved", told
    assert first.run("squeue", "--noheader", "--format=%i %j") == "1 before"


@pytest.mark.e2e
def test_jobs_and_their_numbers_go_on_under_another_controller_and_not_under_the_first(
    controllers: tuple[Controller, Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = controllers
    begin(first, monkeypatch)
    first.kill("slurmdbd", "mariadb")
    frozen = first.pid("slurmctld")
    os.kill(frozen, signal.SIGSTOP)
    second.use(monkeypatch)
    second.start("mariadb")
    monkeypatch.setattr(state, "_HYPERPOD_S", 0.1)
    results = second.lifecycle()

    assert [result.outcome for result in results.values()] == ["done", "done", "done"], results
    shared = second.root / "fsx/.holdfast/slurm/proof"
    assert sorted(path.name for path in shared.iterdir()) == ["accounting-2", "lock", "owner.json", "series", "state-2"]
    eventually(lambda: second.answers("scontrol", "ping"))
    assert second.run("squeue", "--noheader", "--format=%i %j") == "1 before"
    assert second.run("sbatch", "--hold", "--job-name=after", "--wrap=true").endswith(" 2")
    assert second.run("sacct", "--jobs=1", "--noheader", "--format=JobName") == "before"
    assert [result.outcome for result in second.lifecycle().values()] == ["satisfied"] * 3

    os.kill(frozen, signal.SIGCONT)
    assert first.answers("scontrol", "ping"), "the first controller goes on as if nothing had happened"
    assert not first.answers("sbatch", "--hold", "--job-name=astray", "--wrap=true"), "but keeps nothing"
    assert sorted(path.name for path in shared.iterdir()) == ["accounting-2", "lock", "owner.json", "series", "state-2"]
    assert second.run("squeue", "--noheader", "--format=%j").split() == ["after", "before"]


def test_a_controller_that_is_frozen_keeps_its_database_until_it_is_gone(
    controllers: tuple[Controller, Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = controllers
    shared = SharedState.of(first.context)
    shared.prepare()
    number = shared.take("i-first")
    adopt(first.root / "var/lib/mysql", shared.place(ACCOUNTING, number), owner=(0, 0))
    first.start("mariadb")
    for pid in first.pids():
        os.kill(pid, signal.SIGSTOP)
    second.use(monkeypatch)
    monkeypatch.setattr(state, "_HYPERPOD_S", 0.1)
    monkeypatch.setattr(state, "_RELEASE_S", 0.5)

    refused = second.lifecycle()["slurm_state"]

    assert refused.outcome == "failed"
    assert "a MariaDB server had it open for 0.5 s; the controller was i-first" in refused.seen
    assert "--only slurm_state" in refused.action
    assert sorted(path.name for path in shared.folder.iterdir()) == ["accounting-1", "lock", "owner.json"]
    assert not (second.root / "var/lib/mysql").is_symlink()

    first.kill()
    taken = second.run_step("slurm_state")
    assert taken.outcome == "done", taken
    assert (second.root / "var/lib/mysql").readlink().name == "accounting-2"
    assert not (first.root / "var/lib/mysql").exists(), "the path of the controller that is gone leads nowhere"
