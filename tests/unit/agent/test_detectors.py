"""What each detector sees in files and answers as they really are, and that what a node does not have is no fault."""

import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from agent_parts import BOOTED_NS, ScriptedChild, instant, looks, told
from waiting import eventually

from holdfast_agent.detectors import (
    Checks,
    Clock,
    Detector,
    Disks,
    Hma,
    Instant,
    KernelLog,
    Links,
    Mounts,
    Nvml,
    Slurmd,
    StuckProcesses,
    Support,
    probing,
)
from holdfast_agent.fabric import Ports, read_tree
from holdfast_agent.hma import parse_finding
from holdfast_agent.signals import Signal, conditions
from holdfast_common import fault_named

XID = "NVRM: Xid (PCI:0000:05:00): 79, pid=1, name=python, GPU has fallen off the bus."
RECORDED_TREE = Path(__file__).parents[4] / "shared/cases/health/gpud/sys-class-infiniband-h100.0.tar.gz"


def test_every_condition_is_a_fault_of_the_taxonomy() -> None:
    assert [fault_named(name).name for name in conditions.CONDITIONS] == list(conditions.CONDITIONS)


# --- what all have in common


class Scripted(Detector):
    name = "scripted"

    def __init__(self) -> None:
        super().__init__()
        self.now: tuple[str, ...] = ()

    def look(self, at: Instant) -> Any:
        return self.holding(at, tuple(self.signal(at, "mount-stalled", "stuck", device=one) for one in self.now))


def test_what_goes_on_is_told_once_a_minute_and_its_end_once() -> None:
    detector = Scripted()
    detector.now = ("/fsx",)
    seen = looks(detector, range(61))
    assert told(seen) == [("mount-stalled", "/fsx", False)] * 2
    detector.now = ()
    assert told(looks(detector, [61, 62])) == [("mount-stalled", "/fsx", True)]


def test_what_ended_while_no_agent_ran_is_told_to_be_over() -> None:
    detector = Scripted()
    detector.now = ("/fsx",)
    looks(detector, [1])
    again = Scripted()
    again.restore(json.loads(json.dumps(detector.remember())))
    assert told(looks(again, [2])) == [("mount-stalled", "/fsx", True)]


# --- kernel log


def test_a_line_of_a_file_is_a_signal_when_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.touch()
    detector = KernelLog(str(path))
    assert looks(detector, [100.0]) == []
    path.write_text(f"Nov 23 03:00:00 ip-10-1-0-1 kernel: {XID}\n")
    (seen,) = looks(detector, [101.0])
    assert isinstance(seen, Signal)
    assert (seen.condition, seen.code, seen.boot_s) == ("xid", 79, 101.0)
    detector.close()


def test_lines_of_an_earlier_boot_accuse_nobody(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    before, after = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(BOOTED_NS / 1e9 + by_s)) for by_s in (-600, 50))
    path.write_text(f"{before}+00:00 host kernel: {XID}\n{after}+00:00 host kernel: {XID}\n")
    detector = KernelLog(str(path))
    (seen,) = looks(detector, [100.0])
    assert isinstance(seen, Signal)
    assert seen.boot_s == pytest.approx(50.0)
    detector.close()


