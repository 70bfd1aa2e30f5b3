"""An elastic job in pods: it shrinks and grows back as ``holdfast scale`` asks, and what it cannot do is said."""

import json
from typing import Any

import pytest
from elastic_recipe import PREPARE, RECIPES, events, sizes, steps
from waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(1800)]
JOB = "elastic"


def test_a_job_in_pods_shrinks_and_grows_back_into_the_pods_that_wait(
    kubernetes_product: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    product = kubernetes_product
    product.run("up", str(product.kubernetes_environment(counts={"workers": 4})))
    refused(product, JOB, 2, "Kubernetes has no job elastic; to list jobs: holdfast jobs")
    product.run("submit", str(RECIPES / "elastic.yaml"), "--prepare", str(PREPARE))

    trains_on(product, 4)
    before = pods(product)
    refused(product, JOB, 5, "job elastic: 5 nodes are asked for; allowed: 2, 3, 4")
    said = product.run("scale", JOB, "2").stdout
    assert said == "job elastic: resize requested: 2 nodes; watch with: holdfast events --follow\n"
    trains_on(product, 4, 2)
    assert pods(product) == before, "those without a rank wait"
    product.run("scale", JOB, "4")
    trains_on(product, 4, 2, 4)
    assert pods(product) == before, "no pod was made anew"

    printed = steps(json.loads(product.run("logs", "--job", JOB, "--json").stdout))
    told = events(product, JOB)
    resized = [one["detail"] for one in told if one["kind"] == "job_resized"]
    assert all(one["planned"] for one in resized)
    assert printed == list(range(len(printed))), "each step is made once"
    assert len(printed) > resized[-1]["step"]
    product.run("cancel", JOB)
    eventually(lambda: pods(product) == [], "the end of its pods", within_s=200)
    refused(product, JOB, 2, "Kubernetes has no job elastic")
    with capsys.disabled():
        print(f"\n{len(printed)} steps, {resized}")


def trains_on(product: Any, *wanted: int) -> None:
    """Until these are the last sizes that the job had, and it has made steps at the last of them."""

    def so() -> bool:
        told = events(product, JOB)
        if sizes(told)[-len(wanted) :] != [*wanted]:
            return False
        last = max(at for at, one in enumerate(told) if one["kind"] in ("job_started", "job_resumed"))
        return any(one["kind"] == "job_progress" for one in told[last + 1 :])

    eventually(so, f"sizes {wanted}", within_s=600)


def pods(product: Any) -> list[str]:
    """Those that run."""
    return sorted(pod["name"] for pod in product.status()["pods"] if pod["phase"] == "Running")


def refused(product: Any, job: str, nodes: int, message: str) -> None:
    done = product.run("scale", job, str(nodes), check=False)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split()), done.stderr
