"""Real nodes on this machine: isolation, life and death, and that nothing of them stays."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.localcloud.nodes import FileSpec, Fleet, Mount, Node, NodeError, NodeSpec, python_mounts
from holdfast.localcloud.nodes.kernel import proc

pytestmark = pytest.mark.root

GATEWAY = "10.1.255.254"
REPOSITORY = Path(__file__).parents[2]
NETWORK = "10.1.0.0/16"


def spec(number: int, **more) -> NodeSpec:
    return NodeSpec(instance_id=f"i-{number:017x}", hostname=f"ip-10-1-0-{number}", address=f"10.1.0.{number}", **more)


def leftovers(home: Path) -> list[str]:
    """Mounts, processes and files of this home."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if str(home) in line]
    found += [f"pid {pid}" for pid in proc.users_of_overlays_below(home / "nodes")]
    found += [str(path) for path in home.iterdir()] if home.exists() else []
    return found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    links = sorted(Path("/sys/class/net").iterdir())
    place = tmp_path / "home"
    yield place
    Fleet(home=place).close()
    assert leftovers(place) == []
    assert sorted(Path("/sys/class/net").iterdir()) == links


@pytest.fixture
def fleet(home: Path) -> Fleet:
    made = Fleet(home=home)
    made.open(network=NETWORK, gateway=GATEWAY)
    return made


