"""Faults on real nodes, as programs see them that were not written for it."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.catalog import instance_types
from holdfast.localcloud.gpus import Gpus
from holdfast.localcloud.nodes import Fleet, Mount, Node, NodeSpec, kill_group
from holdfast.localcloud.nodes.kernel import proc
from holdfast.localcloud.planting import ActiveFault, PlantingError, end, end_all, fault_named, plant, planted

pytestmark = [pytest.mark.e2e, pytest.mark.root]

ASK = """
import ctypes, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
print(nvml.nvmlInit_v2())
gpu = ctypes.c_void_p()
print(nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[1]), ctypes.byref(gpu)))
rows = [ctypes.c_uint() for _ in range(4)]
nvml.nvmlDeviceGetRemappedRows(gpu, *map(ctypes.byref, rows))
print(*(row.value for row in rows))
errors = ctypes.c_ulonglong()
nvml.nvmlDeviceGetTotalEccErrors(gpu, 0, 0, ctypes.byref(errors))
print(errors.value)
nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 0, ctypes.byref(errors))
print(errors.value)
"""
PYTHON = "/usr/bin/python3"


class Lab:
    """Two nodes with GPUs that share a file system."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(home=folder / "home")
        self.fleet.open(network="10.1.0.0/16", gateway="10.1.255.254")
        self.shared = folder / "lustre"
        self.shared.mkdir()
        (self.shared / "data").write_text("of all nodes\n")
        gpus, kind = Gpus(home=folder / "home"), instance_types()["ml.p5.48xlarge"]
        mounts = (*gpus.mounts(kind), Mount(source=self.shared, target="/fsx"))
        self.node, self.other = (
            self.fleet.boot(
                NodeSpec(
                    instance_id=f"i-{number:017x}",
                    hostname=f"ip-10-1-0-{number}",
                    address=f"10.1.0.{number}",
                    mounts=mounts,
                    files=gpus.files(kind),
                )
            )
            for number in (11, 12)
        )

    def plant(self, name: str, *, for_s: float | None = None, gpu: int = 0) -> ActiveFault:
        return plant(self.fleet, self.node, fault_named(name), for_s=for_s, gpu=gpu)

    def now(self) -> list[str]:
        return [one.fault for one in planted(self.fleet)]

    def ask(self, gpu: int = 0) -> list[str]:
        done = self.node.run([PYTHON, "-c", ASK, str(gpu)], timeout_s=20)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def said(self) -> list[str]:
        return self.node.run(["dmesg", "--notime"], timeout_s=10).stdout.splitlines()[1:]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    end_all(made.fleet)
    made.fleet.close()
    # Whoever held a fault of a node that was destroyed ends by itself, soon after it.
    assert within(lambda: _holders(tmp_path) == []), _holders(tmp_path)


def _holders(folder: Path) -> list[int]:
    return [pid for pid in proc.pids() if "localcloud.planting" in _words(pid) and str(folder) in _words(pid)]


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def within(done: Callable[[], bool], *, limit_s: float = 10.0) -> bool:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    return done()


def state(node: Node, program: str) -> str:
    """State, what it waits in, and signals that are pending for all of it, of a program by its name."""
    for pid in proc.members(node.pid):
        if proc.program(pid) == program:
            status = Path(f"/proc/{pid}/status").read_text()
            pending = re.search(r"ShdPnd:\s*(\w+)", status)
            assert pending
            return f"{proc.state(pid)} {Path(f'/proc/{pid}/wchan').read_text()} {int(pending[1], 16):x}"
    return ""


def test_an_xid_is_a_line_of_the_nodes_kernel_and_of_syslog_where_there_is_one(lab: Lab):
    lab.node.write_file("/var/log/messages", b"")
    done = lab.plant("xid-79", gpu=2)
    assert done.device == "0000:75:00.0"
    line = "NVRM: Xid (PCI:0000:75:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    assert lab.said() == [line]
    syslog = lab.node.read_file("/var/log/messages").decode()
    assert re.fullmatch(rf"\w{{3}} [ \d]\d [\d:]{{8}} ip-10-1-0-11 kernel: {re.escape(line)}\n", syslog)
    assert lab.now() == []


def test_a_line_names_the_process_that_computes(lab: Lab):
    busy = lab.node.popen([PYTHON, "-c", "import time; time.sleep(60)"])
    try:
        assert within(lambda: state(lab.node, "python3") != "")
        lab.plant("xid-43")
        pid = lab.node.run(["pgrep", "python3"], timeout_s=10).stdout.strip()
        assert f"43, pid={pid}, name=python3, Ch 00000008" in lab.said()[-1]
    finally:
        kill_group(busy)
        busy.wait()


