"""
A HyperPodPyTorchJob under Holdfast's operator: AWS's unmodified `hyp` shows it, a killed launcher costs no step.

What `hyp` has to print is said by its source, `cli/commands/training.py` of sagemaker-hyperpod 3.12.0.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import yaml
from closed_network import closed_network
from healing import Cluster
from kubernetes_clients import hyp_programs, kubectl
from launchers_of_pods import launcher_of

from distributions import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1800)]

EXAMPLE = ROOT / "examples" / "bytelm"
JOB, REPLICA, NODES, SPARES = "bytelm", "pod", 2, 1
KIND = "hyperpodpytorchjobs.sagemaker.amazonaws.com"


def folder_of(path: Path, *, steps: int, name: str = JOB) -> Path:
    """The example as a user of AWS's operator has it."""
    shutil.copytree(EXAMPLE, path, ignore=shutil.ignore_patterns("__pycache__"))
    template = yaml.safe_load((EXAMPLE / "bytelm-operator.yaml").read_text())["spec"]["template"]
    (container,) = template["spec"]["containers"]
    program = [one for one in container.pop("args") if not one.startswith("--deadlines")]
    flags = ["--tee=3", "--nproc_per_node=1", f"--nnodes={NODES}", "--rdzv-backend=hyperpod"]
    container["command"] = ["hyperpodrun", *flags, *program, f"--steps={steps}", "--checkpoint-every=1000"]
    document = {
        "apiVersion": "sagemaker.amazonaws.com/v1",
        "kind": "HyperPodPyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "nprocPerNode": "1",
            "replicaSpecs": [{"name": REPLICA, "replicas": NODES, "spares": SPARES, "template": template}],
            "runPolicy": {"jobMaxRetryCount": 10, "cleanPodPolicy": "None", "ttlSecondsAfterFinished": -1},
        },
    }
    found = path / f"{name}.yaml"
    found.write_text(yaml.safe_dump(document))
    return found


class Clients:
    """`kubectl` and `hyp` with the kubeconfig of the product, in a network that holds its API servers alone."""

    def __init__(self, cluster: Cluster, before: list[str], config: Path) -> None:
        self.cluster = cluster
        self._before = before
        self._variables = {
            **os.environ,
            "HOME": str(cluster.product.work),
            "KUBECONFIG": str(config),
            "PATH": os.pathsep.join((str(hyp_programs()), os.environ["PATH"])),
        }

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._before, *words], capture_output=True, text=True, check=False, timeout=300, env=self._variables
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stdout  # its telemetry, which finds no route, writes one to stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.run(str(kubectl("1.34")), "get", *words, "-o", "json"))

    def true_conditions(self, name: str = JOB) -> list[str]:
        status = self.get(KIND, name).get("status") or {}
        return [one["type"] for one in status.get("conditions") or () if one["status"] == "True"]

    def pods(self) -> dict[str, str]:
        """UIDs of pods that run, by name."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self.get("pods", "-l", f"HPJob={JOB}")["items"]
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }


@pytest.fixture
def clients(kubernetes_product: Any) -> Iterator[Clients]:
    images = {name: {"source": "environment"} for name in ("training", "health_agent", "job_operator")}
    eks = yaml.safe_load((ROOT / "environments" / "local-eks.yaml").read_text())["eks"]
    environment = kubernetes_product.kubernetes_environment(
        counts={"workers": NODES + SPARES + 1}, images=images, eks={**eks, "training_operator": "holdfast"}
    )
    kubernetes_product.run("up", str(environment))
    (config,) = (kubernetes_product.home / "kubeconfigs").iterdir()
    server = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
    cluster = Cluster(kubernetes_product)
    with closed_network([urlparse(server).port or 443, kubernetes_product.port]) as before:
        yield Clients(cluster, before, config)


def test_hyp_shows_a_job_that_loses_a_launcher_one_that_ends_and_none_with_mistakes(
    clients: Clients, tmp_path: Path
) -> None:
    cluster = clients.cluster
    cluster.run(
        "submit", str(folder_of(tmp_path / "endless", steps=1_000_000)), "--prepare", str(EXAMPLE / "prepare.py")
    )
    cluster.until(lambda: cluster.kinds("job_progress"), what="a job that trains", within_s=300)
    cluster.until(lambda: len(clients.pods()) == NODES + SPARES, what="all pods", within_s=120)
    time.sleep(12)  # from here on the operator counts the spare as ready

    before, began_ns = clients.pods(), time.time_ns()
    os.kill(launcher_of(0, cluster.product.home), signal.SIGKILL)
    cluster.until(lambda: cluster.kinds("launcher_lost", since_ns=began_ns), what="a lost launcher", within_s=60)
    cluster.until(
        lambda: clients.pods().keys() == before.keys() and clients.pods() != before, what="another pod", within_s=120
    )
    cluster.until(lambda: cluster.kinds("job_progress", since_ns=time.time_ns() - 2 * 10**9), what="steps", within_s=60)

    resumed = cluster.kinds("job_resumed", since_ns=began_ns)
    named = ("hyp-pytorch-job", "--job-name", JOB)
    names = [f"{JOB}-{REPLICA}-{index}" for index in range(NODES + SPARES)]
    listed = clients.run("hyp", "list", "hyp-pytorch-job")
    described = clients.run("hyp", "describe", *named)
    pods = clients.run("hyp", "list-pods", *named)
    logs = [clients.run("hyp", "get-logs", *named, "--pod-name", name) for name in names]
    inside = clients.run("hyp", "exec", *named, "--pod", names[1], "--", "echo", "inside")

    assert resumed
    assert {one["detail"]["lost_steps"] for one in resumed} == {0}
    assert sorted(clients.pods()) == names
    assert [line.split()[:3] for line in listed.splitlines() if line.startswith(JOB)] == [[JOB, "default", "Running"]]
    assert f"Name:           {JOB}" in described
    assert [name for name in names if name not in pods] == []
    assert "holdfast-run" in "".join(logs)
    assert "inside" in inside
    assert clients.get(KIND, JOB)["status"]["restartCount"] == 1

    clients.run("hyp", "delete", *named)
    cluster.until(lambda: not clients.pods(), what="the end of its pods", within_s=150)

    short = folder_of(tmp_path / "short", steps=20, name="short")
    cluster.run("submit", str(short), "--prepare", str(EXAMPLE / "prepare.py"))
    cluster.until(lambda: "Complete" in clients.true_conditions("short"), what="its end", within_s=300)

    document = yaml.safe_load(short.read_text())
    document["metadata"]["name"] = "bad"
    document["spec"] |= {"elasticPolicy": {"minReplicas": 1}, "nprocPerNode": 1}
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(document))
    with pytest.raises(AssertionError) as error:
        clients.run(str(kubectl("1.34")), "create", "-f", str(bad))
    assert "spec.elasticPolicy.maxReplicas: got nothing" in str(error.value)
    assert "spec.nprocPerNode: got 1; allowed: 'auto', 'cpu', 'gpu', or a number as text" in str(error.value)
