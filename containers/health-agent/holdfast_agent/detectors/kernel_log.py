"""Kernel log: /dev/kmsg, or a file."""

import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.detectors.detector import Detector, Instant, Seen
from holdfast_agent.logs import Batch, DeviceLog, FollowedFile, Source
from holdfast_agent.signals import Happening, Metric, Numbers, Signal
from holdfast_agent.verdicts import LogReader, Recognizer, Record, is_worth_a_look, parse_kmsg, same_device
from holdfast_common import kinds

_XID = "xid"
TRIED_AGAIN_S = 2.0
LOOKED_AT_S = 0.2
"""A file cannot be waited for."""
_NO_FILES_SIZE = 1 << 39
"""A stand-in for the device reports this size, so that seeking its end means its newest record."""
QUIET_S = 3.0
"""An unfinished message of several lines is dropped after this time."""


class KernelLog(Detector):
    """Reads a character device, or a file in any known form; Xids are counted for the GPUs of ``gpus``."""

    name = "kernel-log"

    def __init__(
        self,
        path: str = "/dev/kmsg",
        *,
        gpus: "Callable[[], Mapping[str, str]]" = dict,
        gpu_ports: "Optional[Mapping[str, str]]" = None,
    ) -> None:
        super().__init__()
        self._gpus = gpus
        self._xids: dict[str, int] = {}
        """PCI address -> the last Xid of the GPU there."""
        self._path = path
        self._source: Optional[Source] = None
        self._recognizer = Recognizer(gpu_ports=gpu_ports)
        self._reader = LogReader(year=time.gmtime().tm_year)
        self._held = ""
        """Last skipped line: one that continues it has the same sender."""
        self._batch = Batch()
        self._history = True
        """Lines read now are older than the agent: they may be of an earlier boot."""
        self._quiet_since_s = 0.0
        self._memory: Mapping[str, Any] = {}
        self.lines = 0
        self.lost = 0

    def descriptors(self) -> "tuple[int, ...]":
        return self._source.descriptors() if self._source is not None else ()

    def due_in_s(self, at: Instant) -> float:
        del at
        if self._batch.more:
            return 0.0
        if self._batch.missing or self._source is None:
            return TRIED_AGAIN_S
        return 1.0 if self._source.descriptors() else LOOKED_AT_S

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if self._source is None:
            self._source = self._opened()
        if self._source is None:
            return ()
        batch = self._batch = self._source.read()
        if batch.missing:
            self.unsupported(f"{batch.missing}; retrying every {TRIED_AGAIN_S:g} s")
            self._memory = {"position": self._source.position()}
            self._source.close()
            self._source = None
        else:
            self.supported()
        found: list[Seen] = []
        if batch.lost:
            self.lost += batch.lost
            text = f"{batch.lost} records of {self._path} were overwritten before they were read"
            found.append(Happening(kind=kinds.RECORDS_LOST, evidence=text, detail={"lost": batch.lost}))
        self.lines += len(batch.lines)
        for raw in batch.lines:
            record = self._record(raw, at)
            if record is not None:
                found += self._recognizer.read(record)
        if batch.lines:
            self._quiet_since_s = at.boot_s
        elif at.boot_s - self._quiet_since_s > QUIET_S:
            found += self._recognizer.drain(at.boot_s)
        if not batch.more and not batch.missing:
            self._history = False
        self.numbers = {
            ("holdfast_kernel_log_lines_total", ()): float(self.lines),
            ("holdfast_kernel_log_lost_total", ()): float(self.lost),
            **self._last_xids(found),
        }
        return tuple(found)

    def remember(self) -> "dict[str, Any]":
        if self._source is None:
            return dict(self._memory)
        return {"position": self._source.position(), "device": isinstance(self._source, DeviceLog)}

    def restore(self, memory: "Mapping[str, Any]") -> None:
        self._memory = memory

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def _last_xids(self, seen: "Sequence[Seen]") -> Numbers:
        """As DCGM: 0 for a GPU without an Xid, since a rule for changes needs a previous value."""
        for one in seen:
            if isinstance(one, Signal) and one.condition == _XID and one.code is not None:
                self._xids[one.device] = one.code
        known = {same_device(address): (index, address) for index, address in self._gpus().items()}
        found: dict[Metric, float] = {}
        for device in {*known, *self._xids}:
            index, address = known.get(device, ("", device))
            labels: tuple[tuple[str, str], ...] = (("pci_bus_id", address),)
            if index:
                labels = (("gpu", index), *labels)
            found["DCGM_FI_DEV_XID_ERRORS", labels] = float(self._xids.get(device, 0))
        return found

    def _opened(self) -> Optional[Source]:
        """Open by the current type of the path, which may change while the agent runs."""
        try:
            found = Path(self._path).stat()
        except OSError as problem:
            self.unsupported(f"{self._path}: {problem.strerror}; retrying every {TRIED_AGAIN_S:g} s")
            return None
        # What behaves as the device does can be polled; a plain file cannot.
        device = stat.S_ISCHR(found.st_mode) or self._path.startswith("/dev/") or found.st_size >= _NO_FILES_SIZE
        source: Source = DeviceLog(self._path) if device else FollowedFile(self._path)
        position = self._memory.get("position")
        if position:
            source.go_on(position)
        return source

    def _record(self, raw: bytes, at: Instant) -> Optional[Record]:
        line = raw.decode("utf-8", "replace")
        if not is_worth_a_look(line):
            if not line[:1].isspace():
                self._held = line
            return None
        if isinstance(self._source, DeviceLog):
            record = parse_kmsg(line, booted_ns=at.time_ns - int(at.boot_s * 1e9))
            if record is None or record.boot_s is None:
                return None
            return replace(record, boot_s=min(record.boot_s, at.boot_s))
        if self._held:
            self._reader.read(self._held)
            self._held = ""
        read = self._reader.read(line)
        return self._placed(read, at) if isinstance(read, Record) else None

    def _placed(self, record: Record, at: Instant) -> Optional[Record]:
        """
        Time of a file's line. Lines that arrive while the agent reads happen now, whatever their stamp.

        For earlier lines the stamp tells the boot; without one, assume this boot.
        """
        boot_s = at.boot_s
        if self._history and record.time_ns:
            boot_s = at.boot_s - (at.time_ns - record.time_ns) / 1e9
            if boot_s < 0:
                return None
        elif self._history and record.boot_s is not None:
            boot_s = record.boot_s
        boot_s = min(boot_s, at.boot_s)
        return replace(record, boot="", boot_s=boot_s, time_ns=at.time_ns - int((at.boot_s - boot_s) * 1e9))