def test_a_clean_up_is_672_records(lab: Lab):
    lab.plant("clean-up-burst")
    assert len([line for line in lab.said() if "): 45, " in line]) == 672


def test_a_lost_gpu_is_lost_to_nvml_and_the_others_are_not(lab: Lab):
    lab.plant("gpu-lost", gpu=3)
    assert lab.ask(3)[:2] == ["0", "15"]
    assert lab.ask(2)[:2] == ["0", "0"]
    assert lab.said() == ["NVRM: GPU 0000:86:00.0: GPU has fallen off the bus."]


def test_a_pending_remap_ends_with_its_time(lab: Lab):
    lab.plant("xid-63-pending", for_s=1.0)
    assert lab.ask()[2] == "0 1 1 0"
    assert "63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked" in lab.said()[0]
    assert within(lambda: lab.now() == [])
    assert lab.ask()[2] == "0 0 0 0"


def test_errors_beyond_correction_and_a_failed_remap_are_told_and_counted(lab: Lab):
    planted = [lab.plant("double-bit-error"), lab.plant("remap-failure", gpu=5)]
    assert (lab.ask()[4], lab.ask()[2]) == ("1", "0 0 0 0")
    assert (lab.ask(5)[4], lab.ask(5)[2]) == ("0", "0 1 0 1")
    assert [text.split("): ")[1].split(",")[0] for text in lab.said()] == ["48", "64"]
    end(planted)
    assert (lab.ask()[4], lab.ask(5)[2]) == ("0", "0 0 0 0")


def test_corrected_errors_grow_by_100_a_second_and_two_faults_do_not_disturb_each_other(lab: Lab):
    (first,) = [lab.plant("ecc-rate")]
    lab.plant("gpu-lost", gpu=5)
    errors, began = int(lab.ask()[3]), time.monotonic()
    time.sleep(1.0)
    grown, took_s = int(lab.ask()[3]) - errors, time.monotonic() - began
    assert 50 < grown < 100 * took_s + 50
    end([first])
    assert lab.ask()[3] == "0"
    assert lab.ask(5)[1] == "15"


def test_whoever_asks_a_hung_driver_survives_sigkill_until_the_fault_ends(lab: Lab):
    fault = lab.plant("hung-driver")
    asking = lab.node.popen([PYTHON, "-c", ASK, "0"], user="ubuntu")
    assert within(lambda: "request_wait_answer" in state(lab.node, "python3"))
    lab.node.run(["pkill", "-KILL", "python3"], timeout_s=10)
    assert within(lambda: state(lab.node, "python3") == "D request_wait_answer 100")
    time.sleep(0.3)
    assert asking.poll() is None
    end([fault])
    assert asking.wait(10) != 0
    assert lab.ask()[:2] == ["0", "0"]


def test_a_hung_driver_keeps_no_node_from_being_destroyed(lab: Lab):
    lab.plant("hung-driver")
    asking = lab.node.popen([PYTHON, "-c", ASK, "0"])
    assert within(lambda: "request_wait_answer" in state(lab.node, "python3"))
    lab.node.run(["pkill", "-KILL", "python3"], timeout_s=10)
    began = time.monotonic()
    lab.node.destroy()
    assert time.monotonic() - began < 3.0
    asking.wait(10)
    assert within(lambda: lab.now() == [])


def test_a_stalled_file_system_stalls_on_one_node_and_nothing_is_lost(lab: Lab):
    fault = lab.plant("stalled-mount")
    reading = lab.node.popen(["cat", "/fsx/data"], stdout=subprocess.PIPE)
    listing = lab.node.popen(["ls", "/fsx"])
    assert within(lambda: state(lab.node, "cat").startswith("D fanotify_handle_event"))
    assert within(lambda: state(lab.node, "ls").startswith("D fanotify_handle_event"))
    assert lab.node.run(["stat", "-f", "/fsx"], timeout_s=10).returncode == 0  # which is why statfs proves nothing
    assert lab.other.run(["cat", "/fsx/data"], timeout_s=10).stdout == "of all nodes\n"
    end([fault])
    assert reading.communicate(timeout=10)[0] == b"of all nodes\n"
    assert listing.wait(10) == 0


