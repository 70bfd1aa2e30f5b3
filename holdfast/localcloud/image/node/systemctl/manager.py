"""Start and stop of units in order, each under its supervisor; systemd.unit(5) for dependencies."""

from __future__ import annotations

import json
import os
import time

from . import records
from .detach import detach
from .units import Root, Unit, UnitError, is_mounted, met, where_of

_RUN_BY_ITSELF = ("service", "mount", "automount")
_POLL_S = 0.01
_SETTLE_S = 900.0


class JobError(Exception):
    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Manager:
    def __init__(self, root: Root) -> None:
        self.root = root

    # --- start

    def start(self, name: str, *, wait: bool = True, verb: str = "start") -> None:
        """Start a unit and its requirements, in the order of After= and Before=."""
        unit = self.usable(name, verb=verb)
        for one in self._order(unit):
            if one.name == unit.name:
                self._start_one(one, wait=wait)
                continue
            try:
                self._start_one(one, wait=True)
            except (JobError, UnitError) as error:
                if one.name in self._required(unit):
                    raise JobError(
                        f"A dependency job for {unit.name} failed. See 'journalctl -xe' for details."
                    ) from error

    def usable(self, name: str, *, verb: str) -> Unit:
        unit = self.root.load(name)
        if unit.load_state == "loaded" and unit.kind not in (*_RUN_BY_ITSELF, "target"):
            raise JobError(f"Failed to {verb} {unit.name}: this systemctl does not support units of type {unit.kind}")
        if unit.load_state == "not-found" and unit.name not in records.AT_BOOT:
            raise JobError(f"Failed to {verb} {unit.name}: Unit {unit.name} not found.", 5)
        if unit.load_state == "masked":
            raise JobError(f"Failed to {verb} {unit.name}: Unit {unit.name} is masked.")
        if unit.load_state in ("bad-setting", "error"):
            raise JobError(
                f"Failed to {verb} {unit.name}: Unit {unit.name} has a bad unit file setting.\n"
                f"See system logs and 'systemctl status {unit.name}' for details.",
                6,
            )
        return unit

    def _required(self, unit: Unit) -> set[str]:
        names = [*unit.names("Unit", "Requires"), *unit.names("Unit", "BindsTo")]
        return {*names, *self.root.linked(unit.name, "requires")}

    def _order(self, unit: Unit) -> list[Unit]:
        pulled: dict[str, Unit] = {}
        pending = [unit]
        while pending:
            one = pending.pop()
            if one.name in pulled:
                continue
            pulled[one.name] = one
            names = self._required(one) | set(one.names("Unit", "Wants")) | set(self.root.linked(one.name, "wants"))
            for name in names:
                found = self.root.load(name)
                if found.load_state == "loaded" and found.kind in _RUN_BY_ITSELF:
                    pending.append(found)
                elif name in self._required(one) and name.endswith(".service"):
                    raise JobError(f"Failed to start {one.name}: Unit {name} not found.", 5)
        return in_order(pulled, last=unit.name)

    def _start_one(self, unit: Unit, *, wait: bool) -> None:
        record = records.read(self.root, unit.name)
        if unit.kind == "target":
            records.write(self.root, unit.name, {**records.NONE, "active": "active", "sub": "active"})
        elif unit.kind in ("mount", "automount"):
            self._mount(unit)
        elif record["active"] == "active":
            return
        elif record["active"] in ("activating", "deactivating") and records.held(self.root, unit.name):
            self._wait_settled(unit.name, tolerate=record["active"] == "deactivating")
            if record["active"] == "deactivating":
                self._start_one(unit, wait=wait)
        elif met(self.root, unit):
            self._supervise(unit, wait=wait)

    def _supervise(self, unit: Unit, *, wait: bool) -> None:
        lock = records.take(self.root, unit.name)
        if lock < 0:
            self._wait_settled(unit.name, tolerate=False)
            return
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            detach(self.root, unit, reported=write, lock=lock)
        os.close(write)
        os.close(lock)
        os.waitpid(child, 0)
        answer = os.read(read, 4096) if wait else b'{"ok": true}'
        os.close(read)
        reported = json.loads(answer or b'{"ok": false, "result": "resources"}')
        if not reported["ok"] and reported["result"] != "success":
            raise JobError(_job_failed(unit.name, reported["result"]))

    def _wait_settled(self, name: str, *, tolerate: bool) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while time.monotonic() < deadline:
            record = records.read(self.root, name)
            if record["active"] not in ("activating", "deactivating"):
                if record["active"] == "failed" and not tolerate:
                    raise JobError(_job_failed(name, record["result"]))
                return
            time.sleep(_POLL_S)
        raise JobError(f"Job for {name} timed out.")

    def _mount(self, unit: Unit) -> None:
        where = where_of(unit)
        mount = unit if unit.kind == "mount" else self.root.load(unit.name.removesuffix("automount") + "mount")
        if not is_mounted(where):
            os.makedirs(where, exist_ok=True)
            argv = ["mount", mount.one("Mount", "What"), where]
            for key, option in (("Type", "-t"), ("Options", "-o")):
                if value := mount.one("Mount", key):
                    argv += [option, value]
            if os.waitstatus_to_exitcode(os.waitpid(os.posix_spawnp("mount", argv, dict(os.environ)), 0)[1]) != 0:
                records.write(self.root, mount.name, {**records.NONE, "active": "failed", "sub": "failed"})
                raise JobError(_job_failed(unit.name, "exit-code"))
        for name, sub in ((mount.name, "mounted"), (unit.name, "mounted" if unit is mount else "running")):
            records.write(self.root, name, {**records.NONE, "active": "active", "sub": sub, "since": time.time()})

    # --- stop

    def stop(self, name: str, *, verb: str = "stop") -> list[str]:
        """Stop a unit after the active ones that require it; return their names."""
        unit = self.root.load(name)
        known = unit.name in records.known(self.root)
        if unit.load_state == "not-found" and not known:
            raise JobError(f"Failed to {verb} {unit.name}: Unit {unit.name} not loaded.", 5)
        dependents = self._dependents(unit.name)
        for dependent in dependents:
            self._stop_one(self.root.load(dependent))
        self._stop_one(unit)
        return dependents

    def _dependents(self, name: str) -> list[str]:
        found = []
        for other in records.known(self.root):
            if other != name and records.read(self.root, other)["active"] in ("active", "activating"):
                unit = self.root.load(other)
                keys = ("Requires", "BindsTo", "PartOf")
                if name in [word for key in keys for word in unit.names("Unit", key)]:
                    found.append(other)
        return found

    def _stop_one(self, unit: Unit) -> None:
        record = records.read(self.root, unit.name)
        if unit.kind in ("mount", "automount") and record["active"] == "active":
            where = where_of(unit)
            if unit.kind == "mount" and is_mounted(where):
                os.waitpid(os.posix_spawnp("umount", ["umount", where], dict(os.environ)), 0)
        elif records.held(self.root, unit.name):
            self._ask_to_stop(unit.name)
            return
        elif record["active"] == "active" and record["sub"] == "exited" and unit.load_state == "loaded":
            self._run_now(unit, "ExecStop")
            self._run_now(unit, "ExecStopPost")
        elif record["main_pid"]:
            self._end_orphan(record["main_pid"])
        if record["active"] != "inactive" and record["active"] != "failed":
            records.write(self.root, unit.name, dict(record, active="inactive", sub="dead", main_pid=0))

    def _ask_to_stop(self, name: str) -> None:
        import socket

        place = os.open(self.root.state, os.O_RDONLY | os.O_DIRECTORY)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(f"/proc/self/fd/{place}/{name}.sock")
            while connection.recv(64):
                pass
        except OSError:
            pass  # it is ending already
        finally:
            connection.close()
            os.close(place)
        deadline = time.monotonic() + _SETTLE_S
        while records.held(self.root, name) and time.monotonic() < deadline:
            time.sleep(_POLL_S / 5)

    def _end_orphan(self, pid: int) -> None:
        for number in (15, 9):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
            deadline = time.monotonic() + 10.0
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
                time.sleep(_POLL_S)

    # --- the rest

    def reload(self, name: str) -> None:
        unit = self.usable(name, verb="reload")
        record = records.read(self.root, unit.name)
        if not unit.raw("Service", "ExecReload"):
            raise JobError(
                f"Failed to reload {unit.name}: Job type reload is not applicable for unit {unit.name}.\n"
                f"See system logs and 'systemctl status {unit.name}' for details.",
                3,
            )
        if record["active"] != "active":
            raise JobError(f"{unit.name} is not active, cannot reload.")
        self._run_now(unit, "ExecReload", main=record["main_pid"])

    def _run_now(self, unit: Unit, key: str, *, main: int = 0) -> None:
        from . import spawn
        from .units import commands

        for command in commands(unit, key):
            extra = {"MAINPID": str(main)} if main else {}
            pid = spawn.start(self.root, unit, command, extra=extra)
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 and not command.ignore_failure:
                raise JobError(_job_failed(unit.name, "exit-code"))

    def kill(self, name: str, *, number: int, whom: str) -> None:
        unit = self.root.load(name)
        pid = records.read(self.root, unit.name)["main_pid"]
        if not pid:
            raise JobError(f"Failed to kill unit {unit.name}: No main process to kill")
        from .children import descendants, send

        send([pid] if whom == "main" else [pid, *descendants(pid)], number)


