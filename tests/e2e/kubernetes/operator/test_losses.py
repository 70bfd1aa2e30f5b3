"""
A HoldfastJob of three nodes and a spare: a launcher is killed, a node is drained, one is replaced, all are upgraded.

Pods come back under their names, the others train on, and no step is lost or repeated.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from healing import Cluster
from kubernetes_clients import kubectl
from launchers_of_pods import launcher_of

from distributions import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1800)]

EXAMPLE = ROOT / "examples" / "bytelm"
JOB, NODES, SPARES, WORKERS = "bytelm", 3, 1, 6
BACK_WITHIN_S = 20.0
HEALTH = "sagemaker.amazonaws.com/node-health-status"


def endless(folder: Path) -> Path:
    """The example with three nodes and a spare, which trains until the test is over."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "bytelm-operator.yaml"
    document = yaml.safe_load(path.read_text())
    document["spec"]["nodes"] = {"size": NODES, "spares": SPARES}
    document["spec"]["template"]["spec"]["containers"][0]["args"] += ["--steps=1000000", "--checkpoint-every=1000"]
    path.write_text(yaml.safe_dump(document))
    return path


class Job:
    """The job as kubectl and the events of the cluster show it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def kubectl(self, *words: str) -> str:
        product = self.cluster.product
        (config,) = (product.home / "kubeconfigs").iterdir()
        done = subprocess.run(
            [str(kubectl("1.34")), "--kubeconfig", str(config), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={**os.environ, "HOME": str(product.work)},  # of its cache
        )
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def pods(self) -> dict[int, dict[str, Any]]:
        found = self.get("pods", "-l", f"holdfast.dev/job={JOB}")["items"]
        return {int(one["metadata"]["labels"]["holdfast.dev/index"]): one for one in found}

    def running(self) -> dict[int, str]:
        """UIDs of pods that run, by index."""
        return {
            index: pod["metadata"]["uid"]
            for index, pod in self.pods().items()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def node_of(self, index: int) -> str:
        return str(self.pods()[index]["spec"]["nodeName"])

    def trains_after(self, since_ns: int) -> list[dict[str, Any]]:
        return self.cluster.kinds("job_progress", since_ns=since_ns)

    def index_with_rank(self) -> int:
        """Index of a pod whose node has a rank; the last one, which is no first rank."""
        busy = self.cluster.busy()
        by_instance = {pod["spec"]["nodeName"].removeprefix("hyperpod-"): index for index, pod in self.pods().items()}
        return by_instance[busy[-1]]

    def back(self, before: dict[int, str], index: int) -> bool:
        """Return True if all pods run, and only the one of the index is another one."""
        now = self.running()
        others = {one: uid for one, uid in now.items() if one != index}
        kept = {one: uid for one, uid in before.items() if one != index}
        return others == kept and index in now and now[index] != before[index]


@pytest.fixture
def job(kubernetes_product: Any, tmp_path: Path) -> Iterator[Job]:
    images = {name: {"source": "environment"} for name in ("training", "health_agent", "job_operator")}
    environment = kubernetes_product.kubernetes_environment(counts={"workers": WORKERS}, images=images)
    kubernetes_product.run("up", str(environment))
    made = Job(Cluster(kubernetes_product))
    made.cluster.run("submit", str(endless(tmp_path / "bytelm")), "--prepare", str(EXAMPLE / "prepare.py"))
    made.cluster.until(lambda: made.cluster.kinds("job_progress"), what="a job that trains", within_s=300)
    yield made
    made.cluster.run("cancel", JOB)
    made.cluster.until(lambda: not made.pods(), what="the end of its pods", within_s=120)


def until_back(job: Job, before: dict[int, str], index: int, *, since_ns: int) -> float:
    """Seconds from the event until all pods run; on a loaded machine it may take as many times longer."""
    allowed_s = BACK_WITHIN_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    job.cluster.until(lambda: job.back(before, index), what=f"another pod {index}", within_s=allowed_s)
    took_s = (time.time_ns() - since_ns) / 1e9
    job.cluster.until(lambda: job.trains_after(time.time_ns() - 2_000_000_000), what="training", within_s=60)
    return took_s


def repeated(job: Job, since_ns: int) -> tuple[int, int]:
    """Committed steps that were lost, and recoveries, since then."""
    resumed = job.cluster.kinds("job_resumed", since_ns=since_ns)
    return sum(one["detail"]["lost_steps"] for one in resumed), len(resumed)


def test_pods_come_back_under_their_names_and_no_step_is_lost(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    job.cluster.until(lambda: len(job.running()) == NODES + SPARES, what="all pods", within_s=120)
    time.sleep(12)  # from here on the operator counts the spare as ready

    before, index, began_ns = job.running(), job.index_with_rank(), time.time_ns()
    os.kill(launcher_of(index, job.cluster.product.home), signal.SIGKILL)
    job.cluster.until(
        lambda: job.cluster.kinds("launcher_lost", since_ns=began_ns), what="a lost launcher", within_s=60
    )
    took_s = until_back(job, before, index, since_ns=began_ns)
    lost, recoveries = repeated(job, began_ns)
    lines.append(
        f"launcher of pod {index} killed: back after {took_s:.1f} s, {recoveries} recoveries, {lost} steps lost"
    )
    assert lost == 0
    assert recoveries
    status = job.get("holdfastjob", JOB)["status"]
    assert status["restarts"] == {"launchers": 1, "jobs": 0}
    time.sleep(12)

    before, index, began_ns = job.running(), job.index_with_rank(), time.time_ns()
    node = job.node_of(index)
    job.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=240s")
    empty_s = (time.time_ns() - began_ns) / 1e9
    took_s = until_back(job, before, index, since_ns=began_ns)
    lost, recoveries = repeated(job, began_ns)
    lines.append(f"node drained: empty after {empty_s:.1f} s, back after {took_s:.1f} s, {lost} steps lost")
    assert lost == 0
    assert job.cluster.kinds("launcher_lost", since_ns=began_ns) == []
    assert job.node_of(index) != node
    job.kubectl("uncordon", node)
    time.sleep(12)

    before, index, began_ns = job.running(), job.index_with_rank(), time.time_ns()
    node = job.node_of(index)
    job.kubectl("label", "node", node, f"{HEALTH}=UnschedulablePendingReplacement", "--overwrite")
    took_s = until_back(job, before, index, since_ns=began_ns)
    lost, recoveries = repeated(job, began_ns)
    lines.append(f"node labelled for its replacement: back after {took_s:.1f} s, {lost} steps lost")
    assert lost == 0
    assert job.node_of(index) != node
    status = job.get("holdfastjob", JOB)["status"]
    assert status["restarts"] == {"launchers": 1, "jobs": 0}, "hand-overs are not charged"
    assert (status["state"], status["nodes"]) == ("Running", NODES + SPARES)
    with capsys.disabled():
        print("\n" + "\n".join(lines), f"\nload {os.getloadavg()[0]:.0f} on {os.cpu_count()}")


def test_an_upgrade_of_six_nodes_one_at_a_time_loses_no_step(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.cluster.until(lambda: len(job.running()) == NODES + SPARES, what="all pods", within_s=120)
    time.sleep(12)
    began_ns = time.time_ns()

    child = job.cluster.product.popen("upgrade", "--yes", "--group", "workers", "--release", "2.0.0", "--wait", "60")
    printed, mistakes = child.communicate(timeout=1500)
    assert child.returncode == 0, printed + mistakes

    assert f"job {JOB}: spares take over from each batch" in printed
    assert f"upgraded: workers ({WORKERS})" in printed, printed
    updated = Counter(one["node"] for one in job.cluster.kinds("node_updated", since_ns=began_ns))
    assert sorted(updated.values()) == [1] * WORKERS
    job.cluster.until(lambda: job.trains_after(time.time_ns() - 2_000_000_000), what="training", within_s=60)
    lost, recoveries = repeated(job, began_ns)
    with capsys.disabled():
        print(f"\n{WORKERS} nodes upgraded in {(time.time_ns() - began_ns) / 1e9:.0f} s: ", end="")
        print(f"{recoveries} recoveries, {lost} steps lost")
    assert lost == 0
    assert recoveries >= NODES, "each node with a rank was lost once"
    assert job.get("holdfastjob", JOB)["status"]["restarts"]["jobs"] == 0


def test_mistakes_are_refused_at_once_by_admission(job: Job, tmp_path: Path) -> None:
    document = yaml.safe_load((EXAMPLE / "bytelm-operator.yaml").read_text())
    document["metadata"]["name"] = "bad"
    document["spec"] |= {"nodes": {"size": 3, "spares": 3}, "processesPerNode": "8", "replicas": 3}
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(AssertionError) as error:
        job.kubectl("create", "-f", str(path))
    for words in (
        "spec.nodes.spares: got 3; allowed: 0 to 2",
        "spec.processesPerNode: got '8'",
        "spec.replicas: unknown",
    ):
        assert words in str(error.value)
