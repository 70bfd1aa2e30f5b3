"""
Program that ``holdfast why`` runs on a node of the job: processes, launchers, stacks, agent, file systems.

Standard library and Python 3.9 only, since it is sent as text and runs before anything is installed. Reads only, and
each wait has a deadline: the node under test may be the one that hangs. Prints one JSON object.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOOKS, BETWEEN_S = 3, 0.4
STACKS_S = 3.0
"""For all stacks of a node together."""
MOST_PROCESSES, MOST_STACKS = 4096, 16
_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID")
_TICKS = os.sysconf("SC_CLK_TCK")
_NO_FILE_SYSTEMS = {"proc", "sysfs", "tmpfs", "devtmpfs", "cgroup2", "cgroup", "devpts", "mqueue", "squashfs"}


def probed(jobs: "list[str]") -> "dict[str, Any]":
    began_s = time.monotonic()
    pids = _pids(jobs)
    processes = {pid: found for pid in pids if (found := _process(pid)) is not None}
    for _ in range(LOOKS - 1):
        time.sleep(BETWEEN_S)
        for pid, one in processes.items():
            _look(pid, one)
    spent_s = time.monotonic() - began_s
    launchers = _launchers(set(processes))
    stacks = _stacks(processes, launchers)
    for one in processes.values():
        one["cpu"] = round((one.pop("ticks") - one.pop("ticks_before")) / _TICKS / max(spent_s, 0.1), 2)
        one["moved"] = one.pop("bytes") - one.pop("bytes_before")
    return {
        "host": socket.gethostname(),
        "processes": list(processes.values()),
        "launchers": launchers,
        "stacks": stacks,
        "agent": _agent(),
        "numbers": _numbers(),
        "full": _full(),
        "driver": _text("/proc/driver/nvidia/version").partition("\n")[0][:200],
    }


def _pids(jobs: "list[str]") -> "list[int]":
    """Processes of Slurm jobs by their cgroup or environment; in a container (no job) all."""
    variables_of, folders_of = {f"SLURM_JOB_ID={one}".encode() for one in jobs}, [f"/job_{one}/" for one in jobs]
    own, found = {os.getpid(), os.getppid()}, list[int]()
    for name in (one.name for one in Path("/proc").iterdir()):
        if not name.isdigit() or int(name) in own or len(found) >= MOST_PROCESSES:
            continue
        group = _text(f"/proc/{name}/cgroup")
        of_job = bool(variables_of & set(_bytes(f"/proc/{name}/environ").split(b"\0")))
        of_job = of_job or any(one in group for one in folders_of)
        if of_job or (not jobs and _bytes(f"/proc/{name}/cmdline")):
            found.append(int(name))
    return sorted(found)


def _process(pid: int) -> "dict[str, Any] | None":
    stat = _stat(pid)
    if stat is None:
        return None
    variables = dict(
        one.split("=", 1) for one in _bytes(f"/proc/{pid}/environ").decode("utf-8", "replace").split("\0") if "=" in one
    )
    moved = _moved(pid)
    return {
        "pid": pid,
        "parent": int(stat[1]),
        "name": _text(f"/proc/{pid}/comm").strip(),
        "command": _bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()[:300],
        "states": stat[0],
        "waits_in": _text(f"/proc/{pid}/wchan"),
        "variables": {name: variables[name][:64] for name in _NAMES if name in variables},
        "ticks": _ticks(stat),
        "ticks_before": _ticks(stat),
        "bytes": moved,
        "bytes_before": moved,
    }


def _look(pid: int, one: "dict[str, Any]") -> None:
    stat = _stat(pid)
    one["states"] += stat[0] if stat is not None else "X"
    if stat is not None:
        one["ticks"], one["bytes"] = _ticks(stat), _moved(pid)
        one["waits_in"] = _text(f"/proc/{pid}/wchan") or one["waits_in"]


def _stat(pid: int) -> "list[str] | None":
    """Fields from the state on (proc(5)); the name before them may have any character."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 12 else None


def _ticks(stat: "list[str]") -> int:
    return int(stat[11]) + int(stat[12])


def _moved(pid: int) -> int:
    """Bytes that it has read and written, from files and from storage."""
    fields = [line.split(": ") for line in _text(f"/proc/{pid}/io").splitlines()]
    return sum(int(value) for name, value in fields if name in ("rchar", "wchar", "read_bytes", "write_bytes"))


