"""Which binaries of Kubernetes there are, what their version needs, and what a machine lacks for them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.localcloud.kubernetes.binaries import (
    COMPONENTS,
    PROGRAMS,
    RECORDS,
    VARIABLE,
    Binaries,
    BinariesError,
    Machine,
    cache_directory,
    check_machine,
    described_folders,
    find_binaries,
    knowledge,
    mirrors_among,
    notes_of_machine,
    recipe_key,
    uses_records,
    v1_controllers,
    version_flags,
)

CAPABLE = Machine(
    cgroups=1,
    controllers=frozenset(("cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids", "blkio")),
    bounding=(1 << 41) - 1,
    memory_bytes=8 << 30,
    iptables=True,
    root=True,
)
BINARIES = Binaries(directory=Path("/opt/kubernetes"), version="1.20.2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every program, which says that it is 1.31.4."""
    made = tmp_path / "binaries"
    (made / "cni").mkdir(parents=True)
    for name in (*COMPONENTS, *PROGRAMS):
        (made / name).write_text("#!/bin/sh\necho Kubernetes v1.31.4\n")
        (made / name).chmod(0o755)
    return made


def test_without_a_build_there_are_no_binaries(tmp_path: Path) -> None:
    assert find_binaries({"HOME": str(tmp_path)}) is None


def test_the_build_of_the_present_recipe_is_found_in_the_cache(tmp_path: Path, folder: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    cache_directory(environment).mkdir(parents=True)
    folder.rename(cache_directory(environment) / recipe_key())

    assert find_binaries(environment) == Binaries(
        directory=tmp_path / "holdfast" / "kubernetes" / recipe_key(), version="1.31.4"
    )


def test_a_relative_cache_folder_is_ignored_as_its_specification_says() -> None:
    environment = {"XDG_CACHE_HOME": "cache", "HOME": "/home/u"}

    assert cache_directory(environment) == Path("/home/u/.cache/holdfast/kubernetes")


def test_the_version_is_asked_of_the_api_server(folder: Path) -> None:
    found = find_binaries({VARIABLE: str(folder)})

    assert found is not None
    assert found.version == "1.31.4"
    assert not found.tried


def test_a_record_of_a_build_says_the_version(folder: Path) -> None:
    (folder / "build.json").write_text(json.dumps({"version": "1.20.2"}))

    found = find_binaries({VARIABLE: str(folder)})

    assert found is not None
    assert found.version == "1.20.2"
    assert found.tried


def test_records_on_purpose_are_no_binaries(folder: Path) -> None:
    assert uses_records({VARIABLE: RECORDS})
    assert find_binaries({VARIABLE: RECORDS}) is None
    assert not uses_records({VARIABLE: str(folder)})


def test_a_named_folder_that_lacks_programs_is_refused_with_their_names(folder: Path) -> None:
    (folder / "runc").unlink()
    (folder / "cni" / "bridge").unlink()
    (folder / "cni" / "portmap").unlink()  # only wanted by host ports

    with pytest.raises(BinariesError, match=re.escape(f"{folder} (HOLDFAST_KUBERNETES) lacks runc, cni/bridge; ")):
        find_binaries({VARIABLE: str(folder)})


def test_a_named_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BinariesError, match=r"got .*/nowhere from HOLDFAST_KUBERNETES, not a folder"):
        find_binaries({VARIABLE: str(tmp_path / "nowhere")})


def test_programs_that_others_can_change_are_refused(folder: Path) -> None:
    (folder / "etcd").chmod(0o775)

    with pytest.raises(BinariesError, match="etcd can be changed by others, and root runs it; run: chown"):
        find_binaries({VARIABLE: str(folder)})


def test_what_is_no_component_of_kubernetes_is_refused_with_what_it_said(folder: Path) -> None:
    (folder / "kube-apiserver").write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")

    with pytest.raises(BinariesError, match="kube-apiserver is not a Kubernetes component that runs here: no such"):
        find_binaries({VARIABLE: str(folder)})


