"""/dev/kmsg of real nodes, for readers that were written for the kernel's."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.kernel_log import KernelLogError, KernelLogs
from holdfast.localcloud.nodes import Fleet, Node, NodeSpec
from holdfast.localcloud.nodes.kernel import proc
from holdfast_agent.coverage import Coverage, Report
from holdfast_agent.detectors import Instant, KernelLog
from holdfast_agent.logs import DeviceLog

pytestmark = pytest.mark.root

XID = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(home=tmp_path / "home")
    made.open(network="10.1.0.0/16", gateway="10.1.255.254")
    yield made
    made.close()


def boot(fleet: Fleet, number: int, *, containers: bool = False) -> Node:
    name, address = f"i-{number:017x}", f"10.1.0.{number}"
    spec = NodeSpec(instance_id=name, hostname=f"ip-10-1-0-{number}", address=address, runs_containers=containers)
    return fleet.boot(spec)


def said(node: Node) -> list[str]:
    """What dmesg, which nobody wrote for this, shows."""
    done = node.run(["dmesg", "--notime"], timeout_s=10)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1:]


@pytest.mark.parametrize("containers", [False, True])
def test_dmesg_shows_what_the_kernel_of_this_node_alone_has_said(fleet: Fleet, containers: bool):
    first, second = boot(fleet, 11, containers=containers), boot(fleet, 12, containers=containers)
    fleet.kernel_logs.write(first.spec.instance_id, [XID])
    assert said(first) == [XID]
    assert said(second) == []
    shown = first.run(["dmesg", "--raw"], timeout_s=10).stdout.splitlines()[-1]
    assert shown.startswith("<3>[")  # level err, facility kern


def test_a_line_is_read_within_milliseconds_by_whoever_follows(fleet: Fleet):
    node = boot(fleet, 11)
    reader = node.popen(["dmesg", "--follow-new", "--notime"], stdout=subprocess.PIPE)
    assert reader.stdout is not None
    time.sleep(0.5)
    began = time.monotonic()
    fleet.kernel_logs.write(node.spec.instance_id, [XID])
    assert reader.stdout.readline().decode().strip() == XID
    assert time.monotonic() - began < 1.0
    node.destroy()
    reader.wait(10)
    reader.stdout.close()


def test_programs_of_the_node_cannot_speak_as_the_kernel_and_users_not_at_all(fleet: Fleet):
    node = boot(fleet, 11)
    assert node.run(["sh", "-c", 'echo "<3>$1" > /dev/kmsg', "say", XID], timeout_s=10).returncode == 0
    lines = node.run(["dd", "if=/dev/kmsg", "bs=8192", "count=2"], timeout_s=10).stdout.splitlines()
    assert lines[1].startswith("11,1,")  # facility user, level err
    as_user = node.run(["sh", "-c", "echo x > /dev/kmsg; cat /dev/kmsg"], user="ubuntu", timeout_s=10)
    assert as_user.returncode != 0
    assert "ermission denied" in as_user.stderr
    assert "not permitted" in as_user.stderr


def test_it_behaves_as_the_kernel_log_of_this_machine(fleet: Fleet):
    """The same program on both: what differs is a difference of ours."""
    node = boot(fleet, 11)
    seen = [_tried(path) for path in (Path("/dev/kmsg"), node.root / "dev/kmsg")]
    assert seen[0] == seen[1]


def _tried(path: Path) -> list[object]:
    mark = f"holdfast {time.monotonic_ns()}"
    # Each ends its line: a text that does not is shown by the kernel only when another has come.
    texts = (f"<3>{mark}", f"{mark} tab\t \\ ü", f"<14>{mark} of a daemon", f"<6>{mark} long", f"{mark} last")
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.lseek(reader, 0, os.SEEK_END)
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        for text in texts:
            os.write(reader, f"{text}\n".encode())
        seen: list[object] = [poller.poll(0)[0][1]]
        while len(seen) < 4:
            line = os.read(reader, 8192).decode()
            if mark in line:
                seen.append((line.split(",")[0], line.partition(";")[2].replace(mark, "MARK")))
        seen += [_outcome(lambda size=size: os.read(reader, size).partition(b",-;")[1]) for size in (8, 8192, 8192)]
        seen.append(poller.poll(0))
        seen.append(_outcome(lambda: os.lseek(reader, 0, os.SEEK_DATA)))
        seen.append(_outcome(lambda: os.write(reader, b"x" * 1100)))
    finally:
        os.close(reader)
    return seen


def _outcome(action: Callable[[], object]) -> object:
    try:
        return action()
    except OSError as error:
        return error.errno


def test_a_flood_is_lost_in_the_reader_and_said_so(fleet: Fleet):
    node = boot(fleet, 11)
    reader = os.open(node.root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fleet.kernel_logs.write(node.spec.instance_id, [f"{XID} {number}" for number in range(5000)])
        with pytest.raises(BrokenPipeError):
            os.read(reader, 8192)
        assert os.read(reader, 8192).decode().partition(",")[2].split(",")[0] > "1"
    finally:
        os.close(reader)
    assert said(node)[-1] == f"{XID} 4999"


def test_a_node_with_readers_that_wait_is_destroyed_at_once(fleet: Fleet):
    node = boot(fleet, 11)
    readers = [node.popen(["cat", "/dev/kmsg"]) for _ in range(3)]
    time.sleep(0.3)
    began = time.monotonic()
    node.destroy()
    assert time.monotonic() - began < 3.0
    for reader in readers:
        reader.wait(10)
    assert _within(lambda: fleet.kernel_logs.names() == [])


def test_a_reboot_begins_a_new_log(fleet: Fleet):
    node = boot(fleet, 11)
    fleet.kernel_logs.write(node.spec.instance_id, [XID])
    node.destroy()
    again = fleet.boot(node.spec, keep_root=True)
    assert said(again) == []
    fleet.kernel_logs.write(node.spec.instance_id, ["of the new life"])
    assert said(again) == ["of the new life"]


def test_closing_releases_readers_also_when_the_process_that_serves_them_stands_still(fleet: Fleet):
    node = boot(fleet, 11)
    reader = node.popen(["cat", "/dev/kmsg"])
    time.sleep(0.3)
    server = _server(fleet)
    os.kill(server, signal.SIGSTOP)
    began = time.monotonic()
    fleet.close()
    assert time.monotonic() - began < 8.0
    assert reader.wait(10) != 0
    assert proc.state(server) in ("", "Z")  # where nobody reaps what a machine's init should


@pytest.mark.parametrize("containers", [False, True])
def test_nodes_that_run_have_a_log_again_after_the_process_was_killed(fleet: Fleet, containers: bool):
    nodes = [boot(fleet, number, containers=containers) for number in (11, 12)]
    detector, coverage = LogOfNode(str(nodes[0].root / "dev/kmsg")), Coverage()
    assert looked(detector, coverage, range(3)) == []
    os.kill(_server(fleet), signal.SIGKILL)
    assert _within(lambda: not fleet.kernel_logs.is_running())
    assert nodes[0].run(["cat", "/dev/kmsg"], timeout_s=10).returncode != 0
    assert looked(detector, coverage, range(3, 30)) == [True]
    assert "endpoint is not connected" in detector.reason
    fleet.restore_kernel_logs()
    for node in nodes:
        fleet.kernel_logs.write(node.spec.instance_id, [f"{XID} {node.spec.hostname}"])
        assert said(node) == [f"{XID} {node.spec.hostname}"]
        assert node.run(["grep", "-c", " /dev/kmsg ", "/proc/self/mountinfo"], timeout_s=10).stdout == "1\n"
    assert looked(detector, coverage, range(30, 40)) == [False]
    detector.close()
    fleet.restore_kernel_logs()  # and to do it again loses nothing
    assert said(nodes[0]) == [f"{XID} {nodes[0].spec.hostname}"]


class LogOfNode(KernelLog):
    """Seen from the machine, by another path than /dev/kmsg."""

    def _opened(self) -> DeviceLog:
        return DeviceLog(self._path)


def looked(detector: KernelLog, coverage: Coverage, times_s: range) -> list[bool]:
    """Losses (True) and returns of an agent's kernel log that looks each second."""
    found = []
    for time_s in times_s:
        detector.look(Instant(boot_s=time_s, time_ns=time.time_ns()))
        report = Report(detector=detector.name, parts=detector.parts, lost_after_s=detector.lost_after_s)
        found += [change.lost for change in coverage.assess([report], boot_s=time_s)]
    return found


