"""Prometheus and Alertmanager in the nodes' network, unprivileged, forwarded to this machine's loopback."""

import json
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.localcloud.forwarding import Forwarder
from holdfast.localcloud.monitor import configuration
from holdfast.localcloud.monitor.access import MonitorAccess, bcrypt, forget_access, write_access
from holdfast.localcloud.monitor.configuration import ScrapeTarget
from holdfast.localcloud.monitor.programs import ALERTMANAGER, PROMETHEUS, MonitorError
from holdfast.localcloud.monitor.settings import MonitorSettings
from holdfast.localcloud.monitor.targets import targets
from holdfast.localcloud.nodes import Fleet

LOOK_S = 1.0
END_S = 10.0
NOBODY = 65534
_PORTS = {PROMETHEUS: configuration.PROMETHEUS_PORT, ALERTMANAGER: configuration.ALERTMANAGER_PORT}

_log = logging.getLogger(__name__)


class Monitor:
    """Both programs of one home, until ``stopping``."""

    def __init__(self, *, home: Path, settings: MonitorSettings, stopping: threading.Event) -> None:
        self._home, self._settings, self._stopping = home, settings, stopping
        self._fleet = Fleet(home=home)
        self._folder = home / "monitor" / "work"
        self._known: tuple[ScrapeTarget, ...] = ()
        self._programs: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        """Run until stopped. Raise MonitorError if a program exits."""
        password = secrets.token_urlsafe(24)
        self._prepare(password)
        listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in _PORTS}
        urls = {name: f"http://localhost:{listener.getsockname()[1]}" for name, listener in listeners.items()}
        forwarders = [
            Forwarder(listener=listener, host="127.0.0.1", port=_PORTS[name], stream=self._fleet.stream)
            for name, listener in listeners.items()
        ]
        try:
            self._start(urls)
            for forwarder in forwarders:
                forwarder.start()
            access = MonitorAccess(prometheus=urls[PROMETHEUS], alertmanager=urls[ALERTMANAGER], password=password)
            write_access(self._home, access)
            while not self._stopping.wait(LOOK_S):
                self._look()
        finally:
            forget_access(self._home)
            for forwarder in forwarders:
                forwarder.stop()
            self._end()

    def _prepare(self, password: str) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        for folder in (self._folder, self._folder / configuration.TOKENS):
            folder.mkdir(parents=True, mode=0o700)
            os.chown(folder, NOBODY, NOBODY)
        self._write(configuration.RULES, self._settings.rules.encode())
        self._write(configuration.PASSWORD, password.encode())
        self._write_json(configuration.WEB, configuration.web_configuration(password_hash=bcrypt(password)))
        self._write_json("alertmanager.json", configuration.alertmanager_configuration())
        self._configure(targets(self._fleet))

    def _start(self, urls: Mapping[str, str]) -> None:
        own = {
            PROMETHEUS: ["--config.file=prometheus.json", "--storage.tsdb.path=data"],
            ALERTMANAGER: ["--config.file=alertmanager.json", "--storage.path=alerts", "--cluster.listen-address="],
        }
        for name, options in own.items():
            self._programs[name] = subprocess.Popen(
                [
                    *_confined(self._fleet.fabric.path),
                    name,
                    *options,
                    f"--web.listen-address=127.0.0.1:{_PORTS[name]}",
                    f"--web.config.file={configuration.WEB}",
                    f"--web.external-url={urls[name]}",
                ],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )

    def _look(self) -> None:
        for name, program in self._programs.items():
            if program.poll() is not None:
                raise MonitorError(f"{name} ended with exit code {program.returncode}; see this log")
        found = targets(self._fleet)
        if found != self._known:
            self._configure(found)
            self._programs[PROMETHEUS].send_signal(signal.SIGHUP)  # it reads its configuration again

    def _configure(self, found: tuple[ScrapeTarget, ...]) -> None:
        for gone in set(self._known) - set(found):
            (self._folder / gone.token_file).unlink(missing_ok=True)
        for target in found:
            self._write(target.token_file, target.token.encode())
        settings = configuration.prometheus_configuration(found, cluster=self._settings.cluster)
        self._write_json("prometheus.json", settings)
        self._known = found
        _log.info("targets: %s", ", ".join(target.instance_id for target in found) or "none")

    def _write_json(self, name: str, content: object) -> None:
        self._write(name, json.dumps(content, indent=1).encode())

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o400)
        os.chown(fresh, NOBODY, NOBODY)
        fresh.write_bytes(content)
        fresh.replace(path)

    def _end(self) -> None:
        for program in self._programs.values():
            program.terminate()
        for program in self._programs.values():
            _wait(program)


def _wait(program: "subprocess.Popen[bytes]") -> None:
    try:
        program.wait(END_S)
    except subprocess.TimeoutExpired:
        _log.warning("%s: still running after %g s, killing it", program.args, END_S)
        program.kill()
        program.wait()


def _confined(namespace: Path) -> Sequence[str]:
    account = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    least = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--pdeathsig=KILL"]
    return ["nsenter", f"--net={namespace}", "setpriv", *account, *least]
