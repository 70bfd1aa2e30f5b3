"""What the kernel says, as public reports have it, and what follows from it."""

from pathlib import Path
from typing import Any

import pytest

from holdfast_agent.detectors import gpu_ports
from holdfast_agent.replay import replayed
from holdfast_agent.verdicts import Policy, Recognizer, Record

POLICY = Policy.standard()
XID_79 = "NVRM: Xid (PCI:0000:{}:00): 79, pid=1, name=x, GPU has fallen off the bus."
REMAP = (
    "NVRM: Xid (PCI:0000:9c:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row ({}) marked for remapping, "
    "reset gpu to activate."
)


def words(folder: Path, *lines: str) -> list[dict[str, Any]]:
    (folder / "log").write_text("".join(f"{line}\n" for line in lines))
    return [{**word.as_json(), "news": word.verdict.news} for word in replayed(folder / "log", policy=POLICY)]


def at(seconds: float, text: str) -> str:
    return f"[{seconds:.6f}] {text}"


@pytest.mark.parametrize(("seconds", "remedy"), [(26, "none"), (54, "none"), (82, "reboot"), (7210, "reboot")])
def test_a_cpu_that_is_stuck_for_a_minute_asks_for_a_reboot(tmp_path: Path, seconds: int, remedy: str) -> None:
    line = at(5000, f"watchdog: BUG: soft lockup - CPU#17 stuck for {seconds}s! [mksquashfs:31337]")

    assert [word["remedy"] for word in words(tmp_path, line)] == [remedy]


def test_a_kernel_that_tells_the_same_seconds_each_time_is_believed_after_ten_times(tmp_path: Path) -> None:
    line = "NMI watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:77]"

    found = words(tmp_path, *(at(1000 + 28 * each, line) for each in range(11)))

    assert [word["remedy"] for word in found] == ["none"] * 9 + ["reboot"] * 2


@pytest.mark.parametrize("before", ["watchdog: ", "NMI watchdog: ", "watchdog: CPU6: "])
def test_a_cpu_that_takes_no_interrupts_asks_for_a_reboot(tmp_path: Path, before: str) -> None:
    (word,) = words(tmp_path, at(9, f"{before}Watchdog detected hard LOCKUP on cpu 6"))

    assert (word["fault"], word["remedy"]) == ("soft-lockup", "reboot")


RESET = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from "
    "status @ kernel_channel.c:2874"
)


def test_a_reset_that_is_required_without_an_xid_asks_for_a_reboot(tmp_path: Path) -> None:
    found = words(tmp_path, at(1, RESET), at(20, RESET))

    assert [(word["fault"], word["remedy"], word["news"]) for word in found] == [
        ("gpu-recovery-action", "reboot", True),
        ("gpu-recovery-action", "reboot", False),
    ]


def test_a_reset_that_is_required_belongs_to_the_incident_that_is_open(tmp_path: Path) -> None:
    found = words(tmp_path, at(1, XID_79.format("17")), at(20, RESET))

    assert len({word["incident"] for word in found}) == 1
    assert [word["remedy"] for word in found] == ["replace", "replace"]


def test_the_same_remedy_after_each_reboot_ends_in_another_node(tmp_path: Path) -> None:
    boots = [(at(0, "Linux version 5.15.0"), at(130, REMAP.format(f"0x0000000131c{boot}f000"))) for boot in range(5)]

    found = words(tmp_path, *(line for boot in boots for line in boot))

    assert [word["remedy"] for word in found if not word["withdrawn"]] == ["reboot"] * 3 + ["replace"] * 2


def test_reboots_of_two_gpus_are_not_added_up(tmp_path: Path) -> None:
    boots = [
        (at(0, "Linux version 5.15.0"), at(130, REMAP.format("0x1").replace("9c", f"9{boot % 2}"))) for boot in range(4)
    ]

    found = words(tmp_path, *(line for boot in boots for line in boot))

    assert all(word["remedy"] != "replace" or word["device"] != "0000:9c:00" for word in found)
    assert [word["remedy"] for word in found if not word["withdrawn"]][:2] == ["reboot", "reboot"]