def test_components_are_started_alone_or_by_the_one_program(folder: Path) -> None:
    separate = Binaries(directory=folder, version="1.31.4")
    assert separate.argv("kubelet") == [f"{folder}/kubelet"]
    assert separate.argv("kubelet", directory=Path("/opt/kube/bin")) == ["/opt/kube/bin/kubelet"]

    for name in COMPONENTS:
        (folder / name).unlink()
    (folder / "hyperkube").touch()

    assert separate.argv("kubelet") == [f"{folder}/hyperkube", "kubelet"]
    assert separate.argv("kubelet", directory=Path("/opt/kube/bin")) == ["/opt/kube/bin/hyperkube", "kubelet"]
    with pytest.raises(ValueError, match="got component 'kubectl'; allowed: "):
        separate.argv("kubectl")


def test_a_node_gets_what_it_runs_and_no_more(folder: Path) -> None:
    runtime = {"containerd", "containerd-shim-runc-v2", "ctr", "runc"}
    found = Binaries(directory=folder, version="1.31.4")
    assert found.programs().keys() == {"kubelet", "kube-proxy", *runtime}
    assert found.stand_ins is None

    for name in COMPONENTS:
        (folder / name).unlink()
    (folder / "hyperkube").touch()
    (folder / "holdfast-stand-ins").touch()

    assert found.programs().keys() == {"hyperkube", "holdfast-stand-ins", *runtime}
    assert all(path.is_file() for path in found.programs().values())
    assert found.stand_ins == folder / "holdfast-stand-ins"


@pytest.mark.parametrize(
    ("version", "component", "flags"),
    [
        ("1.20.2", "kube-apiserver", ["--feature-gates=TTLAfterFinished=true"]),
        ("1.20.2", "kube-controller-manager", ["--port=0", "--feature-gates=TTLAfterFinished=true"]),
        ("1.20.2", "kube-scheduler", ["--port=0"]),
        ("1.20.2", "kubelet", ["--container-runtime=remote", "--feature-gates=TTLAfterFinished=true"]),
        ("1.20.2", "kube-proxy", []),
        ("1.24.0", "kube-controller-manager", []),
        ("1.24.0", "kube-scheduler", []),
        ("1.26.15", "kubelet", ["--container-runtime=remote"]),
        ("1.27.0-rc.1", "kubelet", []),
        ("v1.34.1", "kubelet", []),
        ("1.35.4", "kubelet", ["--fail-cgroupv1=false"]),
    ],
)
def test_a_version_gets_the_flags_that_it_knows(version: str, component: str, flags: list[str]) -> None:
    assert version_flags(component, version=version) == flags