def test_what_another_program_wrote_over_two_lines_is_not_the_kernels(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_text(f"Nov 23 03:00:00 host logger: nothing\n {XID}\n")
    detector = KernelLog(str(path))
    assert looks(detector, [1.0]) == []
    detector.close()


def test_an_absent_log_is_not_supported_until_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    detector = KernelLog(str(path))
    assert looks(detector, [1.0]) == []
    assert detector.support is Support.NO
    assert "No such file" in detector.reason
    path.write_text(f"4,1,900000,-;{XID}\n")
    assert told(looks(detector, [3.0])) == [("xid", "0000:05:00", False)]
    assert detector.support is Support.YES
    detector.close()


def test_a_restarted_agent_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(f"4,1,900000,-;{XID}\n")
    detector = KernelLog(str(path))
    assert len(looks(detector, [2.0])) == 1
    again = KernelLog(str(path))
    again.restore(json.loads(json.dumps(detector.remember())))
    assert looks(again, [3.0]) == []
    detector.close()
    again.close()


# --- NVML


def gpu(index: int, **given: Any) -> dict[str, Any]:
    return {"index": index, "pci": f"0000:{0x53 + 0x11 * index:02x}:00.0", **given}


def node_of(*gpus: dict[str, Any]) -> dict[str, Any]:
    return {"driver": "580", "count": len(gpus), "gpus": list(gpus)}


class Driver:
    """An NVML detector, and what the driver says to it at each look."""

    def __init__(self, **given: Any) -> None:
        self.child = ScriptedChild()
        self.nvml = Nvml(library="libnvidia-ml.so.1", child=self.child, **given)
        self.time_s = 1000.0

    def says(self, answer: Any, *, for_s: float = 5.0) -> list[tuple[str, str, bool]]:
        self.child.answer = answer
        return told(self.seen(for_s))

    def seen(self, for_s: float) -> list[Any]:
        seen = []
        for _ in range(int(for_s * 2)):
            self.time_s += 0.5
            seen += self.nvml.look(instant(self.time_s))
        return seen


def test_healthy_gpus_and_power_caps_are_no_signals() -> None:
    driver = Driver()
    assert (
        driver.says(node_of(*(gpu(n, remapped=[2, 1, 0, 0], clocks=0x4, ecc=[3, 0]) for n in range(8))), for_s=300)
        == []
    )
    assert driver.nvml.support is Support.YES


def test_a_node_without_nvml_is_not_supported() -> None:
    driver = Driver()
    assert driver.says({"absent": "no library"}) == []
    assert driver.nvml.support is Support.NO


def test_a_count_is_not_believed_for_two_minutes() -> None:
    driver = Driver(expected=8)
    assert driver.says(node_of(), for_s=110) == []
    assert driver.says(node_of(), for_s=30) == [("gpu-count-wrong", "", False)]
    assert driver.says(node_of(*map(gpu, range(8)))) == [("gpu-count-wrong", "", True)]


def test_fewer_gpus_than_before_are_missed() -> None:
    driver = Driver()
    driver.says(node_of(*map(gpu, range(8))), for_s=130)
    assert driver.says(node_of(*map(gpu, range(7))), for_s=10) == [("gpu-count-wrong", "", False)]


def test_a_count_that_stands_alone_is_a_lie_whether_it_is_less_or_more() -> None:
    driver = Driver()
    eight = node_of(*map(gpu, range(8)))
    driver.says(eight, for_s=130)
    for lie in (node_of(*map(gpu, range(7))), node_of(), node_of(*map(gpu, range(9)))):
        assert driver.says(lie) == []
        assert driver.says(eight, for_s=300) == []


def test_a_driver_that_goes_away_is_a_fault_once_it_stays_away_and_none_where_it_never_was() -> None:
    driver = Driver()
    driver.says(node_of(gpu(0), gpu(1)), for_s=130)
    assert driver.says({"failed": 9, "text": "driver not loaded"}) == []
    assert driver.says(node_of(gpu(0), gpu(1)), for_s=130) == []
    assert driver.says({"absent": "no library"}, for_s=110) == []
    assert driver.says({"absent": "no library"}, for_s=20) == [("gpu-count-wrong", "", False)]
    assert driver.says(node_of(gpu(0), gpu(1))) == [("gpu-count-wrong", "", True)]
    never = Driver()
    assert never.says({"failed": 9, "text": "driver not loaded"}, for_s=300) == []
    assert never.nvml.support is Support.NO


def test_flags_of_the_driver_are_told_and_taken_back() -> None:
    driver = Driver()
    flagged = node_of(gpu(0, remapped=[0, 1, 1, 0]), gpu(1, remapped=[0, 0, 0, 1]), gpu(2, recovery=2))
    assert driver.says(flagged) == [
        ("gpu-remap-pending", "0000:53:00.0", False),
        ("gpu-remap-failed", "0000:64:00.0", False),
        ("gpu-recovery-action", "0000:75:00.0", False),
    ]
    taken_back = driver.says(node_of(*map(gpu, range(3))), for_s=6)
    assert [over for _, _, over in taken_back] == [True] * 3


def test_a_lost_gpu_is_named_by_the_address_that_it_had() -> None:
    driver = Driver()
    driver.says(node_of(gpu(0), gpu(1)))
    lost = {"index": 1, "error": 15, "lost": True}
    assert driver.says(node_of(gpu(0), lost)) == [("gpu-lost", "0000:64:00.0", False)]


def test_memory_errors_count_from_the_first_look() -> None:
    driver = Driver()
    assert driver.says(node_of(gpu(0, ecc=[90_000, 0])), for_s=10) == []
    assert driver.says(node_of(gpu(0, ecc=[90_090, 0]))) == []
    assert driver.says(node_of(gpu(0, ecc=[90_150, 0]))) == [("gpu-ecc-rate", "0000:53:00.0", False)]


def test_a_driver_that_was_loaded_again_counts_from_nothing() -> None:
    driver = Driver()
    driver.says(node_of(gpu(0, ecc=[90_000, 0])))
    assert driver.says(node_of(gpu(0, ecc=[5, 0])), for_s=10) == []
    assert driver.says(node_of(gpu(0, ecc=[80, 0])), for_s=10) == []


def test_links_that_never_were_are_not_missed() -> None:
    driver = Driver()
    assert driver.says(node_of(gpu(0, links=[1, 1, 0])), for_s=70) == []
    assert driver.says(node_of(gpu(0, links=[1, 0, 0])), for_s=30) == [("nvlink-error", "0000:53:00.0", False)]


def test_a_fabric_in_progress_is_no_fault_and_a_failed_one_is() -> None:
    driver = Driver()
    assert driver.says(node_of(gpu(0, links=None, fabric=[2, 0])), for_s=40) == []
    assert driver.says(node_of(gpu(0, links=None, fabric=[3, 999])), for_s=40) == [
        ("fabric-manager-down", "0000:53:00.0", False)
    ]


def test_clocks_have_to_be_held_down_for_two_minutes() -> None:
    driver = Driver()
    assert driver.says(node_of(gpu(0, clocks=0x40)), for_s=100) == []
    assert driver.says(node_of(gpu(0, clocks=0x40)), for_s=30) == [("gpu-clocks-slowed", "0000:53:00.0", False)]


def test_a_driver_that_does_not_answer_is_told_within_its_deadline_and_asked_no_more() -> None:
    driver = Driver()
    driver.says(node_of(gpu(0)), for_s=20)
    asked = len(driver.child.asked)
    assert driver.says(None, for_s=15) == [("driver-hung", "", False)]
    assert len(driver.child.asked) == asked + 1
    assert driver.nvml.hung == 1
    assert driver.says(node_of(gpu(0)), for_s=1) == [("driver-hung", "", True)]


def test_a_driver_that_wakes_its_gpus_has_a_minute() -> None:
    driver = Driver()
    driver.child.phase = "nvmlInit"
    assert driver.says(None, for_s=55) == []
    assert driver.says(None, for_s=10) == [("driver-hung", "", False)]


def test_an_agent_that_was_stopped_for_an_hour_accuses_no_driver() -> None:
    driver = Driver()
    driver.says(node_of(gpu(0)), for_s=20)
    driver.child.answer = None
    driver.seen(5.0)
    driver.time_s += 3600.0
    assert told(driver.seen(1.0)) == []


# --- fabric


def port(**given: Any) -> dict[str, Any]:
    return {"state": "ACTIVE", "physical": "LinkUp", "rate": "100 Gb/sec", "layer": "EFA", "counters": {}, **given}


def devices(*ports: dict[str, Any], kind: str = "efa 0xefa2") -> dict[str, Any]:
    return {f"rdmap{n}": {"kind": kind, "ports": {"1": one}} for n, one in enumerate(ports)}


def found(ports: Ports, tree: dict[str, Any], time_s: float) -> list[tuple[str, str]]:
    return [(one.condition, one.device) for one in ports.look(tree, time_s)]


def test_what_a_counter_holds_at_the_first_look_is_no_rate() -> None:
    ports = Ports()
    large = devices(port(counters={"retrans_pkts": 10**12, "rx_drops": 10**9, "link_downed": 255}))
    assert [found(ports, large, time_s) for time_s in (10.0, 20.0, 30.0)] == [[], [], []]


def test_a_counter_that_grows_fast_is_told_when_two_looks_agree() -> None:
    ports = Ports()
    at = [found(ports, devices(port(counters={"retrans_pkts": 20_000 * n})), 10.0 * n) for n in range(5)]
    assert at == [[], [], *[[("FABRIC_ERRORS", "rdmap0/1")]] * 3]


def test_a_driver_that_counts_from_nothing_again_has_no_errors() -> None:
    ports = Ports()
    values = (10**9, 10**9, 5, 5, 6)
    assert not any(
        found(ports, devices(port(counters={"rx_drops": value})), 10.0 * n) for n, value in enumerate(values)
    )


def test_a_port_that_was_never_up_is_no_fault_and_one_that_was_is() -> None:
    ports = Ports()
    down = port(state="DOWN", physical="Polling")
    assert [found(ports, devices(down), n) for n in range(3)] == [[], [], []]
    found(ports, devices(port()), 4)
    assert [found(ports, devices(down), n) for n in (5, 6)] == [[], [("FABRIC_LINK_DOWN", "rdmap0/1")]]
    assert found(ports, {}, 7) == [("FABRIC_LINK_DOWN", "rdmap0/1")]
    assert found(ports, devices(port()), 8) == []


def test_a_port_that_goes_down_again_and_again_flaps() -> None:
    ports = Ports()
    told_at = [bool(found(ports, devices(port(counters={"link_downed": 10 + n})), 600.0 * n)) for n in range(6)]
    assert told_at == [False, False, False, False, True, True]


def test_one_port_unlike_its_kind_is_told() -> None:
    ports = Ports()
    slow = devices(port(), port(), port(rate="50 Gb/sec"), port())
    assert [found(ports, slow, n) for n in (1, 2)] == [[], [("FABRIC_UNEVEN", "rdmap2/1")]]
    assert found(Ports(), devices(port(), port(rate="50 Gb/sec")), 2) == []


@pytest.mark.skipif(not RECORDED_TREE.exists(), reason="the recordings are not beside this checkout")
def test_the_tree_of_a_healthy_host_is_read_and_says_nothing(tmp_path: Path) -> None:
    with tarfile.open(RECORDED_TREE) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = read_tree({"root": str(tmp_path / "sys-class-infiniband-h100.0")}, lambda _: None)
    assert len(tree) == 9
    assert tree["mlx5_1"]["ports"]["1"]["counters"]["link_downed"] == 255
    ports = Ports()
    assert [ports.look(tree, time_s) for time_s in (0.0, 10.0, 20.0)] == [(), (), ()]


# --- mounts and disks


def mountinfo(tmp_path: Path, *rows: str) -> str:
    path = tmp_path / "mountinfo"
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def looked(detector: Detector, *, until: int = 0) -> list[Any]:
    """Until every child has answered."""
    seen: list[Any] = []

    def done() -> bool:
        clock = Instant(boot_s=time.clock_gettime(time.CLOCK_BOOTTIME), time_ns=time.time_ns())
        seen.extend(detector.look(clock))
        return detector.support is not Support.UNKNOWN and not detector.asking() and len(seen) >= until

    eventually(done, "its answers")
    return seen


def test_a_writable_mount_is_written_and_nothing_stays(tmp_path: Path) -> None:
    detector = Mounts(paths=[str(tmp_path)], node="i-1", mountinfo=mountinfo(tmp_path))
    assert looked(detector) == []
    detector.close()
    assert [path.name for path in tmp_path.iterdir()] == ["mountinfo"]


def test_shared_file_systems_are_found_by_kind_and_fsx_by_name(tmp_path: Path) -> None:
    table = mountinfo(
        tmp_path,
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        "2 1 0:50 / /shared rw - lustre 10.0.0.1@tcp:/fsx rw",
        "3 1 8:1 /export /fsx rw - ext4 /dev/sda1 rw",
        "4 1 0:51 / /home\\040two rw - nfs4 10.0.0.2:/home rw",
        "5 1 0:52 / /s3 rw - fuse mount-s3 rw",
    )
    chosen = Mounts(node="i-1", mountinfo=table).chosen(probing.mounts(Path(table).read_text()))
    assert sorted(chosen) == ["/fsx", "/home two", "/shared"]


def test_a_disk_that_is_mounted_twice_is_tried_once(tmp_path: Path) -> None:
    rows = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
        f"2 1 8:2 / {tmp_path} rw - xfs /dev/sdb rw",
        f"3 1 8:2 / {tmp_path}/x rw - xfs /dev/sdb rw",
    )
    chosen = Disks(node="i-1").chosen(probing.mounts("\n".join(rows)))
    assert chosen == {"/": "/var/tmp", str(tmp_path): str(tmp_path)}