@pytest.mark.parametrize(
    "line",
    [
        "Sep 21 13:33:20 gpu4 kernel[4242]: " + XID_79.format("17"),
        "2026-09-21T13:33:20.000000+00:00 gpu4 kernel[1]: " + XID_79.format("17"),
        "<6>1 2026-09-21T13:33:20Z gpu4 kernel 4242 - - " + XID_79.format("17"),
        "Sep 21 13:33:20 kernel[4242]: " + XID_79.format("17"),
    ],
)
def test_a_program_with_a_number_that_says_it_is_the_kernel_is_not(tmp_path: Path, line: str) -> None:
    assert words(tmp_path, line) == []


@pytest.mark.parametrize(
    "line",
    [
        "Sep 21 13:33:20 gpu4 kernel: " + XID_79.format("17"),
        "<6>1 2026-09-21T13:33:20Z gpu4 kernel - - - " + XID_79.format("17"),
        "10.1.0.19: kern: warning: [2026-04-22T21:30:45.520000000Z]: " + XID_79.format("17"),
        "kern:     err: [2026-04-22T21:30:45Z]: " + XID_79.format("17"),
    ],
)
def test_the_kernel_has_no_number(tmp_path: Path, line: str) -> None:
    (word,) = words(tmp_path, line)

    assert (word["code"], word["remedy"]) == (79, "replace")


def test_each_further_gpu_with_a_verdict_is_news(tmp_path: Path) -> None:
    found = words(tmp_path, *(at(10 + place, XID_79.format(bus)) for place, bus in enumerate(["17", "18", "17"])))

    assert len({word["incident"] for word in found}) == 1
    assert [word["news"] for word in found] == [True, True, False]


PORTS = {"0000:64:01.0": "0000:65:00.0"}


@pytest.mark.parametrize(
    ("text", "condition", "device"),
    [
        ("nvidia 0000:65:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
         "gpu-link-error", "0000:65:00.0"),
        ("pcieport 0000:64:01.0: AER: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer",
         "gpu-link-error", "0000:65:00.0"),
        ("nvidia 0000:65:00.0: AER: can't recover (no error_detected callback)", "gpu-link-error", "0000:65:00.0"),
        ("pcieport 0000:64:01.0: AER: device recovery failed", "gpu-link-error", "0000:65:00.0"),
        ("pcieport 0000:64:01.0: AER: Device recovery failed", "gpu-link-error", "0000:65:00.0"),
        ("pcieport 0000:00:1c.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
         "hardware-notice", "0000:00:1c.0"),
        ("nvidia 0000:65:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
         "hardware-notice", "0000:65:00.0"),
        ("pcieport 0000:64:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
         "hardware-notice", "0000:65:00.0"),
        ("nvme 0000:10:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer", "hardware-notice",
         "0000:10:00.0"),
    ],
)  # fmt: skip
def test_a_fatal_error_of_a_gpu_or_of_its_port_is_the_gpus(text: str, condition: str, device: str) -> None:
    (signal,) = Recognizer(gpu_ports=PORTS).read(Record(text=text, boot_s=1.0, time_ns=0, line=1))

    assert (signal.condition, signal.device) == (condition, device)
    assert POLICY.row(signal).remedy.value == ("reboot" if condition == "gpu-link-error" else "none")


def test_ports_are_those_that_lead_to_one_gpu_alone(tmp_path: Path) -> None:
    real, listed = tmp_path / "pci0000:60", tmp_path / "devices"
    listed.mkdir()
    for place, vendor in (("a/0000:64:01.0/0000:65:00.0", "0x10de"), ("a/0000:64:02.0/0000:66:00.0", "0x10de"),
                          ("a/0000:64:03.0/0000:67:00.0", "0x1d0f")):  # fmt: skip
        device = real / place.replace("a/", "0000:60:01.0/")
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text("0x030200\n")
        (listed / device.name).symlink_to(device)

    assert gpu_ports(listed) == {"0000:64:01.0": "0000:65:00.0", "0000:64:02.0": "0000:66:00.0"}
    assert gpu_ports(tmp_path / "absent") == {}


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("efa 0000:00:1e.0 rdmap0s30: Failed to process command CREATE_QP (opcode 1) comp_status 7 err -12", False),
        ("infiniband rdmap0s30: Failed to process command REG_MR (opcode 7) err -62", True),
        ("efa 0000:00:1e.0 rdmap0s30: Failed to process command DESTROY_QP (opcode 4) comp_status 0 err -62", True),
        ("efa 0000:00:1e.0 rdmap0s30: Failed to submit command REG_MR (opcode 7) err -19", True),
        ("infiniband rdmap0s30: Failed to submit command CREATE_AH (opcode 5) err -ENODEV", True),
    ],
)
def test_a_fabric_device_that_gives_no_answer_is_checked(text: str, check: bool) -> None:
    (signal,) = Recognizer().read(Record(text=text, boot_s=1.0, time_ns=0, line=1))

    assert (signal.condition, signal.device) == ("fabric-command-failed", "rdmap0s30")
    assert POLICY.row(signal).check is check


