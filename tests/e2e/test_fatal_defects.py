"""The two faults with which no cluster came into service, put back one by one: `holdfast up` fails as AWS would."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout_copy import Checkout
from node_python import interpreter, node_sources, unions

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.timeout(600)]

FAULT = "Address = str | None\n\n\nclass Context(NamedTuple)"
FAILED = "Lifecycle scripts did not run successfully. To view lifecycle script logs, visit log group "


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.mark.slurm
def test_scripts_of_the_extension_under_oncreate_fail_the_creation(product: Any, checkout: Checkout) -> None:
    # With OnCreate HyperPod starts and mounts nothing, and these scripts only wait for Slurm and for /fsx.
    checkout.patch("lifecycle/on_create.sh", ("--hook OnCreate", "--hook OnInitComplete"))
    checkout.patch("lifecycle/holdfast_lifecycle/steps/slurm/answers.py", ("_WAIT_S = 110.0", "_WAIT_S = 5.0"))
    checkout.patch("lifecycle/holdfast_lifecycle/steps/fsx.py", ("_WAIT_S = 60.0", "_WAIT_S = 5.0"))
    path = product.environment(workers=1, spares=0, lifecycle={"mode": "custom", "users": []})

    up = product.run("up", str(path), check=False)

    assert up.returncode == 1, up.stdout + up.stderr
    assert "stack holdfast-local was not deployed and was rolled back" in up.stderr
    assert re.search(rf'Instance i-[0-9a-f]{{17}} failed to provision with the following error: "{FAILED}', up.stderr)
    lines = [line for line in up.stderr.splitlines() if line.startswith("instance i-")]
    assert len(lines) == 2
    assert all("lifecycle script on_create.sh failed with exit code 1 in step " in line for line in lines)
    assert all("expected: a file system is mounted at /fsx" in line for line in lines)  # HyperPod mounts it later
    assert not product.home.exists()


def test_a_construct_that_the_python_of_eks_nodes_lacks_is_found_by_the_static_check(checkout: Checkout) -> None:
    before = [line for path in node_sources(checkout.folder) for line in unions(path.read_text())]
    put_back(checkout)

    after = [(path.name, line) for path in node_sources(checkout.folder) for line in unions(path.read_text())]

    assert before == []
    assert [name for name, _ in after] == ["context.py"]


def test_a_construct_that_the_python_of_eks_nodes_lacks_fails_the_deployment(
    product: Any, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = interpreter("HOLDFAST_PYTHON_EKS")
    if python is None:
        pytest.skip("no Python 3.9 runs here: none in PATH, and HOLDFAST_PYTHON_EKS names none")
    monkeypatch.setenv("HOLDFAST_PYTHON_EKS", python)
    path = product.work / "eks-p5.yaml"
    path.write_text(yaml.safe_dump(two_nodes(checkout)))
    put_back(checkout)

    up = product.run("up", str(path), check=False)

    assert up.returncode == 1, up.stdout + up.stderr
    assert "no node of HyperPod cluster eks-p5 is ready in Kubernetes (none yet)" in up.stderr
    lines = [line for line in up.stderr.splitlines() if "on_create.sh failed with exit code 1" in line]
    assert len(lines) == 1
    assert "Address = str | None | TypeError: unsupported operand type(s) for |" in lines[0]
    assert not product.home.exists()


def two_nodes(checkout: Checkout) -> dict[str, Any]:
    """environments/eks-p5.yaml on the embedded AWS, with a node in each of its groups."""
    document: dict[str, Any] = yaml.safe_load((checkout.folder / "environments/eks-p5.yaml").read_text())
    document |= {"cloud": "embedded", "account": "123456789012"}
    document["storage"]["on_delete"] = "Delete"
    for group in document["cluster"]["instance_groups"]:
        group.pop("spare_count", None)
        group["instance_count"] = 1
    return document


def put_back(checkout: Checkout) -> None:
    """An annotation that Python evaluates, as the bundle had it."""
    checkout.patch("lifecycle/holdfast_lifecycle/model/context.py", ("class Context(NamedTuple)", FAULT))
