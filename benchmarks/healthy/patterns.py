"""What happens on healthy nodes, how often, and where that is known from. Rates are guesses, set high on purpose."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

Message = tuple[float, str]
"""Seconds after the start of the pattern, and the kernel's text; ``program: text`` after a tab: another program."""
GPUS = tuple(f"0000:{bus:02x}:00" for bus in (0x10, 0x20, 0x38, 0x5A, 0x8B, 0x9B, 0xA0, 0xB9))
UNKNOWN = "pid='<unknown>', name=<unknown>"


@dataclass(frozen=True)
class Pattern:
    name: str
    source: str
    hours_between: float
    """Mean hours from one to the next, on one node."""
    lines: Callable[[Random], Iterator[Message]]


def _pid(chance: Random) -> int:
    return chance.randrange(2_000, 4_000_000)


def _xid(gpu: str, code: int, text: str) -> str:
    return f"NVRM: Xid (PCI:{gpu}): {code}, {text}"


def crash_in_a_kernel(chance: Random) -> Iterator[Message]:
    gpu, pid = chance.choice(GPUS), _pid(chance)
    for number in range(16):
        unit = f"(GPC {number % 10}, TPC {number % 6}, SM {number % 2})"
        yield number / 1e4, _xid(gpu, 13, f"{UNKNOWN}, Graphics SM Warp Exception on {unit}: Out Of Range Address")
    yield 0.004, _xid(gpu, 43, f"pid={pid}, name=pt_main_thread, Ch 00000008")


def page_fault_of_a_job(chance: Random) -> Iterator[Message]:
    pid = _pid(chance)
    yield 0.0, _xid(chance.choice(GPUS), 31, f"pid={pid}, name=python3, Ch 00000010, intr 00000000. MMU Fault")
    for number in range(64):
        yield 0.5 + number / 100, _xid(GPUS[number % 8], 45, f"pid={pid + number % 8}, name=python3, Ch {number:08x}")


def job_that_is_started_again(chance: Random) -> Iterator[Message]:
    gpu, pid = chance.choice(GPUS), _pid(chance)
    for attempt in range(5):
        yield attempt * 420.0, _xid(gpu, 31, f"pid={pid + 50 * attempt}, name=python3, Ch 00000010. MMU Fault")
        yield attempt * 420.0 + 0.2, _xid(gpu, 43, f"pid={pid + 50 * attempt}, name=python3, Ch 00000011")


def clean_up_burst(chance: Random) -> Iterator[Message]:
    pid = _pid(chance)
    for number in range(672):
        yield number / 50, _xid(GPUS[number % 8], 45, f"pid={pid}, name=python3, Ch {number:08x}")


def stopped_channel(chance: Random) -> Iterator[Message]:
    yield 0.0, _xid(chance.choice(GPUS), 43, f"pid={_pid(chance)}, name=pt_main_thread, Ch 00000008")


def bad_push_buffer(chance: Random) -> Iterator[Message]:
    code = chance.choice((8, 11, 25, 32, 68, 69))
    yield 0.0, _xid(chance.choice(GPUS), code, f"pid={_pid(chance)}, name=python3, Ch 00000018")