def test_no_shared_file_system_is_not_supported(tmp_path: Path) -> None:
    detector = Mounts(node="i-1", mountinfo=mountinfo(tmp_path, "1 0 8:1 / / rw - ext4 /dev/sda1 rw"))
    assert looked(detector) == []
    assert detector.support is Support.NO


def test_a_mount_that_is_gone_is_told_when_two_looks_agree(tmp_path: Path) -> None:
    detector = Mounts(paths=[str(tmp_path / "none")], node="i-1")
    detector.interval_s = 0.05
    assert told(looked(detector, until=1))[0] == ("filesystem-error", str(tmp_path / "none"), False)
    detector.close()


# --- clock, links, slurmd, processes


def test_a_clock_that_jumps_is_told_once() -> None:
    detector = Clock()
    looks(detector, [10.0, 40.0])
    jumped = detector.look(Instant(boot_s=70.0, time_ns=BOOTED_NS + int(70e9) + 3_600_000_000_000))
    assert [one.facts.get("by_s") for one in jumped if isinstance(one, Signal)] == [3600.0]
    after = detector.look(Instant(boot_s=100.0, time_ns=BOOTED_NS + int(100e9) + 3_600_000_000_000))
    assert after == ()


@pytest.mark.parametrize(
    ("skew_s", "evidence"),
    [(3599.8, "the clock is 3600 s behind AWS's"), (-3600.2, "the clock is 3600 s ahead of AWS's")],
)
def test_a_clock_that_aws_contradicts_is_a_fault_also_where_no_service_keeps_it(
    monkeypatch: pytest.MonkeyPatch, skew_s: float, evidence: str
) -> None:
    monkeypatch.setattr("holdfast_agent.detectors.clock.kernel_clock", lambda: (0x40, 0.5))
    skew = [0.2]
    detector = Clock(skew_s=lambda: skew[0])
    assert looks(detector, [10.0]) == []
    skew[0] = skew_s
    found = looks(detector, [40.0, 70.0])
    assert [one.evidence for one in found if isinstance(one, Signal)] == [evidence]
    skew[0] = 0.0
    assert told(looks(detector, [100.0])) == [("clock-wrong", "", True)]


