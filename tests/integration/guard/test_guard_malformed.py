"""Requests that no SDK would send are answered as AWS answers them, and cost nothing that stays."""

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from malformed import Malformed, malformed, send

from holdfast.localcloud.aws import EmbeddedAws, serve
from holdfast.localcloud.home import keys_of

OWN = ("amp", "cloudformation", "cloudwatch", "ec2", "eks", "events", "fsx", "grafana", "logs", "sagemaker")
MOTOS = ("s3", "iam", "sts", "ssm", "kms")
INNER = ("'NoneType' object", "object has no attribute", "Traceback", "not subscriptable", "not iterable")
"""Words of Python's own, which AWS does not say."""
SEED = 15
STEADY_MB = 64
HEALTH_CPU_S = 0.5
HEALTH_S = 30.0
"""On a machine that is full of other work."""


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        yield running


def test_a_malformed_request_is_not_an_error_of_the_service(aws: EmbeddedAws) -> None:
    told = [(one, *send(one, port=aws.port, keys=aws.keys)) for one in malformed(SEED, 150, services=OWN + MOTOS)]

    assert [(str(one), body) for one, status, body in told if status >= 500 and status != 501] == []
    assert [(str(one), body) for one, _, body in told if any(words in body for words in INNER)] == []
    assert Counter(status for _, status, _ in told)[400] > 20


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"{}", "ValidationException", "Value null at 'keyId' failed to satisfy constraint: Member must not be null"),
        (b'{"KeyId": 1}', "ValidationException", "Value '1' at 'keyId' failed to satisfy constraint: Member must be"),
        (b"[]", "SerializationException", "is not a JSON object"),
        (b"{", "SerializationException", "is not JSON"),
        (b"[" * 5000, "SerializationException", "is not JSON"),
    ],
)
def test_what_a_request_lacks_is_said_in_awss_words(aws: EmbeddedAws, body: bytes, code: str, words: str) -> None:
    target = {"X-Amz-Target": "TrentService.DescribeKey", "Content-Type": "application/x-amz-json-1.1"}
    request = Malformed(service="kms", method="POST", path="/", body=body, headers=target)

    status, told = send(request, port=aws.port, keys=aws.keys)

    assert (status, json.loads(told)["__type"]) == (400, code)
    assert words in json.loads(told)["message"]


class Apart:
    """An embedded AWS in a process of its own, whose memory can be looked at."""

    def __init__(self, home: Path) -> None:
        command = [sys.executable, "-m", "holdfast.localcloud.aws", "--home", str(home), "--port", "0"]
        self._process = subprocess.Popen(
            [*command, "--hyperpod", "simulated"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip().rpartition(" ")[2]
        self.port, self.keys = int(self.endpoint.rpartition(":")[2]), keys_of(home)

    def megabytes(self) -> int:
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) // 1024

    def cpu_s(self) -> float:
        """Of all its threads."""
        words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def health(self) -> tuple[float, float]:
        """Seconds until it answers, and the work that it did in these: on a quiet machine there is nothing else."""
        began, worked = time.monotonic(), self.cpu_s()
        with urllib.request.urlopen(f"{self.endpoint}/_holdfast/health", timeout=60) as answer:
            assert json.load(answer)["status"] == "ok"
        return time.monotonic() - began, self.cpu_s() - worked

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Apart]:
    made = Apart(tmp_path)
    yield made
    made.end()


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_three_thousand_malformed_requests_over_all_services(apart: Apart, capsys: pytest.CaptureFixture[str]) -> None:
    health: list[tuple[float, float]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            health.append(apart.health())

    watcher = threading.Thread(target=watch)
    failed: list[tuple[str, str]] = []
    told: Counter[int] = Counter()
    memory: list[int] = []
    watcher.start()
    try:
        for number, one in enumerate(malformed(SEED, 3000)):
            status, body = send(one, port=apart.port, keys=apart.keys)
            told[status] += 1
            if (status >= 500 and status != 501) or any(words in body for words in INNER):
                failed.append((str(one), body[:300]))
            if number % 250 == 249:
                memory.append(apart.megabytes())
    finally:
        over.set()
        watcher.join()
    with capsys.disabled():
        most_s, most_cpu_s = (max(values) for values in zip(*health, strict=True))
        print(f"\nanswers {dict(told)}; health at most {most_s:.2f} s, {most_cpu_s:.2f} s of work, of {len(health)}")
        print(f"memory {memory} MB")
    assert failed == []
    # The first thousand load what services know; from there on nothing more is needed.
    assert memory[-1] - memory[5] < STEADY_MB
    assert most_cpu_s < HEALTH_CPU_S
    assert most_s < HEALTH_S


def test_what_lambda_was_asked_can_be_kept(aws: EmbeddedAws) -> None:
    request = Malformed(service="lambda", method="DELETE", path="/2015-03-31/functions/none", body=b"")

    assert send(request, port=aws.port, keys=aws.keys)[0] == 404
    aws._persistence.snapshot({"moto-awslambda"})
    assert aws.health()["problem"] == ""