def output(node: Node, *argv: str, **more) -> str:
    done = node.run(argv, timeout_s=20, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_image_lies_over_the_machine_and_under_what_the_node_writes(fleet: Fleet):
    image = fleet.directory / "image"
    for folder in ("etc/new", "etc/ssh", "usr/local/bin", "opt/slurm/etc"):
        (image / folder).mkdir(parents=True)
    (image / "etc/new/file").write_text("of the image\n")
    (image / "etc/issue").write_text("of the image\n")
    (image / "etc/ssh/sshd_config").write_text("Port 22\n")
    (image / "etc/slurm").symlink_to("/opt/slurm/etc")
    os.chown(image / "etc/new/file", 12, 34)
    first, second = fleet.boot(spec(11, image=image)), fleet.boot(spec(12, image=image))
    assert output(first, "stat", "-c", "%u:%g", "/etc/new/file") == "12:34"
    assert output(first, "cat", "/etc/issue") == "of the image"
    assert output(first, "readlink", "/etc/slurm") == "/opt/slurm/etc"
    assert output(first, "ls", "/etc/ssh") == "sshd_config"  # and none of the machine's keys
    output(first, "sh", "-c", "echo changed > /etc/new/file; rm /etc/issue")
    assert output(second, "cat", "/etc/new/file", "/etc/issue") == "of the image\nof the image"
    assert (image / "etc/new/file").read_text() == "of the image\n"
    assert Fleet(home=fleet.home).node("ip-10-1-0-11").spec.image == image
    first.destroy()
    again = fleet.boot(spec(11, image=image), keep_root=True)
    assert output(again, "cat", "/etc/new/file") == "changed"


def test_an_image_that_is_not_there_is_refused(fleet: Fleet, tmp_path: Path):
    with pytest.raises(NodeError, match="is not a directory; build it"):
        fleet.boot(spec(11, image=tmp_path / "none"))


def test_an_image_on_the_disk_of_the_machines_root_is_refused(fleet: Fleet):
    with pytest.raises(NodeError, match="lies on the same file system as /;"):
        fleet.boot(spec(11, image=Path("/usr/share")))


def connects(node: Node, address: str, port: int) -> bool:
    script = f"exec 3<>/dev/tcp/{address}/{port}"
    return node.run(["timeout", "2", "bash", "-c", script], timeout_s=10).returncode == 0


def test_this_machine_can_run_nodes():
    assert Fleet.check_host() == []


def test_a_machine_that_forbids_mounts_is_refused_before_anything_is_made(home: Path):
    code = (
        "from pathlib import Path; from holdfast.localcloud.nodes import Fleet, NodeError\n"
        f"try: Fleet(home=Path({str(home)!r})).open(network='10.1.0.0/16', gateway='10.1.0.1')\n"
        "except NodeError as error: print(error)"
    )
    confined = ["setpriv", "--bounding-set", "-sys_admin", sys.executable, "-c", code]
    done = subprocess.run(confined, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.startswith(
        "this machine cannot run nodes: namespaces or overlay mounts are not permitted here ("
    )
    assert "Operation not permitted" in done.stdout
    assert "--privileged" in done.stdout
    assert not home.exists()


def test_a_node_is_a_machine_of_its_own(fleet: Fleet):
    one, two, three = ThreadPoolExecutor(3).map(lambda number: fleet.boot(spec(number)), (11, 12, 13))
    assert output(one, "hostname") == "ip-10-1-0-11"
    assert output(one, "sh", "-c", "echo /proc/[0-9]*").split()[0] == "/proc/1"
    assert len(output(one, "sh", "-c", "echo /proc/[0-9]*").split()) <= 4
    assert len({output(node, "readlink", "/proc/self/ns/ipc") for node in (one, two, three)}) == 3
    assert output(one, "cat", "/etc/resolv.conf") == ""
    assert output(one, "ls", "-A", "/home", "/srv", "/mnt") == "/home:\nubuntu\n\n/mnt:\n\n/srv:"
    assert not one.root.joinpath(str(REPOSITORY).lstrip("/")).exists()
    assert output(one, "sh", "-c", "touch /dev/shm/a /tmp/b && cat /dev/null && head -c1 /dev/zero | wc -c") == "1"


def test_writes_in_a_node_stay_in_the_node(fleet: Fleet):
    before = {name: Path(name).read_bytes() for name in ("/etc/passwd", "/etc/hosts", "/etc/nsswitch.conf")}
    one, two = fleet.boot(spec(11)), fleet.boot(spec(12))
    output(one, "sh", "-c", "echo x >> /etc/passwd; echo x > /usr/bin/holdfast-x; mkdir /holdfast-x; rm /etc/profile")
    assert {name: Path(name).read_bytes() for name in before} == before
    for path in ("/usr/bin/holdfast-x", "/holdfast-x"):
        assert not Path(path).exists()
        assert not two.root.joinpath(path.lstrip("/")).exists()
    assert Path("/etc/profile").exists()


def test_nodes_reach_each_other_and_nothing_else(fleet: Fleet):
    one = fleet.boot(spec(11, mounts=python_mounts(at="/opt/holdfast/env")))
    two = fleet.boot(spec(12))
    server = one.popen(
        ["/opt/holdfast/env/bin/python", "-c", "import socket as s; x=s.create_server(('', 700)); print(flush=True)\n"
         "while True: x.accept()"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    server.stdout.readline()
    assert connects(two, "10.1.0.11", 700)
    routes = output(two, "ip", "route").split("\n")
    assert [line.split()[0] for line in routes] == ["default", "10.1.0.0/16"]
    assert two.run(["bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/80"], timeout_s=10).returncode == 1
    one.cut()
    assert not connects(two, "10.1.0.11", 700)
    one.heal()
    assert connects(two, "10.1.0.11", 700)
    one.destroy()
    server.wait(5)
    server.stdout.close()


def test_programs_run_with_their_status_user_environment_and_input(fleet: Fleet):
    node = fleet.boot(spec(11))
    assert node.run(["sh", "-c", "exit 7"], timeout_s=5).returncode == 7
    assert node.run(["no-such-program"], timeout_s=5).returncode == 127
    assert output(node, "id", "-un", user="ubuntu") == "ubuntu"
    assert output(node, "sh", "-c", "echo $HOME $USER $X", user="ubuntu", env={"X": "y"}) == "/home/ubuntu ubuntu y"
    assert output(node, "cat", input="some text") == "some text"
    assert output(node, "pwd", cwd="/var/log") == "/var/log"
    node.write_file("/etc/profile.d/x.sh", b"export FROM_PROFILE=1\n")
    assert output(node, "sh", "-c", "echo $FROM_PROFILE", login=True) == "1"
    with pytest.raises(NodeError, match="no user 'alice'; use one of root, "):
        node.run(["id"], timeout_s=5, user="alice")


def test_a_program_over_its_time_is_killed_inside_the_node(fleet: Fleet):
    node = fleet.boot(spec(11))
    with pytest.raises(subprocess.TimeoutExpired):
        node.run(["sh", "-c", "sleep 4711; true"], timeout_s=0.2)
    assert "4711" not in output(node, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").replace("cat", "", 1)


def test_a_person_gets_a_terminal_of_the_node(fleet: Fleet):
    fleet.boot(spec(11))
    code = (
        "import sys; from pathlib import Path; from holdfast.localcloud.nodes import Fleet\n"
        f"sys.exit(Fleet(home=Path({str(fleet.home)!r})).node('ip-10-1-0-11').exec_tty(['sh', '-c', 'tty; exit 3']))"
    )
    shell = shlex.join([sys.executable, "-c", code])
    theirs, ours = os.pipe()  # nothing is typed, and the input does not end: at its end "script" would type a NUL
    try:
        command = ["script", "-qec", shell, "/dev/null"]
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    finally:
        os.close(theirs)
        os.close(ours)
    assert (done.stdout.strip(), done.returncode) == ("/dev/pts/0", 3), (done.stdout, done.stderr)


def test_a_terminal_from_outside_is_one_of_the_nodes_own(fleet: Fleet):
    node = fleet.boot(spec(12))
    master, slave = node.terminal()
    try:
        process = node.popen(["setsid", "--ctty", "--wait", "tty"], stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        assert process.wait(timeout=20) == 0
        name = os.read(master, 100).decode().strip()
    finally:
        os.close(master)
    assert name.startswith("/dev/pts/")


def test_a_port_of_a_nodes_loopback_interface_is_reached_from_outside(fleet: Fleet):
    node, other = fleet.boot(spec(12)), fleet.boot(spec(13))
    with node.listen("127.0.0.1", 7000) as listening:
        with node.connect(7000) as line:
            accepted, _ = listening.accept()
            with accepted:
                accepted.sendall(b"node 12")
            assert line.recv(100) == b"node 12"
        with pytest.raises(ConnectionRefusedError):
            other.connect(7000)


def test_orphans_are_reaped_and_pid_1_ignores_what_is_sent_inside(fleet: Fleet):
    node = fleet.boot(spec(11))
    output(node, "sh", "-c", "for i in 1 2 3 4 5; do sh -c 'sleep 0.05 & sleep 0.02 &' ; done")
    output(node, "sh", "-c", "for s in 1 2 3 6 8 9 10 11 12 13 14 18 19 20; do kill -$s 1; done")
    deadline = time.monotonic() + 5
    while len(proc.members(node.pid)) > 2:
        assert time.monotonic() < deadline, [proc.state(pid) for pid in proc.members(node.pid)]
        time.sleep(0.02)
    assert node.alive()


def test_sigterm_to_pid_1_ends_the_node(fleet: Fleet):
    node = fleet.boot(spec(11))
    os.kill(node.pid, signal.SIGTERM)
    assert node.wait_dead(2.0)


def test_a_frozen_node_stands_still_until_it_is_thawed(fleet: Fleet):
    node = fleet.boot(spec(11))
    ticker = node.popen(["sh", "-c", "while :; do echo x >> /var/ticks; sleep 0.005; done"])
    while not node.outside("/var/ticks").exists():
        time.sleep(0.005)
    node.freeze()
    size = node.outside("/var/ticks").stat().st_size
    time.sleep(0.1)
    assert node.outside("/var/ticks").stat().st_size == size
    node.thaw()
    deadline = time.monotonic() + 5
    while node.outside("/var/ticks").stat().st_size == size:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    node.destroy()
    ticker.wait(5)


def test_freezing_while_processes_are_being_made_catches_each(fleet: Fleet):
    node = fleet.boot(spec(11))
    with node.popen(["sh", "-c", "while :; do sleep 0.001; done"]) as forking:
        for _ in range(10):
            node.freeze()
            assert {proc.state(pid) for pid in proc.members(node.pid)} <= {"T", "D", "Z"}
            node.thaw()
        assert node.run(["true"], timeout_s=5).returncode == 0
        node.destroy()
        assert forking.wait(5) != 0


def seconds_to_notice(node: Node) -> float:
    noticed: list[float] = []
    watcher = threading.Thread(target=lambda: noticed.append(time.monotonic() if node.wait_dead(10) else 1e9))
    watcher.start()
    time.sleep(0.05)
    start = time.monotonic()
    node.destroy()
    watcher.join()
    return noticed[0] - start


def test_death_is_noticed_at_once(fleet: Fleet):
    nodes = [fleet.boot(spec(number)) for number in (11, 12, 13)]
    assert min(seconds_to_notice(node) for node in nodes) < 0.1


def test_the_last_files_of_a_dead_node_can_be_read(fleet: Fleet):
    node = fleet.boot(spec(11))
    node.write_file("/var/log/holdfast/events.jsonl", b"last words\n")
    node.destroy()
    assert not node.alive()
    assert node.read_file("/var/log/holdfast/events.jsonl") == b"last words\n"
    with pytest.raises(NodeError, match="is not running; boot it first"):
        node.run(["true"], timeout_s=5)
    node.destroy()
    node.remove()
    assert fleet.nodes() == []


def test_a_replacement_at_the_same_address_is_reached_at_once(fleet: Fleet):
    two = fleet.boot(spec(12, mounts=python_mounts(at="/opt/holdfast/env")))
    server = two.popen(["/opt/holdfast/env/bin/python", "-m", "http.server", "80", "--bind", "10.1.0.12"])
    one = fleet.boot(spec(11))
    while not connects(one, "10.1.0.12", 80):
        time.sleep(0.05)
    one.destroy()
    new = NodeSpec(instance_id="i-2", hostname="ip-10-1-0-11", address="10.1.0.11")
    assert connects(fleet.boot(new), "10.1.0.12", 80)
    assert fleet.node("10.1.0.11").spec.instance_id == "i-2"
    two.destroy()
    server.wait(5)


def test_a_reboot_keeps_the_root_and_a_new_boot_does_not(fleet: Fleet):
    node = fleet.boot(spec(11))
    output(node, "sh", "-c", "echo kept > /opt/state; useradd -u 2000 trainer; touch /tmp/gone")
    node.destroy()
    again = fleet.boot(spec(11, files={"/opt/new": FileSpec(content=b"1", owner="trainer")}), keep_root=True)
    assert output(again, "sh", "-c", "cat /opt/state; stat -c %U /opt/new; ls /tmp; hostname") == (
        "kept\ntrainer\nip-10-1-0-11"
    )
    again.destroy()
    with pytest.raises(NodeError, match="did not boot"):
        fleet.boot(spec(11, files={"/proc/1/no-such-file": FileSpec(content=b"")}), keep_root=True)
    assert again.read_file("/opt/state") == b"kept\n"
    fleet.boot(spec(11), keep_root=True).destroy()
    fresh = fleet.boot(spec(11))
    assert fresh.run(["test", "-e", "/opt/state"], timeout_s=5).returncode == 1


def test_mounts_and_files_are_there_before_pid_1(fleet: Fleet, tmp_path: Path):
    shared, single = tmp_path / "fsx", tmp_path / "single.txt"
    shared.mkdir()
    single.write_text("one file")
    node = fleet.boot(
        spec(
            11,
            mounts=(
                Mount(source=shared, target="/fsx"),
                Mount(source=shared, target="/fsx-read", read_only=True),
                Mount(source=single, target="/etc/single"),
            ),
            files={"/etc/munge/munge.key": FileSpec(content=b"k" * 128, mode=0o400, owner="munge:munge")},
        )
    )
    output(node, "sh", "-c", "echo hello > /fsx/a")
    assert (shared / "a").read_text() == "hello\n"
    assert output(node, "cat", "/fsx-read/a", "/etc/single") == "hello\none file"
    assert "Read-only" in node.run(["touch", "/fsx-read/b"], timeout_s=5).stderr
    assert output(node, "stat", "-c", "%U %a", "/etc/munge/munge.key", "/etc/munge") == "munge 400\nmunge 700"


def test_another_process_finds_the_nodes(fleet: Fleet):
    booted = fleet.boot(spec(11))
    found = Fleet(home=fleet.home).node("ip-10-1-0-11")
    assert (found.pid, found.start_ticks, found.alive()) == (booted.pid, booted.start_ticks, True)
    with pytest.raises(NodeError, match=r"no node 'x'; nodes: i-0+b \(ip-10-1-0-11\)"):
        fleet.node("x")


def test_rejects_nodes_that_cannot_be(fleet: Fleet, tmp_path: Path):
    fleet.boot(spec(11))
    with pytest.raises(NodeError, match=r"already runs at 10.1.0.11; destroy it first"):
        fleet.boot(spec(11))
    with pytest.raises(NodeError, match=r"i-2: i-0+b already runs at 10.1.0.11"):
        fleet.boot(NodeSpec(instance_id="i-2", hostname="n", address="10.1.0.11"))
    with pytest.raises(
        NodeError, match=r"address must be in 10.1.0.0/16 and not the gateway 10.1.255.254, got 10.2.0.1"
    ):
        fleet.boot(NodeSpec(instance_id="i-2", hostname="n", address="10.2.0.1"))
    with pytest.raises(NodeError, match="does not exist; create it before the node boots"):
        fleet.boot(spec(12, mounts=(Mount(source=tmp_path / "no", target="/x"),)))
    with pytest.raises(NodeError, match=r"nodes run on network 10.1.0.0/16 .* got 10.2.0.0/16"):
        fleet.open(network="10.2.0.0/16", gateway="10.2.0.1")
    with pytest.raises(NodeError, match="no earlier root to keep"):
        fleet.boot(spec(14), keep_root=True)
    assert [node.spec.address for node in fleet.nodes()] == ["10.1.0.11"]


def test_fails_to_boot_in_a_fleet_that_is_not_open(home: Path):
    with pytest.raises(NodeError, match="open the fleet first"):
        Fleet(home=home).boot(spec(11))


def test_a_boot_that_fails_half_way_says_why_and_leaves_nothing(fleet: Fleet):
    broken = spec(11, files={"/proc/1/no-such-file": FileSpec(content=b"")})
    with pytest.raises(NodeError, match=r"did not boot: .*no-such-file"):
        fleet.boot(broken)
    assert sorted(path.name for path in fleet.directory.iterdir()) == ["fabric", "fleet.json", "kernel-log"]
    for _ in range(5):
        with pytest.raises(NodeError, match="no-such-file"):
            fleet.boot(broken)
    assert fleet.boot(spec(11)).alive()


ON_A_MACHINE_WITH_TWO_DISKS = """
import sys
from pathlib import Path
from holdfast.localcloud.nodes import Fleet, NodeSpec
fleet = Fleet(home=Path(sys.argv[1]))
try:
    fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
    node = fleet.boot(NodeSpec(instance_id="i-1", hostname="n1", address="10.1.0.1"))
    node.run(["sh", "-c", "echo new > /var/opt/new; echo log > /var/log/x"], timeout_s=5)
    print(sorted(node.run(["ls", "/var/opt"], timeout_s=5).stdout.split()) == sorted(sys.argv[2].split() + ["new"]))
    node.destroy()
    print(node.read_file("/var/opt/new"), node.read_file("/var/log/x"))
finally:
    fleet.close()
"""


def test_disks_mounted_below_the_machines_root_are_part_of_the_nodes(home: Path):
    if not Path("/var/opt").is_dir():
        pytest.skip("needs /var/opt to mount a second disk on")
    source = Path("/usr/share/doc" if Path("/usr/share/doc").is_dir() else "/usr/share")
    script = f'mount --bind {source} /var/opt && exec "$@"'
    names = " ".join(path.name for path in source.iterdir())
    python = [sys.executable, "-c", ON_A_MACHINE_WITH_TWO_DISKS, str(home), names]
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *python]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.stdout, done.stderr) == ("True\nb'new\\n' b'log\\n'\n", "")
    assert not (source / "new").exists()
