"""A real Prometheus scrapes the agent's numbers, and takes those that are sent to it."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import free_port

from holdfast_agent.aws import AwsError, Settings
from holdfast_agent.machine import Machine
from holdfast_agent.metrics import MetricsServer, Sender, exposition
from holdfast_agent.service import clocks

MACHINE = Machine()
MACHINE.look(clocks())
NUMBERS = {
    **MACHINE.numbers,
    ("DCGM_FI_DEV_GPU_TEMP", (("gpu", "3"), ("pci_bus_id", "00000000:53:00.0"))): 91.0,
    ("holdfast_agent_incident", (("fault", "gpu-lost"), ("device", 'odd "name"\n'))): 1.0,
}

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs Debian's package prometheus (make monitoring)"
)


class Prometheus:
    """One that runs, and what it knows."""

    def __init__(self, *, folder: Path, scrapes: int, token: str) -> None:
        self.port = free_port()
        (folder / "token").write_text(token)
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {
                    "job_name": "holdfast-agent",
                    "authorization": {"credentials_file": str(folder / "token")},
                    "static_configs": [{"targets": [f"127.0.0.1:{scrapes}"]}],
                }
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--web.enable-remote-write-receiver",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.until(lambda: self._get("/-/ready") != "", "it is ready")

    def value(self, query: str) -> float | None:
        found = json.loads(self._get(f"/api/v1/query?query={urllib.parse.quote(query)}") or "{}")
        results = found.get("data", {}).get("result", [])
        return float(results[0]["value"][1]) if results else None

    def until(self, holds, what: str) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, f"not seen that {what}"
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()

    def _get(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.read().decode() or " "
        except OSError:
            return ""


@pytest.fixture(scope="module")
def server() -> Iterator[MetricsServer]:
    made = MetricsServer(address="127.0.0.1", port=0, token="a-token", numbers=lambda: NUMBERS)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def prometheus(server: MetricsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    made = Prometheus(folder=tmp_path_factory.mktemp("prometheus"), scrapes=server.port, token="a-token")
    yield made
    made.stop()


def test_promtool_finds_nothing_wrong_with_the_text() -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition(NUMBERS), capture_output=True, text=True, timeout=60
    )
    # It dislikes names of other exporters, such as capitals and a counter without _total: those are not ours to change.
    ours = [line for line in checked.stderr.splitlines() if line.startswith("holdfast_")]
    assert checked.returncode in (0, 3), checked.stderr
    assert ours == []


def test_what_is_scraped_is_what_was_measured(prometheus: Prometheus) -> None:
    prometheus.until(lambda: prometheus.value('DCGM_FI_DEV_GPU_TEMP{gpu="3"}') == 91.0, "the temperature is known")
    assert prometheus.value('up{job="holdfast-agent"}') == 1.0
    assert prometheus.value("node_memory_MemTotal_bytes") == NUMBERS["node_memory_MemTotal_bytes", ()]
    assert prometheus.value('holdfast_agent_incident{device="odd \\"name\\"\\n"}') == 1.0


def test_what_is_sent_is_taken(prometheus: Prometheus) -> None:
    sender = Sender(
        url=f"http://127.0.0.1:{prometheus.port}/api/v1/write",
        labels=(("instance", "ip-10-1-0-12"), ("cluster", "lab")),
        numbers=lambda: NUMBERS,
        settings=Settings(),
    )
    sender.send()

    query = 'DCGM_FI_DEV_GPU_TEMP{instance="ip-10-1-0-12", cluster="lab", gpu="3"}'
    prometheus.until(lambda: prometheus.value(query) == 91.0, "what was sent is known")


def test_what_is_not_taken_is_said(prometheus: Prometheus) -> None:
    sender = Sender(
        url=f"http://127.0.0.1:{prometheus.port}/api/v1/nowhere",
        labels=(),
        numbers=lambda: NUMBERS,
        settings=Settings(),
    )
    with pytest.raises(AwsError, match="404"):
        sender.send()
