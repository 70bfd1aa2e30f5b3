"""
Ten manifests of ten kinds on one local EKS, each as its public source has the habit, submitted unchanged.

`tests/cases/ordinary_jobs/README.md` has their sources. What each has to print is written from the source.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ordinary_environments as made
import pytest
from kubernetes_clients import kubectl
from kubernetes_product import KubernetesProduct
from local_eks import eventually_true
from submitted_jobs import not_printed

from holdfast.localcloud.containers import ImageStore

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1500)]

CASES = Path(__file__).parents[2] / "cases" / "ordinary_jobs" / "eks"
OWN_ENVIRONMENT = CASES.parent / "pods" / "own-venv.yaml"
KINDS, AT_LEAST = 10, 8
ENDS_WITHIN_S = 240.0
IMAGES = ("123456789012.dkr.ecr.us-west-2.amazonaws.com/team/pytorch:2.8", "busybox:1.28")
TEAM = "hyperpod-ns-team-a"
VOLUME, CLAIM = "fsx-pv", "fsx-claim"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A manifest with a job that ends, and what its source says that it does."""

    file: str
    job: str
    lines: tuple[str, ...]
    """Each is in a line of the output of its own."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A manifest with what goes on until somebody deletes it."""

    file: str
    kind: str
    name: str
    selector: str
    """Of its pods."""
    line: str
    """In the output of one of them."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A manifest that needs what the local cluster lacks."""

    file: str
    words: tuple[str, ...]
    """All are in the one sentence of the refusal."""


TABLE: tuple[Case | Served | Refused, ...] = (
    Case(
        file="01-indexed-torchrun.yaml",
        job="ddp",
        lines=tuple(f"rank {rank} of 2, local rank 0: sum 1" for rank in range(2)),
    ),
    Case(file="02-configmap-script.yaml", job="linear", lines=("steps: 3 gradient: 12.0",)),
    Refused(file="03-pytorchjob.yaml", words=("PyTorchJob", "kubeflow.org/v1")),
    Refused(file="04-hyperpodpytorchjob.yaml", words=("HyperPodPyTorchJob", "sagemaker.amazonaws.com/v1")),
    Served(
        file="05-cronjob.yaml",
        kind="cronjob",
        name="hello",
        selector="app=hello",
        line="hello from the schedule",
    ),
    Case(file="06-gpu-efa-pod.yaml", job="gpu-efa", lines=("rank 0 of 1, local rank 0: sum 0",)),
    Case(
        file="07-fsx-claim.yaml",
        job="getdata-job",
        lines=("part-1.jsonl", "part-2.jsonl", "part-3.jsonl", "Data is ready."),
    ),
    Case(
        file="08-init-container.yaml",
        job="indexed-input",
        lines=tuple(f"WORDS OF SHARD {index}" for index in range(3)),
    ),
    Case(file="09-queue-label.yaml", job=f"{TEAM}/team-job", lines=("queue of the team: 10", "queue of the team: 10")),
    Served(
        file="10-tensorboard.yaml",
        kind="deployment",
        name="tensorboard",
        selector="app=tensorboard",
        line='"GET /scalars.txt HTTP/1.1" 200',
    ),
)
BEYOND = Refused(file="11-mpijob.yaml", words=("MPIJob", "kubeflow.org/v2beta1"))
"""Not among the ten: a third kind of an operator that the local cluster has not."""


class Cluster:
    """The cluster with what its administrator made: images, a claim of /fsx, a namespace of a team."""

    def __init__(self, product: KubernetesProduct, *, work: Path) -> None:
        self.product, self._work = product, work
        root = work / "root"
        made.make_image_root(root)
        shutil.copy(CASES.parent / "slurm" / "ddp.py", root / "workspace" / "ddp.py")
        made.add_image(ImageStore(home=product.home), root, names=IMAGES)
        (file_system,) = product.client("fsx").describe_file_systems()["FileSystems"]
        self.kubectl("create", "namespace", TEAM)
        self.kubectl(
            "apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": claim_of(file_system)})
        )

    def kubectl(self, *argv: str, text: str = "", check: bool = True) -> str:
        done = subprocess.run(
            [str(kubectl("1.34")), *argv],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._work),
                **json.loads(self.product.run("env", "--json").stdout),
            },
            input=text,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, file: str | Path) -> "subprocess.CompletedProcess[str]":
        done: subprocess.CompletedProcess[str] = self.product.run("submit", str(CASES / file), "--json", check=False)
        return done

    def ended(self, job: str) -> dict[str, Any]:
        """Its row, once it has ended."""

        def row() -> dict[str, Any] | None:
            shown = self.product.run("jobs", job, "--json", check=False)
            found: list[dict[str, Any]] = json.loads(shown.stdout) if shown.returncode == 0 else []
            return next((one for one in found if one["state"] in ("Complete", "Failed")), None)

        found: dict[str, Any] = eventually_true(row, f"the end of {job}", within_s=ENDS_WITHIN_S, every_s=1.0)
        return found

    def output(self, job: str) -> list[str]:
        return list(self.product.run("logs", "--job", job, check=False).stdout.splitlines())