def in_order(units: dict[str, Unit], *, last: str = "") -> list[Unit]:
    """Sort by After= and Before=; cycles are broken. ``last``: after unordered ones."""
    before: dict[str, set[str]] = {name: set() for name in units}
    for name, unit in units.items():
        before[name].update(other for other in unit.names("Unit", "After") if other in units)
        for other in unit.names("Unit", "Before"):
            if other in units:
                before[other].add(name)
    found: list[Unit] = []
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in visiting or any(one.name == name for one in found):
            return
        visiting.add(name)
        for other in sorted(before[name]):
            visit(other)
        found.append(units[name])

    for name in sorted(units, key=lambda name: (name == last, name)):
        visit(name)
    return found


def _job_failed(name: str, result: str) -> str:
    """Return systemctl's sentence about a failed start job; src/shared/bus-wait-for-jobs.c."""
    reasons = {
        "exit-code": "the control process exited with error code", "timeout": "a timeout was exceeded",
        "signal": "a fatal signal was delivered to the control process",
        "core-dump": "a fatal signal was delivered causing the control process to dump core",
        "protocol": "the service did not take the steps required by its unit configuration",
        "resources": "of unavailable resources or another system error",
        "start-limit-hit": "start of the service was attempted too often",
        "watchdog": "the service failed its watchdog",
    }  # fmt: skip
    because = f" because {reasons[result]}" if result in reasons else ""
    return f'Job for {name} failed{because}.\nSee "systemctl status {name}" and "journalctl -xeu {name}" for details.'
