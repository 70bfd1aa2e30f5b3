"""Command line of systemctl: options, verbs, exit statuses; systemctl(1)."""

from __future__ import annotations

import os
import sys

from . import enable, records, show
from .manager import JobError, Manager
from .options import Options
from .units import Root, UnitError, generate, signal_number

TYPE_CHECKING = False  # typing.TYPE_CHECKING, without what importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable


def main(argv: list[str]) -> int:
    root = Root(os.environ.get("HOLDFAST_SYSTEMD_ROOT", ""))
    try:
        options = Options(argv)
        return Verbs(root, options).run()
    except (JobError, UnitError) as failure:
        sys.stderr.write(f"{failure}\n")
        return getattr(failure, "status", 1)
    except BrokenPipeError:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        return 0


class Verbs:
    def __init__(self, root: Root, options: Options) -> None:
        self.root, self.options = root, options
        self.manager = Manager(root)

    def run(self) -> int:
        verb = self.options.verb
        if verb in _CHANGING:
            if os.geteuid() != 0 and not self.root.prefix:
                name = self.root.full_name(self.options.arguments[0]) if self.options.arguments else "unit"
                raise JobError(f"Failed to {verb} {name}: Interactive authentication required.", 4)
            return self._change(verb)
        if verb in _REPORTING:
            return _REPORTING[verb](self)
        raise JobError(f"Unknown command verb {verb}.")

    def _names(self) -> list[str]:
        found = []
        for argument in self.options.arguments:
            if any(character in argument for character in "*?["):
                import fnmatch

                pattern = self.root.full_name(argument) if "." not in argument else argument
                found += [name for name in records.known(self.root) if fnmatch.fnmatch(name, pattern)]
            else:
                found.append(self.root.full_name(argument))
        return found

    def _print(self, text: str, *, error: bool = False) -> None:
        if text and "quiet" not in self.options.flags:
            (sys.stderr if error else sys.stdout).write(text + "\n")

    # --- verbs that change something

    def _change(self, verb: str) -> int:
        if verb in ("daemon-reload", "daemon-reexec"):
            generate(self.root)
            records.mark_reloaded(self.root)
            return 0
        if verb == "reset-failed":
            return self._reset_failed()
        names = self._names()
        if not self.options.arguments:
            raise JobError("Too few arguments.")
        status = 0
        for name in names:
            try:
                _CHANGING[verb](self, name)
            except (JobError, UnitError) as failure:
                sys.stderr.write(f"{failure}\n")
                status = getattr(failure, "status", 1)
        return status

    def _start(self, name: str) -> None:
        self.manager.start(name, wait="no-block" not in self.options.flags)

    def _stop(self, name: str) -> None:
        self.manager.stop(name)

    def _restart(self, name: str) -> None:
        unit = self.manager.usable(name, verb="restart")
        dependents = self.manager.stop(unit.name, verb="restart") if unit.kind != "automount" else []
        for one in (unit.name, *dependents):
            self.manager.start(one, wait="no-block" not in self.options.flags, verb="restart")

    def _try_restart(self, name: str) -> None:
        self.manager.usable(name, verb="try-restart")
        if self._active(name):
            self._restart(name)

    def _reload(self, name: str) -> None:
        self.manager.reload(name)

    def _reload_or_restart(self, name: str) -> None:
        unit = self.manager.usable(name, verb="reload-or-restart")
        if self._active(unit.name) and unit.raw("Service", "ExecReload"):
            self.manager.reload(name)
        else:
            self._restart(name)

    def _active(self, name: str) -> bool:
        return bool(records.read(self.root, self.root.load(name).name)["active"] == "active")

    def _kill(self, name: str) -> None:
        number = signal_number(self.options.values.get("signal", ["SIGTERM"])[-1])
        self.manager.kill(name, number=number, whom=self.options.values.get("whom", ["all"])[-1])

    def _enable(self, name: str) -> None:
        reported = enable.enable(self.root, name)
        unit = self.root.load(name)
        if not reported and enable.state(self.root, name) == "static":
            self._print(
                "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\nAlias= settings in the "
                "[Install] section, and DefaultInstance= for template\nunits). This means they are not meant to be "
                "enabled using systemctl.",
                error=True,
            )
        self._print("\n".join(reported), error=True)
        if "now" in self.options.flags:
            self.manager.start(unit.name, wait="no-block" not in self.options.flags)

    def _disable(self, name: str) -> None:
        self._print("\n".join(enable.disable(self.root, name)), error=True)
        if "now" in self.options.flags:
            self.manager.stop(name)

    def _reenable(self, name: str) -> None:
        enable.disable(self.root, name)
        self._enable(name)

    def _mask(self, name: str) -> None:
        self._print("\n".join(enable.mask(self.root, name, runtime="runtime" in self.options.flags)), error=True)
        if "now" in self.options.flags:
            self.manager.stop(name)

    def _unmask(self, name: str) -> None:
        self._print("\n".join(enable.unmask(self.root, name)), error=True)

    def _reset_failed(self) -> int:
        for name in self._names() or records.known(self.root):
            if records.read(self.root, name)["active"] == "failed":
                records.forget(self.root, name)
        return 0

    # --- verbs that tell

    def _is_active(self) -> int:
        return self._check(("active", "reloading"), otherwise=3)

    def _is_failed(self) -> int:
        return self._check(("failed",), otherwise=1)

    def _check(self, good: tuple[str, ...], *, otherwise: int) -> int:
        found = otherwise
        for name in self._names():
            state = str(records.read(self.root, self.root.load(name).name)["active"])
            self._print(state)
            found = 0 if state in good else found
        return found

    def _is_enabled(self) -> int:
        found = 1
        for name in self._names():
            state = enable.state(self.root, name)
            if not state:
                sys.stderr.write(f"Failed to get unit file state for {name}: No such file or directory\n")
                continue
            self._print(state)
            if state in ("enabled", "enabled-runtime", "static", "alias", "indirect", "generated"):
                found = 0
        return found

    def _is_system_running(self) -> int:
        failed = any(records.read(self.root, name)["active"] == "failed" for name in records.known(self.root))
        self._print("degraded" if failed else "running")
        return 1 if failed else 0

    def _status(self) -> int:
        worst = 0
        lines = int(self.options.values.get("lines", ["10"])[-1])
        for number, name in enumerate(self._names()):
            status, text = show.status(self.root, name, lines=lines)
            (sys.stderr if status == 4 else sys.stdout).write(("\n" if number else "") + text + "\n")
            worst = max(worst, status)
        return worst

    def _show(self) -> int:
        desired = self.options.list("property") + self.options.list("only")
        bare = "value" in self.options.flags or "only" in self.options.values
        for number, name in enumerate(self._names()):
            found = show.properties(self.root, name)
            if number:
                print()
            for key in desired or found:
                if key in found:
                    print(found[key] if bare else f"{key}={found[key]}")
        return 0

    def _cat(self) -> int:
        status = 0
        for name in self._names():
            unit = self.root.load(name)
            if not unit.path:
                sys.stderr.write(f"No files found for {name}.\n")
                status = 1
                continue
            print(show.cat(unit, self.root))
        return status

    def _list_units(self) -> int:
        states = ["failed"] if "failed" in self.options.flags else self.options.list("state")
        legend = "no-legend" not in self.options.flags
        everything = "all" in self.options.flags
        kinds = self.options.list("type")
        print(show.list_units(self.root, everything=everything, kinds=kinds, states=states, legend=legend))
        return 0

    def _list_unit_files(self) -> int:
        legend = "no-legend" not in self.options.flags
        kinds, states = self.options.list("type"), self.options.list("state")
        print(show.list_unit_files(self.root, kinds=kinds, states=states, legend=legend))
        return 0

    def _get_default(self) -> int:
        print("multi-user.target")
        return 0


_CHANGING: dict[str, Callable[[Verbs, str], None]] = {
    "start": Verbs._start,
    "stop": Verbs._stop,
    "restart": Verbs._restart,
    "try-restart": Verbs._try_restart,
    "condrestart": Verbs._try_restart,
    "reload": Verbs._reload,
    "reload-or-restart": Verbs._reload_or_restart,
    "kill": Verbs._kill,
    "enable": Verbs._enable,
    "disable": Verbs._disable,
    "reenable": Verbs._reenable,
    "mask": Verbs._mask,
    "unmask": Verbs._unmask,
    "daemon-reload": Verbs._start,
    "daemon-reexec": Verbs._start,
    "reset-failed": Verbs._start,
}
_REPORTING: dict[str, Callable[[Verbs], int]] = {
    "is-active": Verbs._is_active,
    "is-failed": Verbs._is_failed,
    "is-enabled": Verbs._is_enabled,
    "is-system-running": Verbs._is_system_running,
    "status": Verbs._status,
    "show": Verbs._show,
    "cat": Verbs._cat,
    "list-units": Verbs._list_units,
    "list-unit-files": Verbs._list_unit_files,
    "get-default": Verbs._get_default,
}