@pytest.mark.parametrize(("kept_before", "expected"), [(True, [("clock-wrong", "", False)]), (False, [])])
def test_nobody_keeping_the_clock_is_a_fault_only_where_somebody_did(
    monkeypatch: pytest.MonkeyPatch, kept_before: bool, expected: list[Any]
) -> None:
    state = {"status": 0 if kept_before else 0x40}
    monkeypatch.setattr("holdfast_agent.detectors.clock.kernel_clock", lambda: (state["status"], 0.5))
    detector = Clock()
    looks(detector, [1.0])
    state["status"] = 0x40
    assert told(looks(detector, [31.0])) == expected


def snmp(path: Path, sent: int, again: int) -> None:
    path.write_text(f"Tcp: InSegs OutSegs RetransSegs\nTcp: 1 {sent} {again}\n")


def test_a_share_of_segments_sent_again_is_told_when_three_looks_agree(tmp_path: Path) -> None:
    path = tmp_path / "snmp"
    detector = Links(path=str(path))
    seen = []
    for number in range(8):
        snmp(path, 10_000 + 1000 * number, 5_000_000 + 200 * number)
        seen.append(told(looks(detector, [5.0 * number])))
    assert seen[:3] == [[], [], []]
    assert seen[3] == [("fabric-errors", "tcp", False)]
    for number in range(8, 16):
        snmp(path, 10_000 + 1000 * number, 5_001_400)
        seen.append(told(looks(detector, [5.0 * number])))
    assert ("fabric-errors", "tcp", True) in [one for some in seen for one in some]