def signals(text: str) -> list[str]:
    return [one.condition for one in Recognizer().read(Record(text=text, boot_s=1.0, time_ns=0, line=1))]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (REMAP.format("0x1").replace("name=<unknown>", "name=full-finetune"), "gpu-remap-pending"),
        ("NVRM: Xid (PCI:0000:9c:00): 71, pid=4242, name=nvlink_bench, Ch 00000012, intr 00000000. CE4 fault",
         "gpu-application-error"),
        ("NVRM: Xid (PCI:0000:9c:00): 145, pid=9, name=fatal, RLW_SRC_TRACK XC1 i0 Link 11 (0x00000020)",
         "gpu-notice"),
    ],
)  # fmt: skip
def test_the_name_of_a_process_is_not_the_text_of_an_xid(tmp_path: Path, text: str, fault: str) -> None:
    assert [word["fault"] for word in words(tmp_path, at(1, text))] == [fault]


def test_a_process_named_threshold_is_no_reason_to_replace_its_node(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:9c:00): 48, pid=77, name=threshold_sweep, DBE (double bit error) ECC Error on GPU"

    assert [word["remedy"] for word in words(tmp_path, at(1, line))] == ["reboot"]


SEGFAULT = "{}[4242]: segfault at 0 ip 00005566778899aa sp 00007ffc11223344 error 4 in {}[556677880000+1000]"


@pytest.mark.parametrize(
    "text",
    [
        SEGFAULT.format("python3", "Remounting filesystem read-only"),
        SEGFAULT.format("python3", "BUG: soft lockup - CPU#1 stuck for 99s! [y]"),
        SEGFAULT.format("NVRM: x", "uvm encountered global fatal error, requiring os reboot"),
        SEGFAULT.format("NVRM: x", "[NV_ERR_RESET_REQUIRED]"),
        SEGFAULT.format("LustreError: x", "LBUG"),
        SEGFAULT.format("x", "a\n" + XID_79.format("17")),
        "traps: x[4242] trap invalid opcode ip:556677889900 sp:7ffc11223344 error:0 in NEURON_HW_ERR=DMA_ERROR[5566+1]",
        "process '/home/user/detected NVSwitch fatal error 1 on x pci bus id 0:6:0' started with executable stack",
        "Tasks in /user/a\n" + XID_79.format("17") + " are going to be killed due to memory.oom.group set",
        "Tasks in /user/Remounting filesystem read-only are going to be killed due to memory.oom.group set",
    ],
)
def test_the_name_of_a_users_file_or_thread_asks_for_nothing(text: str) -> None:
    seen = Recognizer().read(Record(text=text, boot_s=1.0, time_ns=0, line=1))

    assert {POLICY.row(signal).remedy.value for signal in seen} <= {"none"}


def test_a_crash_inside_nccl_is_read() -> None:
    assert signals(SEGFAULT.format("python3", "libnccl.so.2.21.5")) == ["library-crashed"]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("critical medium error, dev nvme1n1, sector 87084872 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0",
         "disk-error"),
        ("blk_update_request: critical space allocation error, dev nvme1n1, sector 2048 op 0x1:(WRITE)", "disk-error"),
        ("device offline error, dev nvme1n1, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 0",
         "disk-error"),
        ("Buffer I/O error on dev nvme1n1p1, logical block 1057, lost async page write", "disk-error"),
        ("nvme nvme1: Removing after probe failure status: -19", "disk-error"),
        ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 12-...D } 21003 jiffies s: 1025",
         "soft-lockup"),
        ("BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 35s!", "kernel-error"),
        ("INFO: task jbd2/nvme1n1p1-:443 blocked in I/O wait for more than 122 seconds.", "task-hung"),
        ("Memory failure: 0x3f2a1b: recovery action for dirty LRU page: Recovered", "hardware-notice"),
    ],
)  # fmt: skip
def test_each_form_of_a_message_is_read(text: str, condition: str) -> None:
    assert signals(text) == [condition]