def test_a_service_that_was_confined_reads_the_log_that_is_served_again(fleet: Fleet):
    node = boot(fleet, 11)
    inside = node.popen(["unshare", "--mount", "--propagation", "slave", "sleep", "60"])
    assert _within(lambda: node.run(["pgrep", "-x", "sleep"], timeout_s=10).stdout != "")
    os.kill(_server(fleet), signal.SIGKILL)
    assert _within(lambda: not fleet.kernel_logs.is_running())
    fleet.restore_kernel_logs()
    fleet.kernel_logs.write(node.spec.instance_id, [XID])
    enter = ["sh", "-c", "nsenter -t $(pgrep -x -P1 sleep || pgrep -nx sleep) -m dmesg --notime"]
    assert node.run(enter, timeout_s=10).stdout.splitlines()[-1] == XID
    node.destroy()
    inside.wait(10)


def test_a_node_that_boots_after_the_process_was_killed_has_a_log_and_so_have_those_that_run(fleet: Fleet):
    before = boot(fleet, 11)
    os.kill(_server(fleet), signal.SIGKILL)
    assert _within(lambda: not fleet.kernel_logs.is_running())
    after = boot(fleet, 12)
    for node in (before, after):
        fleet.kernel_logs.write(node.spec.instance_id, [XID])
        assert said(node) == [XID]


def test_writing_for_a_node_that_is_not_there_says_so(fleet: Fleet, tmp_path: Path):
    with pytest.raises(KernelLogError, match="node i-1: the kernel log cannot be written: no such node"):
        fleet.kernel_logs.write("i-1", ["x"])
    with pytest.raises(KernelLogError, match="does not respond"):
        KernelLogs(tmp_path).write("i-1", ["x"])


def _server(fleet: Fleet) -> int:
    folder = str(fleet.directory)
    (found,) = [pid for pid in proc.pids() if folder in _words(pid) and "program.server" in _words(pid)]
    return found


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _within(done, *, limit_s: float = 5.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(done())