def test_an_idle_node_that_sends_a_segment_again_is_no_lossy_link(tmp_path: Path) -> None:
    path = tmp_path / "snmp"
    detector = Links(path=str(path))
    for number in range(10):
        snmp(path, 10 + 4 * number, 2 * number)
        assert told(looks(detector, [5.0 * number])) == []


def process(root: Path, pid: int, name: str, state: str, *, pending: str = "0") -> None:
    (root / str(pid)).mkdir(exist_ok=True)
    (root / str(pid) / "stat").write_text(f"{pid} ({name}) {state} 1 1 1 0\n")
    (root / str(pid) / "status").write_text(f"Name:\t{name}\nSigPnd:\t0000\nShdPnd:\t{pending}\n")
    (root / str(pid) / "wchan").write_text("fanotify_handle_event")


def test_only_a_process_that_cannot_be_killed_for_a_minute_is_told(tmp_path: Path) -> None:
    process(tmp_path, 7, "busy (x) D ", "R")
    process(tmp_path, 8, "waits", "D")
    process(tmp_path, 9, "python", "D", pending="0000000000000100")
    process(tmp_path, 10, "ours", "D", pending="0000000000000100")
    detector = StuckProcesses(own=lambda: frozenset({10}), root=str(tmp_path))
    assert told(looks(detector, range(0, 60, 10))) == []
    assert told(looks(detector, [60])) == [("process-unkillable", "python[9]", False)]
    process(tmp_path, 9, "python", "Z")
    assert told(looks(detector, [70])) == [("process-unkillable", "python[9]", True)]