def test_a_stalled_file_system_stalls_in_namespaces_of_jobs_too(lab: Lab):
    apart = lab.node.popen(["unshare", "-m", "sh", "-c", "read -r go; cat /fsx/data"], stdin=subprocess.PIPE)
    assert within(lambda: state(lab.node, "sh") != "")
    time.sleep(0.3)
    fault = lab.plant("stalled-mount")
    assert apart.stdin is not None
    apart.stdin.write(b"go\n")
    apart.stdin.close()
    assert within(lambda: state(lab.node, "cat").startswith("D fanotify_handle_event"))
    end([fault])
    assert apart.wait(10) == 0


def test_a_lossy_link_loses_a_fifth_of_the_datagrams_and_tells_nobody(lab: Lab):
    fault = lab.plant("lossy-link")
    assert 20 < _lost(lab, of=300) < 110
    end([fault])
    assert _lost(lab, of=100) == 0


def _lost(lab: Lab, *, of: int) -> int:
    """Datagrams from one node to the other that do not come."""
    receive = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.bind(('10.1.0.11', 999))\n"
        "print('ready', flush=True)\n"
        "s.settimeout(20)\n"  # until the sender has begun, which a busy machine makes long
        "n = 0\n"
        "try:\n"
        f"    while n < {of}:\n"
        "        s.recv(99); n += 1; s.settimeout(2)\n"
        "except TimeoutError: pass\n"
        "print(n)\n"
    )
    send = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"for _ in range({of}):\n"
        "    s.sendto(b'x', ('10.1.0.11', 999)); time.sleep(0.001)\n"
    )
    receiver = lab.node.popen([PYTHON, "-c", receive], stdout=subprocess.PIPE)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == b"ready\n"
    assert lab.other.run([PYTHON, "-c", send], timeout_s=20).returncode == 0
    came = int(receiver.communicate(timeout=30)[0])
    return of - came