def claim_of(file_system: dict[str, Any]) -> list[dict[str, Any]]:
    """
    A volume of the cluster's file system, and a claim that is bound to it.

    As awslabs/awsome-distributed-ai 95b939cd has them: 3.test_cases/pytorch/dreamzero/kubernetes/libero/storage.
    """
    size = {"storage": f"{file_system['StorageCapacity']}Gi"}
    attributes = {
        "dnsname": file_system["DNSName"],
        "mountname": file_system["LustreConfiguration"]["MountName"],
    }
    volume = {
        "capacity": size,
        "volumeMode": "Filesystem",
        "accessModes": ["ReadWriteMany"],
        "mountOptions": ["flock"],
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": file_system["FileSystemId"],
            "volumeAttributes": attributes,
        },
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": VOLUME,
        "resources": {"requests": size},
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": VOLUME}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": "default"},
            "spec": claim,
        },
    ]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, new_product: Callable[[Path], Any]) -> Iterator[Cluster]:
    work = tmp_path_factory.mktemp("manifests")
    charts = os.environ.get("HOLDFAST_CHARTS", "")
    product = KubernetesProduct(product=new_product(work), charts=Path(charts) if charts else None)
    counts = {"system": 1, "workers": 2}
    try:
        product.run("up", str(product.kubernetes_environment(counts=counts)))
        yield Cluster(product, work=work)
    except made.EnvironmentsError as error:
        pytest.skip(str(error))
    finally:
        product.run("down")
    assert not product.home.exists()


def test_the_table_has_ten_kinds_and_at_most_two_are_refused() -> None:
    assert {case.file for case in (*TABLE, BEYOND)} == {path.name for path in CASES.glob("*.yaml")}
    assert len(TABLE) == KINDS
    assert sum(not isinstance(case, Refused) for case in TABLE) >= AT_LEAST


@pytest.mark.parametrize("case", [*TABLE, BEYOND], ids=lambda case: case.file.removesuffix(".yaml"))
def test_a_manifest_does_what_its_source_says(cluster: Cluster, case: Case | Served | Refused) -> None:
    submitted = cluster.submit(case.file)
    if isinstance(case, Refused):
        assert submitted.returncode != 0
        said = " ".join(submitted.stderr.split())
        assert "Traceback" not in said
        assert [word for word in case.words if word not in said] == [], said
        return
    assert submitted.returncode == 0, submitted.stderr
    if isinstance(case, Served):
        goes_on(cluster, case)
        return
    row = cluster.ended(case.job)
    output = cluster.output(case.job)
    assert row["state"] == "Complete", (row, output)
    assert not_printed(case.lines, output) == [], output


def test_an_environment_of_the_user_is_what_all_programs_of_a_pod_run_in(cluster: Cluster) -> None:
    submitted = cluster.submit(OWN_ENVIRONMENT)
    assert submitted.returncode == 0, submitted.stderr
    row = cluster.ended("own-venv")
    output = cluster.output("own-venv")
    assert row["state"] == "Complete", output
    assert "programs of the image run" in output
    for program in ("python", "torchrun", "launcher"):
        assert output.count(f"{program} mine PYTHONPATH /fsx/venv 2") == 1, output
    (refused,) = [line for line in output if line.startswith("holdfast-run: ")]
    assert refused.startswith("holdfast-run: /fsx/bare/bin/python3 has no numpy, torch, xxhash; run: ")
    assert output[-1] == "exit code 2"


def goes_on(cluster: Cluster, case: Served) -> None:
    """Its pods say so within two turns of the schedule; it is deleted then."""
    try:
        eventually_true(
            lambda: case.line in cluster.kubectl("logs", "--prefix", "-l", case.selector, "--tail=-1", check=False),
            f"{case.line!r} of {case.name}",
            within_s=ENDS_WITHIN_S,
            every_s=2.0,
        )
        if case.kind == "deployment":
            cluster.kubectl("rollout", "status", f"deployment/{case.name}", "--timeout=60s")
    finally:
        cluster.kubectl("delete", case.kind, case.name, "--wait=false")
