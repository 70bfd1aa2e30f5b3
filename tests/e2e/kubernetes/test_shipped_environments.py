"""Environments for AWS, with their types as they are and fewer nodes, on a local cluster that really runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes_clients import kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.kubernetes, pytest.mark.timeout(900)]

COUNTS = {"system": 1, "workers": 2, "evaluation": 1}
SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
)


@pytest.mark.parametrize("name", ["eks-p5", "full"])
def test_an_environment_for_aws_deploys_and_says_what_is_not_here(kubernetes_product: Any, name: str) -> None:
    settings, before = machine_settings(), groups()

    shown = kubernetes_product.run("up", str(kubernetes_product.kubernetes_environment(name, counts=COUNTS))).stdout

    view = kubernetes_product.status()
    assert view["cluster_status"] == "InService"
    assert view["unseen"] == []
    assert view["kubernetes"].startswith("1.34, and 1.")
    assert {node["kubernetes"] for node in view["nodes"]} == {"Ready"}
    assert {node["instance_group"] for node in view["nodes"]} <= set(COUNTS)
    told = [line for line in shown.splitlines() if line.startswith("not here: ")]
    assert any("add-on" in line and "recorded alone" in line for line in told)
    assert (made := groups() - before)
    kubernetes_product.run("down")
    assert machine_settings() == settings
    assert made & groups() == set()


def test_kubectl_finds_its_way_in_by_what_env_prints(kubernetes_product: Any, tmp_path: Path) -> None:
    kubernetes_product.run("up", str(kubernetes_product.kubernetes_environment(counts={"workers": 0, "system": 1})))
    printed = kubernetes_product.run("env", "--json").stdout

    done = subprocess.run(
        [str(kubectl("1.34")), "get", "nodes", "-o", "name"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **json.loads(printed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    (node,) = kubernetes_product.status()["nodes"]
    assert done.stdout.split() == [f"node/hyperpod-{node['instance_id']}"]
    assert (kubernetes_product.home / "kubeconfig").stat().st_mode & 0o777 == 0o600


def machine_settings() -> dict[str, str]:
    """What a kubelet sets for a whole machine, unless it finds it set."""
    return {name: Path("/proc/sys", name).read_text() for name in SETTINGS}


def groups() -> set[str]:
    """The cgroups of all homes, in all hierarchies."""
    return {str(path) for path in Path("/sys/fs/cgroup").glob("*/holdfast-*")}
