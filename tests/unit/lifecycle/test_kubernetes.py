"""Nodes of EKS: the volume that was asked for is used, and Lustre goes over EFA."""

from pathlib import Path

import pytest
from scratch_node import ScratchNode

from holdfast_lifecycle.steps import lustre_efa, volume

BINDING = """\
#!/bin/bash
units={units}
case "$1" in
is-active) if [ -e $units/$2 ]; then echo active; else echo inactive; exit 3; fi ;;
enable) [ -e $units/$3.broken ] && echo "Job for $3 failed" >&2 && exit 1
  touch $units/$3
  case $3 in *.mount) where=$(sed -n 's/^Where=//p' {root}/etc/systemd/system/$3)
    echo "60 40 259:3 /bound $where rw - xfs /dev/nvme1n1 rw" >>{root}/proc/self/mountinfo ;; esac ;;
stop) rm -f $units/$2 ;;
esac
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchNode:
    made = ScratchNode(tmp_path, monkeypatch).has(
        role="Kubernetes", instance_group="workers", instance_type="ml.p5.48xlarge", fsx_mount_path=""
    )
    made.program("systemctl", BINDING.format(units=tmp_path / "units", root=made.root))
    monkeypatch.setattr(volume, "_WAIT_S", 0.0)
    return made


@pytest.fixture
def with_volume(node: ScratchNode) -> ScratchNode:
    node.mount("/opt/sagemaker", "xfs")
    (node.root / "opt/sagemaker").mkdir()
    node.write("var/lib/containerd/images/pause", "layers")
    node.write("var/lib/kubelet/config.json", "{}")
    node.runs("containerd", "kubelet")
    return node.has(has_volume=True)


def test_images_and_pods_move_to_the_volume_and_their_services_go_on(with_volume: ScratchNode) -> None:
    node = with_volume

    result = node.step("volume")

    assert result.outcome == "done"
    assert node.read("opt/sagemaker/holdfast/containerd/images/pause") == "layers"
    assert node.read("opt/sagemaker/holdfast/kubelet/config.json") == "{}"
    unit = node.read("etc/systemd/system/var-lib-containerd.mount")
    assert "What=/opt/sagemaker/holdfast/containerd\nWhere=/var/lib/containerd\nType=none\nOptions=bind\n" in unit
    assert "RequiresMountsFor=/opt/sagemaker\nBefore=containerd.service\n" in unit
    calls = [call for call in node.calls("systemctl") if "is-active" not in call]
    assert calls == [
        "systemctl stop kubelet",
        "systemctl stop containerd",
        "systemctl daemon-reload",
        "systemctl enable --now var-lib-containerd.mount",
        "systemctl daemon-reload",
        "systemctl enable --now var-lib-kubelet.mount",
        "systemctl enable --now containerd",
        "systemctl enable --now kubelet",
    ]


def test_a_second_run_moves_nothing(with_volume: ScratchNode) -> None:
    with_volume.step("volume")
    with_volume.forget()

    assert with_volume.step("volume").outcome == "satisfied"
    assert with_volume.calls("systemctl stop") == []


def test_services_that_do_not_run_yet_are_not_started(node: ScratchNode) -> None:
    node.mount("/opt/sagemaker", "xfs")
    (node.root / "opt/sagemaker").mkdir()

    assert node.step("volume").outcome == "done"
    assert node.running() == {"var-lib-containerd.mount", "var-lib-kubelet.mount"}


def test_a_folder_that_the_image_has_moved_itself_stays_where_it_is(with_volume: ScratchNode) -> None:
    with_volume.mount("/var/lib/kubelet", "xfs", root="/elsewhere")

    result = with_volume.step("volume")

    assert (result.outcome, result.remark) == (
        "satisfied",
        "/var/lib/kubelet is already in another place, and stays there",
    )


def test_a_binding_that_fails_fails_the_step_and_the_services_run_again(with_volume: ScratchNode) -> None:
    with_volume.breaks("var-lib-kubelet.mount")

    result = with_volume.step("volume")

    assert result.outcome == "failed"
    assert {"containerd", "kubelet"} <= with_volume.running()


@pytest.mark.parametrize(
    ("asked", "words"), [(True, "not mounted after"), (False, "a volume at /opt/sagemaker is not requested")]
)
def test_a_node_without_the_volume_goes_on_and_says_so(node: ScratchNode, *, asked: bool, words: str) -> None:
    result = node.has(has_volume=asked).step("volume")

    assert result.succeeded
    assert words in result.remark


def efa(node: ScratchNode, count: int, monkeypatch: pytest.MonkeyPatch) -> ScratchNode:
    drivers = node.root / "sys/bus/pci/drivers"
    for name in ("efa", "mlx5_core"):
        (drivers / name).mkdir(parents=True)
    for index in range(count):
        device = node.root / f"sys/class/infiniband/rdmap{index:02}s0/device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to(drivers / "efa")
    other = node.root / "sys/class/infiniband/mlx5_0/device"
    other.mkdir(parents=True)
    (other / "driver").symlink_to(drivers / "mlx5_core")
    node.program("lnetctl")
    node.program("modprobe")
    monkeypatch.setattr(lustre_efa, "interface_of", lambda address: {node.context.address: "ens32"}[address])
    return node.has(lustre_efa=True)


def test_lnet_gets_eight_devices_of_a_p5_in_the_order_of_the_guide(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    efa(node, 32, monkeypatch)

    assert node.step("lustre_efa").outcome == "done"

    unit = node.read("etc/systemd/system/holdfast-lustre-efa.service")
    commands = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")]
    short = [command.replace(f"{command.split('/bin/')[0]}/bin/", "") for command in commands]
    assert short[:6] == [
        "modprobe lnet",
        "modprobe kefalnd ipif_name=ens32",
        "modprobe ksocklnd",
        "lnetctl lnet configure",
        "lnetctl net del --net tcp",
        "lnetctl net add --net tcp --if ens32",
    ]
    assert commands[4].startswith("-/")
    assert [command.split()[-3] for command in short[6:14]] == [f"rdmap{index:02}s0" for index in range(0, 32, 4)]
    assert short[14:] == ["lnetctl set discovery 1", "lnetctl udsp add --src efa --priority 0", "modprobe lustre"]
    assert "holdfast-lustre-efa" in node.running()


@pytest.mark.parametrize(
    ("kind", "there", "used"), [("ml.g6e.48xlarge", 4, 2), ("ml.g6.8xlarge", 1, 1), ("ml.trn2.48xlarge", 16, 0)]
)
def test_other_types_use_two_devices_or_the_one_that_they_have(
    kind: str, there: int, used: int, node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    efa(node, there, monkeypatch)

    assert len(lustre_efa.devices(node.has(instance_type=kind).context)) == used


def test_a_node_whose_client_cannot_be_set_up_goes_on_over_tcp_and_says_so(
    node: ScratchNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    efa(node, 32, monkeypatch)
    node.breaks("holdfast-lustre-efa")

    result = node.step("lustre_efa")

    assert result.succeeded
    assert result.remark.startswith("Lustre is mounted over TCP: holdfast-lustre-efa failed")


def test_without_such_a_file_system_nothing_is_set_up(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    efa(node, 32, monkeypatch)

    assert node.has(lustre_efa=False).step("lustre_efa").outcome == "satisfied"
    assert not (node.root / "etc/systemd/system/holdfast-lustre-efa.service").exists()
