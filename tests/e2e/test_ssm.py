"""
Verbs on a cluster that is reached as on AWS: by sessions of Systems Manager alone, beside the same verbs by namespaces.

The client is another home, whose environment is one of AWS with the embedded AWS as its endpoint; it has no capability,
so it can enter no namespace.
"""

import contextlib
import hashlib
import json
import os
import pty
import select
import signal
import socket
import statistics
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from submitted_jobs import SubmittedJobs

from holdfast.cli.deployed import Session
from holdfast.localcloud import LocalCloud

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slurm, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
HOLDFAST = str(Path(sys.executable).parent / "holdfast")
WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]
SCP_BYTES = 100_000_000
SLOWER_BY_S = 0.05
JOB = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1
echo "from $1 in $(basename "$PWD" | cut -d - -f 1)"
cat words.txt link.txt
srun --label sh -c 'echo rank $SLURM_PROCID; test -n "$HOLDFAST_TOKEN" && echo token'
echo to the error output >&2
"""


@dataclass(frozen=True, kw_only=True)
class OnAws:
    """The command line of somebody who has AWS credentials and nothing else of this machine."""

    variables: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        return [*WITHOUT_CAPABILITIES, HOLDFAST, *arguments]

    def popen(self, *arguments: str, **streams: Any) -> "subprocess.Popen[str]":
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen(self.command(*arguments), cwd=ROOT, env=self.variables, text=True, **given)

    def run(self, *arguments: str, check: bool = True, text: str | None = None) -> "subprocess.CompletedProcess[str]":
        streams = {} if text is None else {"stdin": subprocess.PIPE}
        child = self.popen(*arguments, **streams)
        out, err = child.communicate(text, timeout=300)
        assert not check or child.returncode == 0, f"{arguments}: {child.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, child.returncode, out, err)


@dataclass(frozen=True, kw_only=True)
class Ways:
    local: Any
    aws: OnAws
    folder: Path
    nodes: list[dict[str, Any]]
    """Controllers first."""

    def both(self, *arguments: str) -> "list[subprocess.CompletedProcess[str]]":
        return [way.run(*arguments, check=False) for way in (self.local, self.aws)]

    @property
    def worker(self) -> str:
        return str(self.nodes[-1]["hostname"])


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Ways]:
    work = tmp_path_factory.mktemp("ssm")
    product = new_product(work)
    try:
        product.run("up", str(product.environment(workers=2, spares=0)))
        folder = work / "jobs"
        folder.mkdir()
        (folder / "job.sbatch").write_text(JOB)
        (folder / "words.txt").write_text("words of the folder\n")
        (folder / "link.txt").symlink_to("words.txt")
        yield Ways(local=product, aws=client_of(product, work), folder=folder, nodes=product.status()["nodes"])
    finally:
        product.run("down")
    assert not product.home.exists()


def client_of(product: Any, work: Path) -> OnAws:
    recorded = json.loads((product.home / "session.json").read_text())
    home = work / "client"
    Session(**{**recorded, "cloud": "aws", "port": 0}).save(home=home)
    local = LocalCloud(home=product.home, port=product.port)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HOLDFAST_"))}
    return OnAws(
        variables={
            **kept,
            **local.client_environment(region="us-west-2"),
            # An address: S3 then has the bucket in the path.
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{product.port}",
            "HOLDFAST_HOME": str(home),
            "HOLDFAST_PORT": str(free_port()),
        }
    )


def test_the_client_enters_no_namespace(ways: Ways) -> None:
    entered = subprocess.run(
        [*WITHOUT_CAPABILITIES, "unshare", "--net", "true"], capture_output=True, text=True, check=False
    )
    assert entered.returncode != 0
    assert "perm" in entered.stderr.lower()


@pytest.mark.parametrize(
    "line",
    [
        "echo out; echo err >&2; exit 7",
        "printf 'a\\377b\\0c' | od -c",
        "id -un; pwd; echo $HOME $0",
        "hostname; scontrol show config | grep ClusterName",
        "no-such-program",
        "cat",
    ],
)
def test_a_command_on_a_node_is_the_same_both_ways(ways: Ways, line: str) -> None:
    local, aws = ways.both("ssh", ways.worker, "--", line)
    assert (aws.stdout, aws.stderr, aws.returncode) == (local.stdout, local.stderr, local.returncode)


def test_bytes_stay_what_they_are(ways: Ways, tmp_path: Path) -> None:
    for line in ("head -c 300000 /dev/zero | tr '\\0' '\\377'", "printf 'a\\377\\0\\r\\nb'"):
        child = ways.aws.popen("ssh", ways.worker, "--", line, stdout=(file := (tmp_path / "out").open("wb")))
        with file, child:
            child.wait(timeout=60)
        here = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout
        assert (tmp_path / "out").read_bytes() == here


def test_a_user_and_every_name_of_a_node_are_the_same_both_ways(ways: Ways) -> None:
    node = ways.nodes[-1]
    for name in (node["instance_id"], node["hostname"], node["address"]):
        local, aws = ways.both("ssh", name, "--user", "ubuntu", "--", "id -un; hostname; echo $HOME")
        assert aws.stdout == local.stdout != ""
    local, aws = ways.both("ssh", "i-0123456789abcdef0", "--", "id")
    assert aws.returncode == local.returncode == 2


def test_a_job_is_submitted_followed_and_listed_as_by_the_local_way(ways: Ways) -> None:
    outputs = {}
    for name, way in (("local", ways.local), ("aws", ways.aws)):
        submitted = json.loads(way.run("submit", str(ways.folder / "job.sbatch"), "--json", "--", "here").stdout)
        job = submitted["job_id"]
        followed = way.run("logs", "--job", job, "--follow").stdout
        SubmittedJobs(way).ended(job)
        outputs[name] = sorted(way.run("logs", "--job", job).stdout.splitlines())
        assert sorted(followed.splitlines()) == outputs[name]
        local, aws = ways.both("jobs", job, "--json")
        assert json.loads(aws.stdout) == json.loads(local.stdout)
        [row] = json.loads(aws.stdout)
        assert row["state"] == "COMPLETED"
    assert outputs["aws"] == outputs["local"]
    assert outputs["aws"].count("words of the folder") == 2
    assert outputs["aws"].count("0: token") == 1


def test_a_job_is_cancelled_and_explained_as_by_the_local_way(ways: Ways) -> None:
    (ways.folder / "sleep.sbatch").write_text("#!/bin/bash\n#SBATCH --nodes=2\nsleep 600\n")
    job = json.loads(ways.aws.run("submit", str(ways.folder / "sleep.sbatch"), "--json").stdout)["job_id"]
    (ways.folder / "held.sbatch").write_text("#!/bin/bash\n#SBATCH --hold\ntrue\n")
    held = json.loads(ways.aws.run("submit", str(ways.folder / "held.sbatch"), "--json").stdout)["job_id"]
    local, aws = ways.both("why", held)
    assert "it is held" in aws.stdout
    assert (aws.stdout, aws.returncode) == (local.stdout, local.returncode)
    local, aws = ways.both("scale", held, "2")
    assert (aws.stderr, aws.returncode) == (local.stderr, local.returncode)
    assert f"job {job} is CANCELLED\n" in ways.aws.run("cancel", job, held).stdout
    local, aws = ways.both("jobs", job, "--json")
    assert json.loads(aws.stdout)[0]["state"] == json.loads(local.stdout)[0]["state"] == "CANCELLED"
    local, aws = ways.both("cancel", "999999")
    assert (aws.stderr, aws.returncode) == (local.stderr, local.returncode)


def test_status_shows_slurm_as_by_the_local_way(ways: Ways) -> None:
    local, aws = (json.loads(one.stdout) for one in ways.both("status", "--json"))
    assert [one["slurm"] for one in aws["nodes"]] == [one["slurm"] for one in local["nodes"]]
    assert len({one["slurm"] for one in aws["nodes"]} - {""}) >= 1


@pytest.mark.parametrize("words", [["kill-node", "NODE"], ["inject", "NODE", "xid-79"]])
def test_what_only_the_local_hyperpod_has_says_so(ways: Ways, words: list[str]) -> None:
    refused = ways.aws.run(*[ways.worker if word == "NODE" else word for word in words], check=False)
    assert refused.returncode == 2
    assert "works on the local HyperPod alone" in refused.stderr


@contextlib.contextmanager
def on_terminal(argv: list[str], variables: dict[str, str]) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    master, slave = pty.openpty()
    tty.setraw(slave)
    termios.tcsetwinsize(slave, (31, 97))
    process = subprocess.Popen(
        argv, cwd=ROOT, env={**variables, "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def read_until(descriptor: int, wanted: bytes, *, then: bytes = b"") -> bytes:
    found, until_s = b"", time.monotonic() + 30
    while wanted not in found or then not in found.partition(wanted)[2]:
        ready, _, _ = select.select([descriptor], [], [], max(until_s - time.monotonic(), 0))
        assert ready, found
        found += os.read(descriptor, 65536)
    return found


def echo_s(descriptor: int) -> float:
    """Median time from a key to its echo."""
    times = []
    for key in b"abcdefghijklmnopqrst":
        began_s = time.monotonic()
        os.write(descriptor, bytes([key]))
        read_until(descriptor, bytes([key]))
        times.append(time.monotonic() - began_s)
    return statistics.median(times)


def test_a_shell_has_size_echo_and_exit_code_as_by_the_local_way(ways: Ways) -> None:
    medians = {}
    local_variables = {**os.environ, **ways.local.variables}
    for name, argv, variables in (
        ("local", [HOLDFAST, "ssh", ways.worker], local_variables),
        ("aws", ways.aws.command("ssh", ways.worker), ways.aws.variables),
    ):
        with on_terminal(argv, variables) as (process, master):
            read_until(master, b"# ")
            os.write(master, b"stty size; echo rea''dy\r")
            read_until(master, b"ready", then=b"# ")
            medians[name] = echo_s(master)
            os.write(master, b"\x15")
            if name == "aws":
                os.write(master, b"stty size\r")
                read_until(master, b"31 97")
                termios.tcsetwinsize(master, (41, 107))
                process.send_signal(signal.SIGWINCH)  # as the kernel does where the terminal is the process's own
                os.write(master, b"sleep 0.5; stty size\r")
                read_until(master, b"41 107")
            os.write(master, b"exit 5\r")
            assert process.wait(timeout=30) == 5
    print(f"median echo: {medians}")
    assert medians["aws"] - medians["local"] < SLOWER_BY_S, medians


def test_a_command_on_a_terminal_shows_its_output_and_no_mark(ways: Ways) -> None:
    argv = ways.aws.command("ssh", ways.worker, "--", "tty; exit 3")
    with on_terminal(argv, ways.aws.variables) as (process, master):
        output = read_until(master, b"/dev/pts/")
        assert process.wait(timeout=30) == 3
    assert b"\x1e" not in output


@pytest.fixture(scope="module")
def ssh_options(ways: Ways, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of OpenSSH that lead to nodes through the client."""
    key = tmp_path_factory.mktemp("key") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    add = f"umask 077; mkdir -p ~/.ssh && echo '{public}' >> ~/.ssh/authorized_keys"
    ways.aws.run("ssh", ways.worker, "--user", "ubuntu", "--", add)
    proxy = " ".join(ways.aws.command("ssh", "%h", "--stdio", "%p"))
    return [
        "-F", "none", "-i", str(key), "-o", f"ProxyCommand={proxy}", "-o", "StrictHostKeyChecking=no",
        "-o", f"UserKnownHostsFile={key.parent / 'known'}", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
    ]  # fmt: skip


