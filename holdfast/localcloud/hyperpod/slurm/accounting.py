"""
Slurm's accounting of AMI-based configuration: MariaDB and slurmdbd on the controller.

Data stays on the instance, as on AWS. An empty database is prepared once in the background, which takes longer than the
boot of six nodes.
"""

import os
import secrets
import shutil
import string
import subprocess
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path

from holdfast.localcloud.hyperpod.slurm.configuration import ACCOUNTING_CONF, FOLDER, accounting_conf
from holdfast.localcloud.hyperpod.slurm.daemons import SlurmError, last_words
from holdfast.localcloud.nodes import Node

DATABASE = "slurm_acct_db"
USER = "slurm"
HERE = "localhost"
DATA = "/var/lib/mysql"
TEMPLATE_TIMEOUT_S = 60.0
START_TIMEOUT_S = 40.0
_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "slurmdbd")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_FAIL = """set -eu
fail() { # UNIT; its name comes last, since only the end of the output is kept
    systemctl status --no-pager "$1" >&2 || true
    [ "$1" != slurmdbd ] || tail -n 5 /var/log/slurm/slurmdbd.log >&2 || true
    echo "$1 did not start" >&2
    exit 1
}
"""

_START_DATABASE = """systemctl enable --now mariadb >/dev/null 2>&1 || fail mariadb
tries=0
until mariadb --batch -e 'select 1' >/dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || fail mariadb; sleep 0.05
done
mariadb --batch
"""

# slurmctld refuses its first start where slurmdbd does not answer, so this returns when it does.
_START_SLURMDBD = """systemctl enable --now slurmdbd >/dev/null 2>&1 || fail slurmdbd
tries=0
until sacctmgr --noheader --parsable2 show cluster format=cluster >/dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 200 ] || fail slurmdbd; sleep 0.05
done
"""

_START = _FAIL + _START_DATABASE + _START_SLURMDBD

# Scripts have taken the database out of the cluster: nothing but slurmdbd runs here.
_START_OUTSIDE = _FAIL + _START_SLURMDBD


def missing_programs() -> list[str]:
    return [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]


class Accounting:
    """Accounting of all clusters of one home. Thread-safe."""

    def __init__(self, *, directory: Path) -> None:
        self._directory = directory
        self._template: Future[Path] = Future()
        """Of the last attempt to make it."""
        self._started: set[tuple[str, int]] = set()
        """(instance id, pid) of controllers whose accounting runs."""

    def prepare(self) -> None:
        """Create the empty database in a thread; later starts wait for it."""
        self._template = template = Future[Path]()
        threading.Thread(target=self._prepare, args=(template,), name="accounting", daemon=True).start()

    def _prepare(self, template: Future[Path]) -> None:
        try:
            template.set_result(_template(self._directory))
        except (OSError, subprocess.SubprocessError) as error:
            template.set_exception(SlurmError(f"cannot create the database for Slurm's accounting: {error}"))

    def _prepared(self) -> Path:
        template = self._template
        try:
            return template.result(TEMPLATE_TIMEOUT_S)
        except SlurmError:
            if template is self._template:
                self.prepare()  # for the next attempt to start
            raise

    def start(self, node: Node) -> None:
        """Start accounting on a controller, once per boot. Raise SlurmError if a daemon does not start."""
        if (node.spec.instance_id, node.pid) in self._started:
            return
        # A controller keeps what it has: the running slurmdbd knows no other password.
        settings = _settings(node)
        script, statements = _START_OUTSIDE, ""
        if settings.get("storagehost", HERE) == HERE:
            password = settings.get("storagepass") or secrets.token_urlsafe(16)
            script, statements = _START, _let_in(settings.get("storageuser", USER), password=password)
            if not settings:
                if not node.inside(f"{DATA}/mysql").exists():
                    template = self._prepared()
                    with node.inside(DATA).directory() as data:
                        _copy_database(template, Path(f"/proc/self/fd/{data}"))
                _write_settings(node, password=password)
        try:
            done = node.run(["/bin/sh", "-c", script], input=statements, timeout_s=START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise SlurmError(f"Slurm's accounting did not start within {START_TIMEOUT_S:g} s") from None
        if done.returncode:
            raise SlurmError(f"Slurm's accounting did not start: {last_words(done)}")
        self._started.add((node.spec.instance_id, node.pid))


def _settings(node: Node) -> dict[str, str]:
    try:
        text = node.read_file(f"{FOLDER}/slurmdbd.conf").decode()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if value}


def _let_in(user: str, *, password: str) -> str:
    return (
        f"create database if not exists {DATABASE};"
        f"grant all on {DATABASE}.* to '{user}'@'localhost' identified by '{password}';"
    )


def _write_settings(node: Node, *, password: str) -> None:
    template = string.Template(node.read_file(f"{FOLDER}/slurmdbd.conf.template").decode())
    settings = template.safe_substitute(SLURM_DB_USER=USER, SLURM_DB_PASSWORD=password)
    node.write_file(f"{FOLDER}/slurmdbd.conf", settings.encode(), mode=0o600, owner=USER)
    node.write_file(ACCOUNTING_CONF, accounting_conf(host=node.spec.address).encode())


def _template(directory: Path) -> Path:
    if missing := missing_programs():
        raise OSError(f"{', '.join(missing)} not installed; install mariadb-server-core, mariadb-client and slurmdbd")
    place = directory / "template"
    if place.is_dir():
        return place
    directory.mkdir(parents=True, exist_ok=True)
    # A name of its own: a program that an earlier process left behind may still be writing to another.
    fresh = Path(tempfile.mkdtemp(prefix="template.", dir=directory))
    # A server that starts removes all temporary tables of its folder for them, whoever's they are.
    with tempfile.TemporaryDirectory(prefix="tables.", dir=directory) as tables:
        command = [
            "mariadb-install-db", "--no-defaults", f"--datadir={fresh}", f"--tmpdir={tables}", "--user=root",
            "--skip-test-db", "--auth-root-authentication-method=socket", "--innodb-log-file-size=4M",
            "--innodb-buffer-pool-size=8M",
        ]  # fmt: skip
        done = subprocess.run(
            command, env={"PATH": _PATH}, capture_output=True, text=True, check=False, timeout=TEMPLATE_TIMEOUT_S
        )
    if done.returncode:
        raise OSError((done.stderr or done.stdout).strip()[-300:])
    try:
        fresh.rename(place)
    except OSError:
        if not place.is_dir():  # else another process was faster
            raise
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def _copy_database(source: Path, target: Path) -> None:
    owner = target.stat()
    shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for path in target.rglob("*"):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