def test_a_node_that_never_had_a_slurmd_misses_none(tmp_path: Path) -> None:
    detector = Slurmd(root=str(tmp_path), ask=("/bin/true",))
    assert looks(detector, range(0, 120, 15)) == []
    assert detector.support is Support.NO


@pytest.mark.parametrize("state", ["gone", "T"])
def test_a_slurmd_that_is_gone_or_stopped_is_told_when_two_looks_agree(tmp_path: Path, state: str) -> None:
    process(tmp_path, 5, "slurmstepd", "S")
    process(tmp_path, 7, "slurmd", "S")
    detector = Slurmd(root=str(tmp_path), ask=("/bin/true",))
    assert looks(detector, [0.0, 15.0]) == []
    process(tmp_path, 7, "other" if state == "gone" else "slurmd", "S" if state == "gone" else state)
    assert told(looks(detector, [30.0])) == []
    assert told(looks(detector, [45.0])) == [("slurm-daemon-down", "", False)]
    process(tmp_path, 8, "slurmd", "S")
    assert told(looks(detector, [60.0])) == [("slurm-daemon-down", "", True)]
    detector.close()


# --- HMA


HMA = [
    (
        '{"level":"info","msg":"NPD caught event: %v","details: ":'
        '{"severity":"warn","reason":"XidHardwareFailure","message":'
        '"Node condition NvidiaErrorReboot is now: True, reason: XidHardwareFailure, message: '
        '\\"NVRM: Xid (PCI:0000:b9:00): 71, pid=<unknown>, name=<unknown>, NVLink: fatal error\\""},'
        '"HealthMonitoringAgentDetectionEvent":"HealthEvent"}',
        ("NPD caught event", "XidHardwareFailure", "reboot", 71, "0000:b9:00"),
    ),
    (
        '{"level":"info","ts":"2026-07-20T22:53:17Z","msg":"DCGM Policy Violation found ","condition: ":"XID Error",'
        '"data: ":{"ErrNum":79},"HealthMonitoringAgentDetectionEvent":"HealthEvent"}',
        ("XID Error", "DCGM Policy Violation found", "", 79, ""),
    ),
    (
        '{"Event detail":{"Action":"replace","Type":"NvidiaGPUUnhealthy","Reason":'
        '"NvidiaGpuXidErrorPendingReplacement","Message":"NVRM: Xid (PCI:0000:05:00): 79, pid=1"},'
        '"HealthMonitoringAgentDetectionEvent":"HealthEvent"}',
        ("NvidiaGPUUnhealthy", "NvidiaGpuXidErrorPendingReplacement", "replace", 79, "0000:05:00"),
    ),
    (
        '{"msg":"NPD caught positive condition","condition details":{"type":"NvidiaErrorReboot","status":"True"}}',
        ("NvidiaErrorReboot", "", "reboot", None, ""),
    ),
]