def test_openssh_runs_through_the_proxy_command(ways: Ways, ssh_options: list[str]) -> None:
    done = subprocess.run(
        ["ssh", *ssh_options, f"ubuntu@{ways.worker}", "hostname; cat; exit 4"],
        input="input", env=ways.aws.variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == (f"{ways.worker}\ninput", 4), done.stderr


def test_scp_of_100_mb_is_byte_equal(ways: Ways, ssh_options: list[str], tmp_path: Path) -> None:
    data = os.urandom(SCP_BYTES)
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(data)
    there = f"ubuntu@{ways.worker}:/tmp/sent"
    for words in ((str(sent), there), (there, str(back))):
        subprocess.run(["scp", *ssh_options, *words], env=ways.aws.variables, timeout=300, check=True)
    assert hashlib.sha256(back.read_bytes()).digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("way", ["local", "aws"])
def test_a_forwarded_port_leads_to_the_node(ways: Ways, way: str) -> None:
    port = free_port()
    chosen = getattr(ways, way)
    child = chosen.popen("ssh", ways.worker, "--forward", f"{port}:22")
    try:
        assert child.stderr is not None
        assert f"localhost:{port} leads to port 22" in child.stderr.readline()
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                assert line.recv(100).startswith(b"SSH-2.0-")
    finally:
        child.terminate()
        child.communicate(timeout=30)