def test_tcp_sends_again_over_a_lossy_link(lab: Lab):
    lab.plant("lossy-link")
    listener = lab.node.listen("10.1.0.11", 998)
    sending = lab.other.popen(
        [PYTHON, "-c", "import socket\ns = socket.create_connection(('10.1.0.11', 998), 30)\n"
         "for _ in range(40): s.sendall(b'x' * 100); import time; time.sleep(0.02)\n"
         "print(int.from_bytes(s.getsockopt(6, 11, 104)[100:104], 'little'))"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    listener.settimeout(30)
    connection, _ = listener.accept()
    said = sending.communicate(timeout=60)[0]
    for one in (listener, connection):
        one.close()
    assert int(said) > 0


def test_a_read_only_disk_refuses_writes_and_its_reads_go_on(lab: Lab):
    lab.node.write_file("/var/log/before", b"kept\n")
    fault = lab.plant("read-only-disk")
    touched = lab.node.run(["touch", "/var/tmp/x", "/var/log/x", "/home/x"], timeout_s=10)
    assert touched.stderr.count("Read-only file system") == 3
    assert lab.node.run(["cat", "/var/log/before"], timeout_s=10).stdout == "kept\n"
    assert lab.node.run(["touch", "/tmp/x", "/run/x"], timeout_s=10).returncode == 0
    assert "Remounting filesystem read-only" in lab.said()[1]
    end([fault])
    assert lab.node.run(["touch", "/var/tmp/x"], timeout_s=10).returncode == 0
    assert lab.ask()[0] == "0"  # what was mounted below is still there


def test_a_full_disk_has_no_room_and_what_was_there_is_there(lab: Lab):
    lab.node.write_file("/var/log/before", b"kept\n")
    fault = lab.plant("disk-full")
    for command in ("dd if=/dev/zero of=/var/tmp/x bs=4096 count=1", "cat /etc/passwd >> /var/log/before"):
        assert "No space left on device" in lab.node.run(["sh", "-c", command], timeout_s=10).stderr
    assert lab.node.run(["df", "--output=pcent", "/var/log"], timeout_s=10).stdout.split()[-1] == "100%"
    assert lab.node.run(["cat", "/var/log/before"], timeout_s=10).stdout == "kept\n"
    end([fault])
    assert lab.node.run(["sh", "-c", "cat /etc/passwd > /var/tmp/x"], timeout_s=10).returncode == 0


def test_a_program_runs_out_of_memory_and_the_kernel_says_so_on_its_node_alone(lab: Lab):
    done = lab.plant("oom")
    assert "exit code 137" in done.detail
    assert any("invoked oom-killer" in line for line in lab.said())
    assert re.search(r"Killed process \d+ \(sh\) total-vm:", lab.said()[-1])
    assert len(lab.other.run(["dmesg"], timeout_s=10).stdout.splitlines()) == 1
    assert not list(Path("/sys/fs/cgroup").glob("**/holdfast-oom-*"))


@pytest.mark.e2e
def test_frozen_and_cut_nodes_come_back_with_their_time(lab: Lab):
    lab.plant("freeze", for_s=1.5)
    assert {proc.state(pid) for pid in proc.members(lab.node.pid)} == {"T"}
    assert within(lambda: lab.now() == [])
    assert lab.node.run(["true"], timeout_s=10).returncode == 0
    cut = lab.plant("cut")
    assert _lost(lab, of=1) == 1
    end([cut])
    assert within(lambda: _lost(lab, of=1) == 0)


def test_a_destroyed_node_can_have_nothing_planted(lab: Lab):
    lab.plant("lossy-link")
    lab.plant("destroy")
    assert not lab.node.alive()
    assert within(lambda: lab.now() == [])
    with pytest.raises(PlantingError, match="is not running, lost or being replaced, so cut was not injected"):
        lab.plant("cut")


def test_what_is_planted_is_planted_once_and_what_cannot_be_leaves_nothing(lab: Lab):
    lab.plant("cut")
    with pytest.raises(PlantingError, match=r"cut is already injected on i-.*; end it with: holdfast inject i-"):
        lab.plant("cut")
    with pytest.raises(PlantingError, match="has GPUs 0 to 7, got GPU 9"):
        lab.plant("gpu-lost", gpu=9)
    lab.node.run(["umount", "--lazy", "/fsx"], timeout_s=10)
    with pytest.raises(PlantingError, match="has nothing mounted at /fsx"):
        lab.plant("stalled-mount")
    assert lab.now() == ["cut"]


def test_a_killed_holder_lets_go_of_whoever_waits(lab: Lab):
    fault = lab.plant("hung-driver")
    asking = lab.node.popen([PYTHON, "-c", ASK, "0"])
    assert within(lambda: "request_wait_answer" in state(lab.node, "python3"))
    os.kill(fault.pid, 9)
    assert asking.wait(10) == 0
    assert within(lambda: lab.now() == [])


def test_down_ends_what_is_planted(lab: Lab):
    for name in ("hung-driver", "stalled-mount", "freeze"):
        lab.plant(name)
    waiting = [lab.node.popen([PYTHON, "-c", ASK, "0"]) for _ in range(2)]
    holders = [one.pid for one in planted(lab.fleet)]
    began = time.monotonic()
    end_all(lab.fleet)
    lab.fleet.close()
    assert time.monotonic() - began < 15.0
    assert all(proc.state(pid) in ("", "Z") for pid in holders)
    for one in waiting:
        one.wait(10)


@pytest.mark.e2e
def test_nvidias_own_client_sees_what_is_planted(lab: Lab, tmp_path: Path):
    folder = tmp_path / "pynvml"
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "nvidia-ml-py==13.615.71"]
    if subprocess.run(command, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip("nvidia-ml-py cannot be installed here")
    text = (folder / "pynvml.py").read_bytes()
    lab.node.write_file("/opt/pynvml.py", text)
    lab.plant("gpu-lost", gpu=5)
    lab.plant("xid-63-pending", gpu=3)
    program = """
import sys; sys.path.insert(0, "/opt")
import pynvml as n
n.nvmlInit()
assert n.nvmlDeviceGetCount() == 8
gpu = n.nvmlDeviceGetHandleByIndex(3)
assert n.nvmlDeviceGetRemappedRows(gpu) == (0, 1, 1, 0)
assert n.nvmlDeviceGetFieldValues(gpu, [n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0].value.uiVal == 0
assert n.nvmlDeviceGetName(gpu) == "NVIDIA H100", n.nvmlDeviceGetName(gpu)
assert n.nvmlDeviceGetPciInfo(gpu).busId == "00000000:86:00.0", n.nvmlDeviceGetPciInfo(gpu).busId
assert n.nvmlDeviceGetMemoryInfo(gpu).total == 81559 << 20
assert [n.nvmlDeviceGetNvLinkState(gpu, link) for link in range(18)] == [1] * 18
try:
    n.nvmlDeviceGetHandleByIndex(5)
except n.NVMLError_GpuIsLost:
    print("lost")
try:
    n.nvmlDeviceGetFanSpeed(gpu)
except n.NVMLError_FunctionNotFound:
    print("no such function")
n.nvmlShutdown()
"""
    done = lab.node.run([PYTHON, "-c", program], timeout_s=30)
    assert (done.returncode, done.stdout) == (0, "lost\nno such function\n"), done.stderr
