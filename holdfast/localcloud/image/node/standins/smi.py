"""nvidia-smi: what NVML answers about each GPU, here from the library that stands in for the driver's."""

from __future__ import annotations

import ctypes
import sys

from .common import refuse

FAILED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running."
)
NO_FIELD, NO_DEVICE, NO_DRIVER, LOST = 2, 6, 9, 15
"""Exit statuses, as nvidia-smi(1) lists them."""
MOST_LINKS = 18
UNITS = {
    "memory.total": "MiB",
    "memory.used": "MiB",
    "memory.free": "MiB",
    "utilization.gpu": "%",
    "utilization.memory": "%",
    "power.draw": "W",
}


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Pci(ctypes.Structure):
    _fields_ = [
        ("legacy", ctypes.c_char * 16),
        ("numbers", ctypes.c_uint * 5),
        ("address", ctypes.c_char * 32),
    ]


class SmiError(Exception):
    """NVML answers something else than success; carries its number."""


class Driver:
    """Raises SmiError, and OSError on a node without the library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._ask("nvmlInit_v2")
        count = ctypes.c_uint()
        self._ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self.count = count.value

    def _ask(self, function: str, *arguments: object) -> None:
        result = getattr(self._library, function)(*arguments)
        if result:
            raise SmiError(result)

    def version(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._ask("nvmlSystemGetDriverVersion", text, 96)
        return text.value.decode()

    def facts(self, index: int) -> dict[str, str]:
        """Values of ``--query-gpu``, without units."""
        gpu = ctypes.c_void_p()
        self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(gpu))
        memory, pci, percent = _Memory(), _Pci(), (ctypes.c_uint * 2)()
        degrees, milliwatts = ctypes.c_uint(), ctypes.c_uint()
        self._ask("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(memory))
        self._ask("nvmlDeviceGetPciInfo_v3", gpu, ctypes.byref(pci))
        self._ask("nvmlDeviceGetUtilizationRates", gpu, percent)
        self._ask("nvmlDeviceGetTemperature", gpu, 0, ctypes.byref(degrees))
        self._ask("nvmlDeviceGetPowerUsage", gpu, ctypes.byref(milliwatts))
        return {
            "index": str(index),
            "count": str(self.count),
            "name": self._text(gpu, "Name"),
            "uuid": self._text(gpu, "UUID"),
            "serial": self._text(gpu, "Serial"),
            "driver_version": self.version(),
            "pci.bus_id": pci.address.decode(),
            "memory.total": str(memory.total >> 20),
            "memory.used": str(memory.used >> 20),
            "memory.free": str(memory.free >> 20),
            "utilization.gpu": str(percent[0]),
            "utilization.memory": str(percent[1]),
            "temperature.gpu": str(degrees.value),
            "power.draw": f"{milliwatts.value / 1000:.2f}",
        }

    def links(self) -> int:
        """Active NVLinks of the first GPU."""
        gpu, active, count = ctypes.c_void_p(), ctypes.c_int(), 0
        self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(0), ctypes.byref(gpu))
        for link in range(MOST_LINKS):
            if not self._library.nvmlDeviceGetNvLinkState(gpu, ctypes.c_uint(link), ctypes.byref(active)):
                count += active.value
        return count

    def _text(self, gpu: ctypes.c_void_p, what: str) -> str:
        text = ctypes.create_string_buffer(96)
        self._ask(f"nvmlDeviceGet{what}", gpu, text, 96)
        return text.value.decode()


def main(argv: list[str]) -> int:
    try:
        driver = Driver()
    except (OSError, SmiError):
        print(FAILED)
        return NO_DRIVER
    if argv == ["topo", "-m"]:
        _topology(driver)
        return 0
    options = _options(argv)
    asked = [option.lstrip("-") for option in options if option.startswith("--query-gpu")]
    known = {"-L", "--list-gpus", "-i", "--id", "--query-gpu", "--format"}
    if set(options) - known or (asked and "--format" not in options):
        return refuse("nvidia-smi", argv, status=NO_FIELD)
    try:
        rows = [driver.facts(index) for index in range(driver.count)]
    except SmiError as error:
        print(
            f"Unable to determine the device handle for GPU: NVML error {error}. Reboot the system to recover this GPU"
        )
        return LOST
    chosen = options.get("-i", options.get("--id", ""))
    if chosen:
        rows = [row for row in rows if {row["index"], row["uuid"], row["pci.bus_id"]} & set(chosen.split(","))]
    if not rows:
        print("No devices were found")
        return NO_DEVICE
    if asked:
        return _query(rows, options["--query-gpu"].split(","), options["--format"].split(","))
    if "-L" in options or "--list-gpus" in options:
        for row in rows:
            print(f"GPU {row['index']}: {row['name']} (UUID: {row['uuid']})")
        return 0
    _table(rows)
    return 0


def _options(argv: list[str]) -> dict[str, str]:
    """``--name=value`` and ``-i VALUE``."""
    found, words = {}, list(argv)
    while words:
        name, _, value = words.pop(0).partition("=")
        if name in ("-i", "--id", "--format", "--query-gpu") and not value and words:
            value = words.pop(0)
        found[name] = value
    return found


def _query(rows: list[dict[str, str]], fields: list[str], form: list[str]) -> int:
    other = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_serial": "serial"}
    fields = [other.get(field.strip(), field.strip()) for field in fields]
    for field in fields:
        if field not in rows[0]:
            print(f'Field "{field}" is not a valid field to query.')
            return NO_FIELD
    units = {} if "nounits" in form else UNITS
    if "noheader" not in form:
        print(", ".join(f"{field} [{units[field]}]" if field in units else field for field in fields))
    for row in rows:
        print(", ".join(f"{row[field]} {units[field]}" if field in units else row[field] for field in fields))
    return 0


def _topology(driver: Driver) -> None:
    count, links = driver.count, driver.links()
    between = f"NV{links}" if links else "SYS"
    names = [f"GPU{index}" for index in range(count)]
    print("\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"]))
    for name in names:
        print("\t".join([name, *(" X " if other == name else between for other in names), "N/A", "N/A"]))


def _table(rows: list[dict[str, str]]) -> None:
    version = rows[0]["driver_version"]
    line = "+" + "-" * 77 + "+"
    print(line)
    print("| {:<75} |".format(f"NVIDIA-SMI {version}   Driver Version: {version}   CUDA Version: 12.8"))
    print(line)
    for row in rows:
        memory = f"{row['memory.used']}MiB / {row['memory.total']}MiB"
        print(
            "| {:>3}  {:<24} {:>16}  {:>3}C  {:>17} {:>3}% |".format(
                row["index"], row["name"], row["pci.bus_id"], row["temperature.gpu"], memory, row["utilization.gpu"]
            )
        )
    print(line)
    sys.stdout.flush()
