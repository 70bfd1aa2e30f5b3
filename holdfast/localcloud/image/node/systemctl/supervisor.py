"""Supervisor of one service: start, reap, record, restart, stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import time

from . import records, restart, spawn
from .children import ChildWatch, adopt_orphans, descendants, listening, pid_in, send
from .units import INFINITY, Command, Root, Unit, UnitError, commands, signal_number, span

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable

_EXITED, _KILLED, _DUMPED = 1, 2, 3  # CLD_EXITED and so on, as systemctl show gives them
_DEFAULT_TIMEOUT_S = 90.0
Outcome = tuple[str, int]
"""Service result, and the exit code or minus the signal number."""
_FINE: Outcome = ("success", 0)


class Supervisor:
    """Supervisor in its own process until the service is down for good."""

    def __init__(self, root: Root, unit: Unit, *, reported: int) -> None:
        self.root, self.unit = root, unit
        self._read_at = records.reloaded(root)
        self._reported = reported
        self._record = dict(records.NONE, supervised=True)
        self._main = 0
        self._starts: list[float] = []
        place = os.open(root.state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._notify_path = f"{root.state}/{unit.name}.notify"
        # Through the folder's descriptor, since the path of a socket is limited to 107 characters.
        control = listening(f"/proc/self/fd/{place}/{unit.name}.sock", socket.SOCK_STREAM, mode=0o600)
        control.listen(16)
        # Also for a service of another type, which may become one that notifies.
        notify = listening(f"/proc/self/fd/{place}/{unit.name}.notify", socket.SOCK_DGRAM, mode=0o777)
        adopt_orphans()
        self._watch = ChildWatch(control=control, notify=notify)

    # --- life

    def run(self) -> None:
        """Start, watch, restart; return when the service is down."""
        while True:
            self._starts.append(time.monotonic())
            outcome = self._cycle()
            if self._record["sub"] == "exited":
                return self._finish()  # RemainAfterExit: active with nothing to watch
            result, status = outcome
            asked = bool(self._watch.asked)
            self._read_again()
            if asked or not restart.should_restart(self.unit, result=result, status=status):
                self._settle(result)
                return self._finish()
            self._write(active="activating", sub="auto-restart", result=result, main_pid=0)
            self._report(ok=False, result=result)
            if self._watch.until(self._stopping, timeout=span(self.unit, "RestartSec", 0.1)):
                self._settle("success")
                return self._finish()
            self._read_again()
            if self.unit.load_state != "loaded":
                self._settle("resources")
                return self._finish()
            if not self._may_start():
                self._settle("start-limit-hit")
                return self._finish()
            self._record["restarts"] += 1

    def _read_again(self) -> None:
        if (now := records.reloaded(self.root)) != self._read_at:
            self._read_at = now
            found = self.root.load(self.unit.name)
            usable = found.load_state == "loaded" and found.name == self.unit.name
            self.unit = found if usable else Unit(self.unit.name)

    def _may_start(self) -> bool:
        interval = self.unit.one("Unit", "StartLimitIntervalSec") or self.unit.one("Unit", "StartLimitInterval")
        from .units import seconds

        return restart.allowed(
            starts=self._starts,
            now=time.monotonic(),
            interval=seconds(interval) if interval else 10.0,
            burst=int(self.unit.one("Unit", "StartLimitBurst", "5")),
        )

    def _settle(self, result: str) -> None:
        state = ("inactive", "dead") if result == "success" else ("failed", "failed")
        self._write(active=state[0], sub=state[1], result=result, main_pid=0)

    def _finish(self) -> None:
        if self._record["sub"] != "exited":
            spawn.remove_folders(self.root, self.unit)
        self._record["supervised"] = False
        self._write()
        self._report(ok=self._record["active"] == "active", result=self._record["result"])
        for ending in (".sock", ".notify"):
            try:
                os.unlink(f"{self.root.state}/{self.unit.name}{ending}")
            except FileNotFoundError:
                pass
        for connection in self._watch.asked:
            connection.close()

    # --- one start to its end

    def _cycle(self) -> Outcome:
        self._main = 0
        self._watch.messages.clear()
        self._record.update(exec_main_pid=0, exec_main_code=0, exec_main_status=0, status_text="")
        self._write(active="activating", sub="start", main_pid=0, result="success")
        try:
            spawn.make_folders(self.root, self.unit)
            outcome = self._run_all("ExecStartPre", timeout=self._start_timeout())
            if outcome == _FINE:
                outcome = self._start()
        except (UnitError, OSError) as error:
            self._log(str(error))
            outcome = ("resources", 1)
        if outcome != _FINE:
            self._kill(remaining=True)
            self._run_all("ExecStopPost", timeout=self._stop_timeout())
            return outcome
        stays = self.unit.flag("Service", "RemainAfterExit")
        if self.unit.type == "oneshot":
            if stays:
                self._write(active="active", sub="exited", main_pid=0)
            self._report(ok=True, result="success")
            if not stays:
                self._run_all("ExecStopPost", timeout=self._stop_timeout())
            return _FINE
        self._write(active="active", sub="running", main_pid=self._main, entered=time.time())
        self._report(ok=True, result="success")
        if not self._serve():
            return self._kill_hung()
        if stays and self._main_ended() and self._ended_outcome() == _FINE and not self._stopping():
            self._write(active="active", sub="exited", main_pid=0)
            return _FINE
        return self._stop()

    def _serve(self) -> bool:
        """Serve until the main process ends or a stop is requested. Return False on a watchdog timeout."""
        limit = self._watchdog()
        self._watch.fed_at = time.monotonic()
        while not self._watch.until(
            lambda: self._stopping() or self._main_ended(), timeout=self._watch.fed_at + limit - time.monotonic()
        ):
            if time.monotonic() - self._watch.fed_at >= limit:
                return False
        return True

    def _kill_hung(self) -> Outcome:
        """Kill a service that missed its watchdog; SIGABRT first, for a core dump."""
        self._log(f"{self.unit.name}: Watchdog timeout (limit {self.unit.one('Service', 'WatchdogSec')})!")
        number = signal_number(self.unit.one("Service", "WatchdogSignal", "SIGABRT"))
        send([self._main], number)
        self._watch.until(self._main_ended, timeout=self._stop_timeout())
        self._stop()
        return ("watchdog", -number)

    def _watchdog(self) -> float:
        return span(self.unit, "WatchdogSec", INFINITY, zero_is_infinity=True)

    def _start(self) -> Outcome:
        timeout, kind = self._start_timeout(), self.unit.type
        if kind == "oneshot":
            return self._run_all("ExecStart", timeout=timeout, main=True)
        command = commands(self.unit, "ExecStart")[0]
        self._main = self._spawn(command, wait_exec=kind in ("exec", "notify"))
        self._write(main_pid=self._main, exec_main_pid=self._main)
        if kind == "forking":
            outcome = self._wait_forked(timeout)
        elif kind == "notify":
            outcome = self._wait_ready(timeout)
        else:
            outcome = _FINE
        if outcome == _FINE and commands(self.unit, "ExecStartPost"):
            outcome = self._run_all("ExecStartPost", timeout=timeout)
        return outcome

    def _wait_forked(self, timeout: float) -> Outcome:
        """Wait for a forking daemon's first process; PIDFile= or the only process is the main one."""
        first, deadline = self._main, time.monotonic() + timeout
        if not self._watch.until(lambda: first in self._watch.ended or self._stopping(), timeout=timeout):
            return ("timeout", -signal.SIGTERM)
        if self._stopping():
            return ("success", -signal.SIGTERM)
        self._main = 0
        if (status := self._watch.ended.pop(first)) != 0:
            self._note_end(status, dumped=False)
            return (restart.result_of(self.unit, status), status)
        path = self.unit.one("Service", "PIDFile")
        if not path:
            below = descendants(os.getpid())
            self._main = below[0] if len(below) == 1 else 0
            return _FINE
        path = self.root.at(path if path.startswith("/") else f"/run/{path}")
        while (pid := pid_in(path)) == 0 or not os.path.exists(f"/proc/{pid}"):
            if self._watch.until(self._stopping, timeout=0.01):
                return ("success", -signal.SIGTERM)
            if time.monotonic() > deadline:
                return ("timeout", -signal.SIGTERM)
            if not descendants(os.getpid()):
                return ("protocol", 1)
        self._main = pid
        return _FINE

    def _wait_ready(self, timeout: float) -> Outcome:
        def settled() -> bool:
            return self._watch.messages.get("READY") == "1" or self._main_ended() or self._stopping()

        if not self._watch.until(settled, timeout=timeout):
            return ("timeout", -signal.SIGTERM)
        if self._watch.messages.get("READY") != "1":
            if self._stopping():
                return ("success", -signal.SIGTERM)
            outcome = self._ended_outcome()
            return ("protocol", outcome[1]) if outcome == _FINE else outcome
        if self._watch.messages.get("MAINPID", "").isdigit():
            self._main = int(self._watch.messages["MAINPID"])
        self._record["status_text"] = self._watch.messages.get("STATUS", "")
        return _FINE

    def _main_ended(self) -> bool:
        if self._main:
            return self._main in self._watch.ended or not os.path.exists(f"/proc/{self._main}")
        return not descendants(os.getpid())

    def _ended_outcome(self) -> Outcome:
        status = self._watch.ended.get(self._main, 0)
        dumped = self._main in self._watch.dumped
        self._note_end(status, dumped=dumped)
        result = restart.result_of(self.unit, status, dumped=dumped)
        return ("success", 0) if result == "success" else (result, status)

    def _note_end(self, status: int, *, dumped: bool) -> None:
        code = _EXITED if status >= 0 else _DUMPED if dumped else _KILLED
        self._record.update(exec_main_code=code, exec_main_status=abs(status))

    # --- stopping

    def _stop(self) -> Outcome:
        self._read_again()
        self._write(active="deactivating", sub="stop-sigterm")
        alive = not self._main_ended()
        if alive and commands(self.unit, "ExecStop"):
            self._run_all("ExecStop", timeout=self._stop_timeout(), even_if_stopping=True)
        in_time = self._kill(remaining=not alive)
        outcome = self._ended_outcome()
        self._run_all("ExecStopPost", timeout=self._stop_timeout(), even_if_stopping=True)
        return outcome if in_time else ("timeout", outcome[1])

    def _kill(self, *, remaining: bool) -> bool:
        """End the service by KillMode=; return False if SIGKILL was needed. ``remaining``: the main process is gone."""
        mode, unit = self.unit.one("Service", "KillMode", "control-group"), self.unit
        me = os.getpid()
        if mode == "none":
            return True

        def targets() -> list[int]:
            main = [self._main] if self._main and not self._main_ended() else []
            return main if mode == "process" else descendants(me)

        def gone() -> bool:
            return not targets()

        first = targets() if mode != "mixed" or remaining else [self._main]
        send(first, signal_number(unit.one("Service", "KillSignal", "SIGTERM")))
        send(first, signal.SIGCONT)
        if self._watch.until(gone if mode != "mixed" else self._main_ended, timeout=self._stop_timeout()):
            if mode == "mixed":
                send(targets(), signal.SIGKILL)
                self._watch.until(gone, timeout=self._stop_timeout())
            return True
        if unit.flag("Service", "SendSIGKILL", default=True):
            send(targets(), signal.SIGKILL)
            self._watch.until(gone, timeout=self._stop_timeout())
        return False

    # --- small parts

    def _stopping(self) -> bool:
        return bool(self._watch.asked)

    def _start_timeout(self) -> float:
        default = INFINITY if self.unit.type == "oneshot" else _DEFAULT_TIMEOUT_S
        key = "TimeoutStartSec" if self.unit.raw("Service", "TimeoutStartSec") else "TimeoutSec"
        return span(self.unit, key, default, zero_is_infinity=True)

    def _stop_timeout(self) -> float:
        key = "TimeoutStopSec" if self.unit.raw("Service", "TimeoutStopSec") else "TimeoutSec"
        return span(self.unit, key, _DEFAULT_TIMEOUT_S, zero_is_infinity=True)

    def _variables(self) -> dict[str, str]:
        found = {"MAINPID": str(self._main)} if self._main else {}
        watchdog = self._watchdog()
        if (
            self.unit.type == "notify"
            or watchdog != INFINITY
            or self.unit.one("Service", "NotifyAccess", "none") != "none"
        ):
            found["NOTIFY_SOCKET"] = self._notify_path
        if watchdog != INFINITY:
            found["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        return found

    def _spawn(self, command: Command, *, wait_exec: bool = False) -> int:
        if not wait_exec:
            return spawn.start(self.root, self.unit, command, extra=self._variables())
        read, write = os.pipe()
        pid = spawn.start(self.root, self.unit, command, extra=self._variables(), reported=write)
        os.close(write)
        os.read(read, 4096)  # to its end: the program runs now, or its process ends with 203
        os.close(read)
        return pid

    def _run_all(self, key: str, *, timeout: float, main: bool = False, even_if_stopping: bool = False) -> Outcome:
        for command in commands(self.unit, key):
            pid = self._spawn(command)
            if main:
                self._main = pid
                self._write(main_pid=pid, exec_main_pid=pid)
            stop: Callable[[], bool] = (lambda: False) if even_if_stopping else self._stopping
            ended = self._watch.until(lambda pid=pid, stop=stop: pid in self._watch.ended or stop(), timeout=timeout)  # type: ignore[misc]
            if pid not in self._watch.ended:
                send([pid, *descendants(pid)], signal.SIGKILL)
                return ("success" if ended else "timeout", -signal.SIGTERM)
            status = self._watch.ended.pop(pid)
            if main:
                self._note_end(status, dumped=pid in self._watch.dumped)
                self._main = 0
            result = restart.result_of(self.unit, status)
            if result != "success" and not command.ignore_failure:
                return (result, status)
        return _FINE

    def _write(self, **changes: object) -> None:
        if "active" in changes and changes["active"] != self._record["active"]:
            self._record["since"] = time.time()
        self._record.update(changes)
        records.write(self.root, self.unit.name, self._record)

    def _report(self, *, ok: bool, result: str) -> None:
        if self._reported >= 0:
            try:
                os.write(self._reported, json.dumps({"ok": ok, "result": result}).encode())
            except BrokenPipeError:
                pass  # a caller that did not want to wait has gone
            os.close(self._reported)
            self._reported = -1

    def _log(self, text: str) -> None:
        with open(spawn.log_path(self.root, self.unit.name), "a", encoding="utf-8") as file:
            file.write(text + "\n")
