"""
Custom checks: executables of a folder, run at intervals.

Exit code 0: healthy; 1: problem found; 2: no result. Standard output may have one JSON object with ``message``,
``device``, ``severity`` and ``remedy``. A file ``NAME.json`` beside it may set ``interval_s`` and ``deadline_s``.
An invalid check is refused with its reason; the others run.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.children import Ended, Program
from holdfast_agent.detectors.detector import Detector, Facts, Instant, Seen, Support
from holdfast_agent.signals import Signal, conditions
from holdfast_common import Remedy, Severity

FOLDER_EVERY_S = 30.0
LEAST_FAILURES = 2
"""Consecutive runs without a result, after which a check counts as broken."""
_SETTINGS = {"interval_s": 60.0, "deadline_s": 10.0}
_LEAST = {"interval_s": 1.0, "deadline_s": 0.1}
_WORDS = {"severity": {item.value for item in Severity}, "remedy": {item.value for item in Remedy}}


class _Check:
    def __init__(self, path: Path, settings: "Mapping[str, float]") -> None:
        self.path = path
        self.settings = settings
        self.program = Program(deadline_s=settings["deadline_s"])
        self.due_s = float("-inf")
        self.problem = ""
        self.failures = 0
        """Consecutive runs without a result."""
        self.state: Optional[str] = None
        """Reason why it is broken; a single run without a result does not count."""
        self.found: tuple[Signal, ...] = ()


class Checks(Detector):
    name = "checks"
    interval_s = 1.0

    def __init__(self, *, directory: str) -> None:
        super().__init__()
        self._directory = directory
        self._checks: dict[str, _Check] = {}
        self.refused: dict[str, str] = {}
        """Check -> reason why it is not run."""
        self._folder_s = float("-inf")

    def descriptors(self) -> "tuple[int, ...]":
        return tuple(one for check in self._checks.values() for one in check.program.descriptors())

    def due_in_s(self, at: Instant) -> float:
        next_s = FOLDER_EVERY_S
        for check in self._checks.values():
            next_s = min(next_s, 1.0 if check.program.running else check.due_s - at.boot_s)
        return max(next_s, 0.0)

    def look(self, at: Instant) -> "tuple[Seen, ...]":
        if not self._directory:
            return self.switched_off("checks.directory is empty")
        if at.boot_s >= self._folder_s + FOLDER_EVERY_S:
            self._folder_s = at.boot_s
            self._read_folder()
        if self.support is not Support.YES:
            return ()
        for check in self._checks.values():
            ended = check.program.poll(at.boot_s)
            if ended is None and not check.program.running and at.boot_s >= check.due_s:
                check.due_s = at.boot_s + check.settings["interval_s"]
                environment = {**os.environ, "HOLDFAST_CHECK": check.path.name}
                ended = check.program.start((str(check.path),), at.boot_s, environment)
            if ended is not None:
                self._judge(at, check, ended)
        self.hung = sum(check.program.stuck for check in self._checks.values())
        problems = {name: check.problem for name, check in self._checks.items() if check.problem}
        self.parts = {"": "", **{name: check.state for name, check in self._checks.items()}, **self.refused}
        self.reason = "; ".join(f"{name}: {why}" for name, why in sorted({**self.refused, **problems}.items()))
        return self.holding(at, tuple(one for check in self._checks.values() for one in check.found))

    def asking(self) -> bool:
        return any(check.program.running for check in self._checks.values())

    def processes(self) -> "tuple[int, ...]":
        return tuple(check.program.pid for check in self._checks.values())

    def close(self) -> None:
        for check in self._checks.values():
            check.program.close()

    def _read_folder(self) -> None:
        try:
            paths = sorted(Path(self._directory).iterdir())
        except OSError as problem:
            self.unsupported(f"{self._directory}: {problem.strerror}")
            return
        self.support, self.refused = Support.YES, {}
        expected = {}
        for path in paths:
            if path.suffix == ".json" or path.name.startswith("."):
                continue
            try:
                expected[path.name] = (path, _settings_of(path))
            except ValueError as problem:
                self.refused[path.name] = str(problem)
        for name in [name for name in self._checks if name not in expected]:
            if not self._checks[name].program.stuck:
                self._checks.pop(name).program.close()
        for name, (path, settings) in expected.items():
            if name not in self._checks:
                self._checks[name] = _Check(path, settings)
            self._checks[name].settings = settings
            self._checks[name].program.deadline_s = settings["deadline_s"]

    def _judge(self, at: Instant, check: _Check, ended: Ended) -> None:
        self._find(at, check, ended)
        reports = ended.code in (0, 1)
        check.failures = 0 if reports else check.failures + 1
        if reports or check.failures >= LEAST_FAILURES:
            check.state = "" if reports else check.problem

    def _find(self, at: Instant, check: _Check, ended: Ended) -> None:
        """Only exit code 1 is a finding; a run without a result leaves the previous one."""
        check.problem = ended.problem
        if ended.code == 0:
            check.found = ()
        elif ended.code == 1:
            try:
                reported = _json_of(ended.output)
            except ValueError as problem:
                check.problem, reported = f"output ignored: {problem}", {}
            name = check.path.name
            text = f"check {name}: {reported.get('message') or ended.output.strip()[:300] or 'found something'}"
            facts: Facts = {"check": name, **{key: reported[key] for key in _WORDS if key in reported}}
            device = str(reported.get("device") or name)
            found = self.signal(at, conditions.CHECK_FAILED, text, device=device, facts=facts)
            check.found = (found,)
        elif ended.code == 2:
            check.problem = "reported no result"
        elif not ended.problem:
            check.problem = f"ended with exit code {ended.code}; allowed: 0, 1, 2"


def _settings_of(path: Path) -> "dict[str, float]":
    found = path.stat() if path.exists() else None
    if found is None or not stat.S_ISREG(found.st_mode):
        raise ValueError("is not a file")
    if not os.access(path, os.X_OK):
        raise ValueError("not executable; chmod +x, or remove it")
    if found.st_mode & stat.S_IWOTH or found.st_uid not in (0, os.geteuid()):
        raise ValueError("writable by users other than root; chown root and chmod o-w")
    settings = dict(_SETTINGS)
    beside = path.with_name(f"{path.name}.json")
    if beside.exists():
        given = _object(beside.read_text("utf-8", "replace"), beside.name)
        for key, value in given.items():
            number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            if key not in settings or number is None or not _LEAST[key] <= number <= 86_400:
                raise ValueError(f"{beside.name}: {key} is {value!r}; allowed are {' and '.join(_SETTINGS)} in seconds")
            settings[key] = float(number)
    return settings


def _json_of(output: str) -> "dict[str, Any]":
    """JSON of a check's output; empty if none; raises ValueError if invalid."""
    if not output.lstrip().startswith("{"):
        return {}
    reported = _object(output, "output")
    for key, allowed in _WORDS.items():
        if key in reported and reported[key] not in allowed:
            raise ValueError(f"{key} is {reported[key]!r}; allowed are {', '.join(sorted(allowed))}")
    return reported


def _object(text: str, what: str) -> "dict[str, Any]":
    problem: Optional[str] = None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = f"{what} is not JSON: {error}"
    if problem is None and not isinstance(value, dict):
        problem = f"{what} is not a JSON object"
    if problem is not None:
        raise ValueError(problem)
    return dict(value)
