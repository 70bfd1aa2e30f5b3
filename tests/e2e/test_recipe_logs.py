"""
The first recipe logs to TensorBoard and MLflow, and both have every step once after ranks were lost.

Needs what examples/recipes/requirements.txt names; both servers are the real ones.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killing import PATIENT, PYTHONPATH, ROOT, Job, run_job
from ports import free_ports
from recipes import tokens
from sharded_jobs import PRELOADED

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("mlflow", "tensorboard", "flask"))),
        reason="needs what examples/recipes/requirements.txt names",
    ),
]
STEPS = 8
KILLS = (
    {"kind": "SIGKILL", "phase": "data", "rank": 1, "step": 3},
    {"kind": "SIGKILL", "phase": "update", "rank": 0, "step": 5},
)
"""Rank 0 is the one that logs."""


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


@contextlib.contextmanager
def served(command: list[str], url: str, log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        server = subprocess.Popen([sys.executable, *command], stdout=file, stderr=file)
    try:
        end = time.monotonic() + 240
        while True:
            try:
                get(url)
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.5)
        yield
    finally:
        server.terminate()
        server.wait()


def test_every_step_is_logged_once_though_the_rank_that_logs_was_lost(tmp_path: Path) -> None:
    data, board = tokens(tmp_path / "text.tokens"), tmp_path / "board"
    mlflow_port, board_port = free_ports(2)
    uri = f"http://127.0.0.1:{mlflow_port}"
    store = ["--backend-store-uri", f"sqlite:///{tmp_path}/runs.db", "--artifacts-destination", str(tmp_path / "files")]
    server = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(mlflow_port), "--workers", "1", *store]
    recipe = f"fsdp2.py --steps {STEPS} --snapshot-every 2 --data {data} --run-name lost"
    recipe += f" --tensorboard {board} --mlflow {uri}"
    with served(server, f"{uri}/health", tmp_path / "mlflow.log"):
        outcome = run_job(
            tmp_path / "job",
            Job(
                steps=STEPS,
                program=ROOT / "tests" / "support" / "recipe_program.py",
                torch=PRELOADED,
                deadlines=PATIENT,
                timeout_s=600.0,
                faults=KILLS,
                environment={
                    "RECIPE": recipe,
                    "PYTHONPATH": os.pathsep.join((PYTHONPATH, os.environ.get("PYTHONPATH", ""))),
                },
            ),
        )
        assert outcome.finished, outcome.text[-3000:]
        assert outcome.fired == {0: 1, 1: 1}
        client = importlib.import_module("mlflow").MlflowClient(uri)
        (run,) = client.search_runs(["0"], "attributes.run_name = 'lost'")
        told = {metric.step: metric.value for metric in client.get_metric_history(run.info.run_id, "loss")}
    wanted = {step: float.fromhex(ranks[0][0]) for step, ranks in outcome.steps.items()}
    assert sorted(wanted) == list(range(STEPS))
    assert told == pytest.approx(wanted)
    address = f"http://127.0.0.1:{board_port}/data/plugin/scalars"
    with served(
        ["-m", "tensorboard.main", "--logdir", str(board), "--port", str(board_port)],
        f"{address}/tags",
        tmp_path / "board.log",
    ):
        points = json.loads(get(f"{address}/scalars?run=.&tag=loss"))
    assert {step: value for _, step, value in points} == pytest.approx(wanted, rel=1e-5)
    assert [step for _, step, _ in points] == list(range(STEPS)), "what was done again has replaced what was written"