def _launchers(pids: "set[int]") -> "list[dict[str, Any]]":
    """Answers of the job's launchers at their status sockets."""
    found = []
    folders = [*Path("/tmp").glob("holdfast-*"), *Path("/run/user").glob("*/holdfast")]  # noqa: S108
    for path in sorted(str(one) for folder in folders for one in folder.glob("*.sock")):
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(1.0)
                line.connect(path)
                pid = struct.unpack("iII", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        except OSError:
            continue
        if pids and pid not in pids:
            continue
        answer = _asked(path, "")
        found.append({"pid": pid, "path": path, "status": answer, "stacks": _asked(path, "stacks") if answer else None})
    return found


def _asked(path: str, word: str) -> Any:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(2.5)
            line.connect(path)
            line.sendall(f"{word}\n".encode())
            return _received(line)
    except (OSError, ValueError):
        return None


def _received(line: socket.socket) -> Any:
    until_s, parts = time.monotonic() + 2.5, []
    while time.monotonic() < until_s and (part := line.recv(1 << 16)):
        parts.append(part)
    return json.loads(b"".join(parts))


def _stacks(processes: "dict[int, dict[str, Any]]", launchers: "list[dict[str, Any]]") -> "dict[str, dict[str, str]]":
    """Stacks of Python processes by pid: the launcher's where there is one, else py-spy's, or the reason for none."""
    found: dict[str, dict[str, str]] = {}
    for launcher in launchers:
        for pid, text in ((launcher.get("stacks") or {}).get("stacks") or {}).items():
            found[pid] = {"text": text} if text else {"missing": "the rank did not answer its launcher", "asked": "1"}
    targets = [pid for pid, one in processes.items() if _may_be_rank(one) and not found.get(str(pid), {}).get("text")]
    tool = _py_spy(targets)
    until_s = time.monotonic() + STACKS_S
    for pid in targets[:MOST_STACKS]:
        before = found.get(str(pid), {})
        spied = _py_spied(tool, pid, processes[pid]["states"], until_s=until_s)
        if "missing" in before and "missing" in spied:
            spied["missing"] = f"{before['missing']}; {spied['missing']}"
        found[str(pid)] = {**before, **spied}
    return found


def _may_be_rank(one: "dict[str, Any]") -> bool:
    return one["name"].startswith(("python", "pt_")) and ("RANK" in one["variables"] or bool(one["variables"]))


def _py_spy(pids: "list[int]") -> str:
    """Path of py-spy: beside the Python of the job, or on PATH."""
    for pid in pids[:1]:
        program = Path(_bytes(f"/proc/{pid}/cmdline").split(b"\0")[0].decode("utf-8", "replace"))
        path = program.parent / "py-spy"
        if path.is_absolute() and os.access(path, os.X_OK):
            return str(path)
    return shutil.which("py-spy") or ""


def _py_spied(tool: str, pid: int, states: str, *, until_s: float) -> "dict[str, str]":
    if not tool:
        return {"missing": "py-spy is not installed on this node"}
    if "D" in states:
        return {"missing": "not read: the kernel holds the process"}
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        return {"missing": "py-spy: no time left"}
    try:
        argv = [tool, "dump", "--nonblocking", "--pid", str(pid)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=left_s, check=False)
    except subprocess.TimeoutExpired:
        return {"missing": f"py-spy did not end within {STACKS_S:g} s"}
    except OSError as error:
        return {"missing": f"py-spy cannot be started: {error.strerror}"}
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        return {"missing": f"py-spy was refused: {why[0][:200]}"}
    return {"text": done.stdout.decode("utf-8", "replace")[:8000]}


def _agent() -> Any:
    """Status of the health agent; None without one."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(1.0)
            line.connect("/run/holdfast/agent-status.sock")
            return _received(line)
    except (OSError, ValueError):
        return None


def _numbers() -> "dict[str, list[float]]":
    memory = dict(line.split(":", 1) for line in _text("/proc/meminfo").splitlines() if ":" in line)
    swap = [float(memory.get(name, "0").split()[0]) for name in ("SwapTotal", "SwapFree")]
    found = {"swap_used_mib": [(swap[0] - swap[1]) / 1024]}
    found["disk_used_percent"] = [used for _, used in _mounts()]
    found["load_per_core"] = [os.getloadavg()[0] / (os.cpu_count() or 1)]
    lanes = [_lanes(str(path)) for path in Path("/sys/bus/pci/devices").glob("*/max_link_width")]
    found["pcie_lanes_missing"] = [one for one in lanes if one is not None]
    return found


def _lanes(path: str) -> "float | None":
    """Lanes that an accelerator (PCI classes 0x03, 0x12) lacks; None for other devices."""
    folder = path.rpartition("/")[0]
    if not _text(f"{folder}/class").startswith(("0x03", "0x12")):
        return None
    widths = [_text(f"{folder}/{name}").strip() for name in ("max_link_width", "current_link_width")]
    return float(widths[0]) - float(widths[1]) if all(one.isdigit() for one in widths) else None


def _full() -> "list[str]":
    return [f"{path}: {used:.1f} % used" for path, used in _mounts() if used >= 99.5]


def _mounts() -> "list[tuple[str, float]]":
    found: dict[str, float] = {}
    for line in _text("/proc/mounts").splitlines():
        fields = line.split()
        if len(fields) < 4 or (fields[2] in _NO_FILE_SYSTEMS and not fields[1].startswith(("/fsx", "/tmp"))):  # noqa: S108
            continue
        if fields[2].startswith("nfs") or "ro" in fields[3].split(","):
            continue  # statvfs of a server that is gone does not return
        size = _statvfs(fields[1])
        if size is not None and size.f_blocks:
            found[fields[1]] = 100.0 * (1 - size.f_bavail / size.f_blocks)
    return list(found.items())


def _statvfs(path: str) -> "os.statvfs_result | None":
    try:
        return os.statvfs(path)
    except OSError:
        return None


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb", buffering=0) as file:
            parts = []
            while part := file.read(1 << 16):
                parts.append(part)
            return b"".join(parts)
    except OSError:
        return b""


if __name__ == "__main__":
    print(json.dumps(probed(sys.argv[1].split(",") if len(sys.argv) > 1 else [])))
