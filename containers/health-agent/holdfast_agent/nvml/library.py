"""
Binding of the functions of ``libnvidia-ml.so.1`` that the agent uses (nvml.h of NVIDIA's driver).

A function that the driver or the GPU lacks returns None and is never a fault.
"""

import ctypes
from typing import Any, Optional

UNINITIALIZED, NOT_SUPPORTED, DRIVER_NOT_LOADED, FUNCTION_NOT_FOUND = 1, 3, 9, 13
GPU_IS_LOST, RESET_REQUIRED = 15, 16
_ABSENT = (NOT_SUPPORTED, FUNCTION_NOT_FOUND)
RECOVERY_ACTION_FIELD = 230
MOST_LINKS = 18
_HEAT, _REPLAYS, _RECOVERIES = 1, 0, 1
"""NVML_PERF_POLICY_THERMAL; NVML_NVLINK_ERROR_DL_REPLAY and NVML_NVLINK_ERROR_DL_RECOVERY."""


class NvmlError(Exception):
    """Error of a function; ``code`` is NVML's."""

    def __init__(self, code: int, function: str) -> None:
        super().__init__(f"{function}: NVML error {code}")
        self.code = code


class _Pci(ctypes.Structure):
    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_id", ctypes.c_uint),
        ("subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class _Field(ctypes.Structure):
    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("result", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class _Fabric(ctypes.Structure):
    _fields_ = (
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    )


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Violation(ctypes.Structure):
    _fields_ = (("reference", ctypes.c_ulonglong), ("violation_ns", ctypes.c_ulonglong))


class Library:
    """Initialised NVML; raises OSError without a library, NvmlError without a driver."""

    def __init__(self, name: str) -> None:
        self._library = ctypes.CDLL(name)
        self._call("nvmlInit_v2")

    def close(self) -> None:
        self._call("nvmlShutdown")

    def driver(self) -> str:
        text = ctypes.create_string_buffer(96)
        self._call("nvmlSystemGetDriverVersion", text, 96)
        return text.value.decode("ascii", "replace")

    def count(self) -> int:
        return self._number("nvmlDeviceGetCount_v2")

    def handle(self, index: int) -> Any:
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        return handle

    def pci(self, gpu: Any) -> str:
        """Address as in the kernel: 0000:53:00.0."""
        found = _Pci()
        self._call("nvmlDeviceGetPciInfo_v3", gpu, ctypes.byref(found))
        return f"{found.domain:04x}:{found.bus:02x}:{found.device:02x}.0"

    def remapped(self, gpu: Any) -> "Optional[list[int]]":
        """Rows: corrected, uncorrected, pending, failed."""
        rows = [ctypes.c_uint() for _ in range(4)]
        done = self._try("nvmlDeviceGetRemappedRows", gpu, *(ctypes.byref(row) for row in rows))
        return [row.value for row in rows] if done else None

    def ecc(self, gpu: Any) -> "Optional[list[int]]":
        """Errors since the driver was loaded: corrected, uncorrected."""
        counts = []
        for kind in (0, 1):
            number = ctypes.c_ulonglong()
            if not self._try("nvmlDeviceGetTotalEccErrors", gpu, kind, 0, ctypes.byref(number)):
                return None
            counts.append(number.value)
        return counts

    def recovery_action(self, gpu: Any) -> Optional[int]:
        """The driver's own verdict; 0 is none."""
        asked = (_Field * 1)()
        asked[0].field = RECOVERY_ACTION_FIELD
        if not self._try("nvmlDeviceGetFieldValues", gpu, 1, asked) or asked[0].result != 0:
            return None
        return int(asked[0].value & 0xFFFFFFFF)

    def clock_reasons(self, gpu: Any) -> Optional[int]:
        """Reasons of lower clocks, as bits."""
        number = ctypes.c_ulonglong()
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if self._try(name, gpu, ctypes.byref(number)):
                return number.value
        return None

    def links(self, gpu: Any) -> "Optional[list[int]]":
        """State of each NVLink: True if active."""
        states = []
        for link in range(MOST_LINKS):
            active = ctypes.c_int()
            try:
                if not self._try("nvmlDeviceGetNvLinkState", gpu, link, ctypes.byref(active)):
                    break
            except NvmlError as problem:
                if problem.code in (GPU_IS_LOST, RESET_REQUIRED):
                    raise
                break  # it has no link of this number
            states.append(active.value)
        return states or None

    def link_errors(self, gpu: Any, links: int) -> "Optional[list[int]]":
        """Sums over the first so many NVLinks: replays, recoveries."""
        totals: list[int] = []
        for counter in (_REPLAYS, _RECOVERIES):
            reported = [value for link in range(links) if (value := self._link_errors(gpu, link, counter)) is not None]
            if not reported:
                return None
            totals.append(sum(reported))
        return totals

    def heat_ns(self, gpu: Any) -> Optional[int]:
        found = _Violation()
        done = self._try("nvmlDeviceGetViolationStatus", gpu, _HEAT, ctypes.byref(found))
        return found.violation_ns if done else None

    def fabric(self, gpu: Any) -> "Optional[list[int]]":
        """Its registration with the NVSwitch fabric: state (3 is completed), status (0 is success)."""
        found = _Fabric()
        return (
            [found.state, found.status] if self._try("nvmlDeviceGetGpuFabricInfo", gpu, ctypes.byref(found)) else None
        )

    def temperature_c(self, gpu: Any) -> Optional[int]:
        return self._optional("nvmlDeviceGetTemperature", gpu, 0)

    def power_mw(self, gpu: Any) -> Optional[int]:
        return self._optional("nvmlDeviceGetPowerUsage", gpu)

    def utilization(self, gpu: Any) -> "Optional[list[int]]":
        """Percent of time: GPU, memory."""
        found = _Utilization()
        done = self._try("nvmlDeviceGetUtilizationRates", gpu, ctypes.byref(found))
        return [found.gpu, found.memory] if done else None

    def memory(self, gpu: Any) -> "Optional[list[int]]":
        """Bytes: used, free."""
        found = _Memory()
        return [found.used, found.free] if self._try("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(found)) else None

    def _link_errors(self, gpu: Any, link: int, counter: int) -> Optional[int]:
        number = ctypes.c_ulonglong()
        try:
            done = self._try("nvmlDeviceGetNvLinkErrorCounter", gpu, link, counter, ctypes.byref(number))
        except NvmlError as problem:
            if problem.code in (GPU_IS_LOST, RESET_REQUIRED):
                raise
            return None  # of a link that is off
        return number.value if done else None

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise NvmlError(FUNCTION_NOT_FOUND, name)
        result = function(*arguments)
        if result != 0:
            raise NvmlError(result, name)

    def _try(self, name: str, *arguments: Any) -> bool:
        """False if unsupported; other errors are raised."""
        try:
            self._call(name, *arguments)
        except NvmlError as problem:
            if problem.code in _ABSENT:
                return False
            raise
        return True

    def _number(self, name: str, *arguments: Any) -> int:
        number = ctypes.c_uint()
        self._call(name, *arguments, ctypes.byref(number))
        return number.value

    def _optional(self, name: str, *arguments: Any) -> Optional[int]:
        number = ctypes.c_uint()
        return number.value if self._try(name, *arguments, ctypes.byref(number)) else None