def notices_of_the_driver(chance: Random) -> Iterator[Message]:
    gpu = chance.choice(GPUS)
    yield 0.0, _xid(gpu, 163, f"{UNKNOWN}, power smoothing circuitry disengaged")
    yield 40.0, _xid(gpu, 162, f"{UNKNOWN}, power smoothing circuitry reengaged")
    yield 300.0, _xid(gpu, 121, f"{UNKNOWN}, C2C Link0 corrected error")
    yield 500.0, _xid(gpu, 154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")


def switch_that_recovers(chance: Random) -> Iterator[Message]:
    link, code = chance.randrange(64), chance.choice((12028, 22013, 28006, 20009, 19077))
    head = f"nvidia-nvswitch{chance.randrange(4)}: SXid (PCI:0000:c1:00.0): {code},"
    yield 0.0, f"{head} Non-fatal, Link {link:02d} (First)"
    yield 0.0008, f"{head} Severity 0 Engine instance {link:02d} Sub-engine instance 00"
    yield 0.0023, f"{head} Data {{0x00140004, 0x00100000, 0x00140004, 0x00000000}}"


def links_of_new_gpus(chance: Random) -> Iterator[Message]:
    gpu = chance.choice(GPUS)
    for number in range(30):
        info = "(0x00000001 0x00000002 0x00000000 0x00000000 0x00000000 0x00000000)"
        yield number / 20, _xid(gpu, 145, f"RLW_SRC_TRACK Nonfatal XC1 i0 Link {11 + number % 5} {info}")
    yield 2.0, _xid(gpu, 45, f"pid={_pid(chance)}, name=python3, Ch 00000008")


def deep_check(chance: Random) -> Iterator[Message]:
    yield 0.0, "nvidia-nvlink: Unregistered Nvlink Core, major device number 237"
    yield 3.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 17:44:08 UTC 2024"
    for number in range(16):
        yield 4.0 + number / 1e5, f"nvidia-nvswitch{number % 4}: open (major=510)"
    pid = _pid(chance)
    for number, gpu in enumerate(GPUS):
        yield 300.0 + number / 10, _xid(gpu, 45, f"pid={pid}, name=dcgmproftester1, Ch 00000008")


def lustre_reconnects(chance: Random) -> Iterator[Message]:
    target = f"fsx-OST{chance.randrange(16):04x}"
    head, at = f"{target}-osc-ffff9d6153c91000", f"10.0.1.{chance.randrange(2, 250)}@tcp"
    wait = "in progress operations using this service will wait for recovery to complete"
    yield 0.0, f"LustreError: 11-0: {head}: operation ost_read to node {at} failed: rc = -107"
    yield 0.1, f"Lustre: {head}: Connection to {target} (at {at}) was lost; {wait}"
    yield chance.uniform(1, 90), f"Lustre: {head}: Connection restored to  (at {at})"


def lustre_evicts(chance: Random) -> Iterator[Message]:
    target = f"fsx-MDT{chance.randrange(2):04x}"
    fail = "in progress operations using this service will fail."
    yield 0.0, f"LustreError: 167-0: {target}-mdc-ffff9d6153c91000: This client was evicted by {target}; {fail}"


def link_flaps(chance: Random) -> Iterator[Message]:
    for _ in range(chance.randrange(1, 4)):
        yield 0.0, "mlx5_core 0000:41:00.0 enp65s0f0np0: Link down"
        yield chance.uniform(0.5, 20), "mlx5_core 0000:41:00.0 enp65s0f0np0: Link up"


def polled_cards(chance: Random) -> Iterator[Message]:
    status = "ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x15c356), err(-22)"
    for number in range(4):
        yield number * 30.0, f"mlx5_core 0000:41:00.1: mlx5_cmd_out_err:808:(pid {_pid(chance)}): {status}"
    pid = _pid(chance)
    yield (
        130.0,
        f"mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid {pid}): Detected insufficient power on the PCIe slot (27W).",
    )


def memory_of_a_user(chance: Random) -> Iterator[Message]:
    pid = _pid(chance)
    sizes = "total-vm:81234kB, anon-rss:70000kB, file-rss:0kB, shmem-rss:0kB"
    yield 0.0, "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
    yield 0.1, f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,task=python3,pid={pid},uid=1000"
    yield 0.1, f"Memory cgroup out of memory: Killed process {pid} (python3) {sizes}, UID:1000"
    yield 0.2, f"oom_reaper: reaped process {pid} (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB"


def crash_of_a_user(chance: Random) -> Iterator[Message]:
    pid = _pid(chance)
    where = chance.choice(("libtorch_cpu.so[7f0000000000+1000]", "libnccl.so.2[7f7c7ac00000+d3d3000]"))
    yield (
        0.0,
        f"pt_main_thread[{pid}]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in {where}",
    )
    yield 0.5, f"traps: python3[{pid + 1}] general protection fault ip:7f00 sp:7ffd error:0 in libc.so.6[7f00+1000]"


def peers_that_are_gone(chance: Random) -> Iterator[Message]:
    for number in range(chance.randrange(1, 9)):
        yield (
            number / 1e5,
            ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing"),
        )


def busy_storage(chance: Random) -> Iterator[Message]:
    pid = _pid(chance)
    for number in range(3):
        yield number * 122.0, f"INFO: task python3:{pid} blocked for more than {122 * (number + 1)} seconds."
    yield 400.0, "nfs: server 10.0.3.7 not responding, still trying"
    yield 420.0, "nfs: server 10.0.3.7 OK"


def busy_processor(chance: Random) -> Iterator[Message]:
    yield 0.0, f"watchdog: BUG: soft lockup - CPU#{chance.randrange(96)} stuck for 27s! [cuda-EvtHandlr:{_pid(chance)}]"
    yield 30.0, "perf: interrupt took too long (2509 > 2500), lowering kernel.perf_event_max_sample_rate to 79500"


def corrected_errors(chance: Random) -> Iterator[Message]:
    number = chance.randrange(1, 900)
    yield 0.0, f"{{{number}}}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4"
    yield 0.001, f"{{{number}}}[Hardware Error]: It has been corrected by h/w and requires no further action"
    yield 0.002, f"{{{number}}}[Hardware Error]: event severity: corrected"
    yield 60.0, "mce: [Hardware Error]: Machine check events logged"
    yield 61.0, "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0"


def words_of_users(chance: Random) -> Iterator[Message]:
    gpu = chance.choice(GPUS)
    yield 0.0, f"python3[{_pid(chance)}]: \t{_xid(gpu, 79, f'{UNKNOWN}, GPU has fallen off the bus.')}"
    yield 1.0, f"logger: \tsaw nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up"  # noqa: F541


def everyday(chance: Random) -> Iterator[Message]:
    yield 0.0, f"IPv6: ADDRCONF(NETDEV_CHANGE): cali{chance.randrange(1 << 44):011x}: link becomes ready"
    yield 1.0, "EXT4-fs (nvme0n1p2): re-mounted. Opts: (null). Quota mode: none."
    yield 2.0, "XFS (nvme1n1): Mounting V5 Filesystem"
    yield 3.0, f"NVRM: GPU at PCI:{chance.choice(GPUS)}: GPU-509665ad-b600-ac93-3616-d754b23d636d"


PATTERNS = (
    Pattern("crash in a kernel", "leptonai/gpud, recorded dmesg: Xid 13 sixteen times, then 43", 40, crash_in_a_kernel),
    Pattern("page fault of a job", "NVIDIA/NVSentinel #1629: 45 on all GPUs of 77 nodes", 50, page_fault_of_a_job),
    Pattern(
        "job started again and again",
        "srun --auto-resume=1 restarts a user's error",
        200,
        job_that_is_started_again,
    ),
    Pattern("672 times Xid 45", "NVIDIA/NVSentinel #1712", 150, clean_up_burst),
    Pattern("stopped channel", "NVIDIA Xid catalogue, 43: the application's", 60, stopped_channel),
    Pattern("bad push buffer", "NVIDIA Xid catalogue, 8, 11, 25, 32, 68, 69: RESTART_APP", 100, bad_push_buffer),
    Pattern(
        "notices of the driver",
        "NVIDIA Xid catalogue, 121, 154, 162, 163; NVSentinel #1252",
        100,
        notices_of_the_driver,
    ),
    Pattern("switch that recovers", "NVIDIA Fabric Manager user guide, non-fatal SXids", 60, switch_that_recovers),
    Pattern(
        "links of the newest GPUs",
        "B300 nodes: 145 Nonfatal at the first all-reduce, links healthy",
        120,
        links_of_new_gpus,
    ),
    Pattern("deep check", "DCGM diagnostics: the driver is reloaded, processes are killed", 80, deep_check),
    Pattern("Lustre reconnects", "Lustre operations manual, recovery; FSx maintenance", 20, lustre_reconnects),
    Pattern("Lustre evicts", "Lustre operations manual, evictions", 100, lustre_evicts),
    Pattern("link flaps", "Azure cyclecloud-healthagent, link_downed: up to 3 in 3 h are none", 30, link_flaps),
    Pattern("polled cards", "leptonai/gpud #1164: polling makes mlx5 complain", 50, polled_cards),
    Pattern("memory of a user", "node-problem-detector, OOMKilling; recorded by leptonai/gpud", 25, memory_of_a_user),
    Pattern("crash of a user", "leptonai/gpud, recorded dmesg: segfault in libnccl.so.2", 50, crash_of_a_user),
    Pattern("peers that are gone", "leptonai/gpud, recorded kmsg", 60, peers_that_are_gone),
    Pattern("busy storage", "node-problem-detector, TaskHung: an event", 80, busy_storage),
    Pattern("busy processor", "leptonai/gpud, cpu: soft lockup of cuda-EvtHandlr", 200, busy_processor),
    Pattern("corrected errors", "ACPI APEI: corrected by hardware", 100, corrected_errors),
    Pattern("words of users", "a job's output in syslog", 100, words_of_users),
    Pattern("everyday", "leptonai/gpud, recorded kmsg of a node", 0.5, everyday),
)