def test_every_row_about_versions_has_its_reason_source_and_date() -> None:
    for row in (*knowledge()["flags"], *knowledge()["feature_gates"]):
        assert row["why"]
        assert row["source"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
        assert {row.get("component"), *row.get("components", ())} - {None} <= set(COMPONENTS)
        assert "from" in row or "until" in row


def test_a_changed_program_changes_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main.go").write_text("package main")
    monkeypatch.setattr("holdfast.localcloud.kubernetes.binaries.recipe.FOLDERS", {"hyperkube": tmp_path})
    before = recipe_key()
    (tmp_path / "main_test.go").write_text("package main")
    assert recipe_key() == before

    (tmp_path / "main.go").write_text("package main // changed")

    assert recipe_key() != before
    assert re.fullmatch("[0-9a-f]{16}", recipe_key())


def test_the_mirrors_of_the_machine_are_asked_for_debian_12_alone() -> None:
    told = (
        "http://mirror.example/debian/ bookworm\nhttp://other.example/debian/ bookworm\n"
        "http://mirror.example/security/ bookworm-security\nhttps://deb.nodesource.com/node nodistro\n"
    )

    assert mirrors_among(told) == {
        "bookworm": "http://mirror.example/debian",
        "bookworm-security": "http://mirror.example/security",
    }


@pytest.mark.parametrize("told", ["", "http://archive.ubuntu.com/ubuntu/ noble\n"])
def test_a_machine_without_debian_12_asks_debian_itself(told: str) -> None:
    assert mirrors_among(told)["bookworm"] == "http://deb.debian.org/debian"


def test_described_types_are_found_by_their_mark_in_both_places(tmp_path: Path) -> None:
    for name in (
        "pkg/apis/core/v1/doc.go",
        "pkg/generated/openapi/doc.go",
        "staging/src/k8s.io/api/apps/v1/doc.go",
        "staging/src/k8s.io/sample-apiserver/doc.go",
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("// +k8s:openapi-gen=true\npackage v1\n")
    (tmp_path / "pkg" / "plain.go").write_text("package pkg\n")

    assert described_folders(tmp_path) == ["pkg/apis/core/v1", "vendor/k8s.io/api/apps/v1"]


def test_a_capable_machine_lacks_nothing() -> None:
    assert check_machine(machine=CAPABLE, binaries=BINARIES) == []
    assert notes_of_machine(machine=CAPABLE, binaries=BINARIES) == ["Kubernetes 1.20.2"]


def test_a_machine_with_version_1_without_hierarchies_is_told_which_controllers_are_missing() -> None:
    without = replace(CAPABLE, controllers=frozenset(v1_controllers("0::/user.slice\n1:name=systemd:/user.slice\n")))

    (said,) = check_machine(machine=without, binaries=BINARIES)

    assert said == (
        "kubelets require the controllers cpu, cpuacct, cpuset, devices, freezer, memory, pids, which cgroup v1 of "
        "this machine lacks; mount their hierarchies, or boot it with cgroup v2 alone"
    )


def test_a_machine_with_cgroup_v2_alone_runs_clusters_unless_a_controller_is_missing() -> None:
    machine = replace(CAPABLE, cgroups=2, controllers=frozenset(("cpu", "cpuset", "io", "memory", "pids")))

    assert check_machine(machine=machine, binaries=BINARIES) == []
    without = replace(machine, controllers=frozenset(("cpu", "pids")))
    (said,) = check_machine(machine=without, binaries=BINARIES)
    assert said.startswith(
        "kubelets require the controllers cpuset, memory, which cgroup v2 of this machine lacks; run"
    )


def test_controllers_of_one_hierarchy_are_told_apart() -> None:
    told = "12:cpu,cpuacct:/a\n3:memory:/b:c\n2:name=systemd:/\n0::/\n"

    assert set(v1_controllers(told)) == {"cpu", "cpuacct", "memory"}


def test_without_binaries_the_command_is_said_and_how_long_it_takes() -> None:
    (said,) = check_machine(machine=CAPABLE, binaries=None)

    assert said == (
        "Kubernetes binaries not found; "
        "run: holdfast kubernetes build (about 5 minutes on two free cores, once), "
        "or set HOLDFAST_KUBERNETES=records to have EKS clusters as records only"
    )


def test_what_is_wrong_with_the_binaries_is_said_beside_the_rest() -> None:
    poor = replace(CAPABLE, iptables=False)

    assert check_machine(machine=poor, binaries=BinariesError("a lacks b; do c")) == [
        "a lacks b; do c",
        "iptables not found, which kube-proxy requires; install the package iptables",
    ]


def test_another_user_than_root_is_told_so() -> None:
    (said,) = check_machine(machine=replace(CAPABLE, root=False), binaries=BINARIES)

    assert said == "namespaces and mounts of Kubernetes nodes require root; run the command with sudo"


def test_a_machine_without_sys_resource_runs_a_cluster_and_says_what_differs() -> None:
    without = replace(CAPABLE, bounding=CAPABLE.bounding & ~(1 << 24))

    assert check_machine(machine=without, binaries=BINARIES) == []
    assert notes_of_machine(machine=without, binaries=BINARIES) == [
        "Kubernetes 1.20.2",
        "there is no CAP_SYS_RESOURCE here: pods, privileged ones too, do without it",
    ]


def test_a_version_that_was_not_tried_is_said_to_be_so() -> None:
    newer = replace(BINARIES, version="1.34.1")

    assert notes_of_machine(machine=CAPABLE, binaries=newer) == [
        "Kubernetes 1.34.1",
        "this version was not tried with Holdfast",
    ]