@pytest.mark.parametrize(("line", "expected"), HMA)
def test_each_shape_of_hmas_records_is_a_finding(line: str, expected: tuple[Any, ...]) -> None:
    finding = parse_finding(line)
    assert finding is not None
    assert (finding.type, finding.reason, finding.action, finding.code, finding.device) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "HealthMonitoringAgentDetectionEvent",
        '["HealthMonitoringAgentDetectionEvent"]',
        '{"msg":"NPD caught positive condition","condition details":{"type":"NvidiaErrorReboot","status":"False"}}',
        '{"level":"info","msg":"health check passed"}',
    ],
)
def test_other_records_of_hma_are_none(line: str) -> None:
    assert parse_finding(line) is None


def test_findings_from_before_the_agent_are_not_told_again(tmp_path: Path) -> None:
    path = tmp_path / "hma.log"
    path.write_text(HMA[0][0] + "\n")
    detector = Hma(path=str(path))
    assert looks(detector, [1.0]) == []
    with path.open("a") as file:
        file.write(HMA[1][0] + "\n")
    (seen,) = looks(detector, [6.0])
    assert isinstance(seen, Signal)
    assert (seen.condition, seen.code) == ("hma-finding", 79)
    detector.close()


# --- custom checks


def executable(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_check_finds_or_not_by_its_exit_code(tmp_path: Path) -> None:
    executable(tmp_path / "sound", "exit 0")
    executable(tmp_path / "unsure", "exit 2")
    executable(tmp_path / "fan", 'echo \'{"message": "fan 3 stands still", "remedy": "replace"}\'; exit 1')
    detector = Checks(directory=str(tmp_path))
    (seen,) = looked(detector, until=1)
    assert (seen.condition, seen.device, seen.facts) == ("check-failed", "fan", {"check": "fan", "remedy": "replace"})
    assert seen.evidence == "check fan: fan 3 stands still"
    assert detector.reason == "unsure: reported no result"
    detector.close()


def test_wrong_checks_are_refused_with_their_reasons_and_the_others_run(tmp_path: Path) -> None:
    executable(tmp_path / "found", "echo bad; exit 1")
    executable(tmp_path / "odd", "exit 7")
    executable(tmp_path / "boasts", 'echo \'{"remedy": "explode"}\'; exit 1')
    executable(tmp_path / "open", "exit 1")
    (tmp_path / "open").chmod(0o777)
    executable(tmp_path / "hasty", "exit 1")
    (tmp_path / "hasty.json").write_text('{"interval_s": -1}')
    (tmp_path / "text").write_text("no program")
    (tmp_path / "folder").mkdir()
    detector = Checks(directory=str(tmp_path))
    seen = looked(detector, until=2)
    assert sorted((one.device, dict(one.facts)) for one in seen) == [
        ("boasts", {"check": "boasts"}),
        ("found", {"check": "found"}),
    ]
    for name, reason in {
        "boasts": "output ignored: remedy is 'explode'; allowed are none",
        "folder": "is not a file",
        "hasty": "hasty.json: interval_s is -1; allowed are interval_s and deadline_s",
        "odd": "ended with exit code 7; allowed: 0, 1, 2",
        "open": "writable by users other than root",
        "text": "not executable",
    }.items():
        assert f"{name}: {reason}" in detector.reason
    detector.close()


def test_a_check_that_hangs_is_ended_and_says_nothing_about_the_node(tmp_path: Path) -> None:
    executable(tmp_path / "slow", "sleep 600")
    (tmp_path / "slow.json").write_text('{"deadline_s": 0.2}')
    detector = Checks(directory=str(tmp_path))
    assert looked(detector) == []
    assert detector.reason == "slow: did not end within 0.2 s"
    detector.close()


def test_a_folder_that_is_not_there_is_not_supported(tmp_path: Path) -> None:
    for directory in ("", str(tmp_path / "none")):
        detector = Checks(directory=directory)
        assert looks(detector, [1.0]) == []
        assert detector.support is Support.NO
