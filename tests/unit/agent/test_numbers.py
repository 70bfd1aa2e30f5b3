"""Detectors measure what the alert rules are about, under the rules' names and with the labels that rules use."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_parts import ScriptedChild, instant, looks
from waiting import eventually

from holdfast_agent.aws import LOGS, Api, Settings
from holdfast_agent.coverage import Report
from holdfast_agent.detectors import Detector, Fabric, KernelLog, Mounts, Nvml
from holdfast_agent.fabric import read_tree
from holdfast_agent.lending import Lender
from holdfast_agent.metrics import NAMES, MetricsServer, Sender
from holdfast_agent.nvml import GPU_IS_LOST, Library, NvmlError
from holdfast_agent.service import NoRemedies, Outbox, Service, StateFile
from holdfast_agent.shipping import EventShipper, LogStream
from holdfast_agent.signals import Numbers
from holdfast_agent.slurm import Program
from holdfast_agent.verdicts import Engine, Policy

RULES = Path(__file__).parents[3] / "constructs/holdfast_constructs/observability/prometheus_rules.yaml"
METRIC = re.compile(r"\b(?:DCGM_FI|node|holdfast)_[A-Za-z0-9_]+")
OF_THE_SENDER = {"instance"}
"""Labels that a scraper, or the agent's remote write, gives to each number."""
ADDRESS = "0000:86:00.0"
GPU = {
    "index": 3,
    "pci": ADDRESS,
    "temperature_c": 40,
    "ecc": [0, 0],
    "remapped": [0, 0, 0, 0],
    "heat_ns": 5_000_000,
    "links": [1, 1],
    "link_errors": [7, 1],
}
XID = "NVRM: Xid (PCI:0000:86:00): {}, pid=1, name=python, GPU has fallen off the bus."


def of_nvml(*answers: Mapping[str, Any]) -> Nvml:
    child = ScriptedChild()
    nvml = Nvml(library="libnvidia-ml.so.1", child=child)
    for turn, gpu in enumerate(answers or (GPU,)):
        child.answer = {"driver": "580", "count": 1, "gpus": [gpu]}
        looks(nvml, [10.0 * turn + 1.0, 10.0 * turn + 2.0])
    return nvml


def of_fabric(folder: Path, *, vendor: str = "0x1d0f", device: str = "0xefa2") -> Fabric:
    counters = folder / "rdmap0s6/ports/1/hw_counters"
    counters.mkdir(parents=True)
    (folder / "rdmap0s6/device").mkdir()
    (folder / "rdmap0s6/device/vendor").write_text(f"{vendor}\n")
    (folder / "rdmap0s6/device/device").write_text(f"{device}\n")
    for name in ("rx_drops", "rdma_read_wr_err"):
        (counters / name).write_text("4\n")
    child = ScriptedChild()
    child.answer = read_tree({"root": str(folder)}, lambda _: None)
    fabric = Fabric(root=str(folder), child=child)
    looks(fabric, [1.0, 2.0])
    return fabric


def of_mounts(folder: Path) -> Mounts:
    table = folder / "mountinfo"
    table.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:50 / {folder} rw - lustre 10.0.0.1@tcp:/fsx rw\n")
    mounts = Mounts(node="i-1", mountinfo=str(table))
    eventually(lambda: bool(mounts.look(instant(1.0)) or mounts.numbers))
    mounts.close()
    return mounts


def of_kernel_log(folder: Path, nvml: Nvml | None, *codes: int) -> KernelLog:
    path = folder / "messages"
    path.touch()
    detector = KernelLog(str(path), gpus=dict if nvml is None else nvml.gpus)
    looks(detector, [100.0])
    with path.open("a") as log:
        log.writelines(f"Nov 20 10:00:00 ip-10-1-0-12 kernel: {XID.format(code)}\n" for code in codes)
    looks(detector, [100.2])
    detector.close()
    return detector


def numbers_without_a_detector(folder: Path) -> Numbers:
    """Metrics of an agent that has lost a detector."""
    service = Service(
        detectors=[],
        engine=Engine(policy=Policy.standard(), boot_id="b", node="i-1"),
        outbox=Outbox(path=folder / "events.jsonl", cluster="c", node="i-1"),
        state=StateFile(path=folder / "state.json", node="i-1", boot="b"),
        remedies=NoRemedies(),
    )
    for boot_s in range(10):
        parts = {"": "" if boot_s < 3 else "gone"}
        service._coverage.assess([Report(detector="d", parts=parts, lost_after_s=2.0)], boot_s=boot_s)
    return service.numbers()


def test_each_metric_of_a_rule_is_measured_with_the_labels_that_the_rule_uses(tmp_path: Path) -> None:
    nvml = of_nvml()
    (tmp_path / "fabric").mkdir()
    detectors: list[Detector] = [
        nvml,
        of_kernel_log(tmp_path, nvml, 79),
        of_fabric(tmp_path / "fabric"),
        of_mounts(tmp_path),
    ]
    measured: dict[str, set[str]] = {}
    for detector in detectors:
        for name, labels in detector.numbers:
            measured.setdefault(name, set()).update(label for label, _ in labels)
    for name, labels in numbers_without_a_detector(tmp_path):
        measured.setdefault(name, set()).update(label for label, _ in labels)
    for rule in (rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]):
        used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        used |= {
            label
            for inside in re.findall(r"\{([^}]*)\}", rule["expr"])
            for label in re.findall(r"(\w+)\s*[!=]", inside)
        }
        metrics = METRIC.findall(rule["expr"])
        assert metrics
        for metric in metrics:
            assert metric in NAMES, rule["alert"]
            assert used - OF_THE_SENDER <= measured.get(metric, set()), (rule["alert"], metric)


def test_each_number_that_a_detector_has_is_explained(tmp_path: Path) -> None:
    assert {name for name, _ in [*of_nvml().numbers, *of_fabric(tmp_path).numbers]} <= set(NAMES)


def test_each_number_of_what_runs_beside_the_agent_is_explained(tmp_path: Path) -> None:
    api = Api(LOGS, settings=Settings(variables={}))
    stream = LogStream(api=api, group="g", stream="i-1")
    server = MetricsServer(address="127.0.0.1", port=0, token="t", numbers=dict)
    beside = (
        EventShipper(path=tmp_path / "events", stream=stream, state=tmp_path / "state", stream_name="i-1"),
        Sender(url="http://127.0.0.1/", labels=(), numbers=dict),
        server,
        Lender(program=Program(), notice_s=60.0),
    )
    assert {f"holdfast_agent_{name}" for one in beside for name in one.numbers()} <= set(NAMES)
    server.stop()


def xids(numbers: Numbers) -> dict[tuple[tuple[str, str], ...], float]:
    return {labels: value for (name, labels), value in numbers.items() if name == "DCGM_FI_DEV_XID_ERRORS"}


def test_a_gpu_has_its_last_xid_and_none_is_zero_so_that_the_first_is_a_change(tmp_path: Path) -> None:
    labels = (("gpu", "3"), ("pci_bus_id", ADDRESS))
    (tmp_path / "quiet").mkdir()
    assert xids(of_kernel_log(tmp_path / "quiet", of_nvml()).numbers) == {labels: 0.0}
    assert xids(of_kernel_log(tmp_path, of_nvml(), 31, 79).numbers) == {labels: 79.0}


def test_an_xid_of_a_gpu_that_nvml_does_not_know_is_told_by_its_address(tmp_path: Path) -> None:
    assert xids(of_kernel_log(tmp_path, None, 79).numbers) == {(("pci_bus_id", "0000:86:00"),): 79.0}


def test_errors_of_links_stay_between_two_looks_at_links() -> None:
    without = {name: value for name, value in GPU.items() if not name.startswith("link")}
    numbers = of_nvml(GPU, without).numbers
    labels = (("gpu", "3"), ("pci_bus_id", ADDRESS))
    assert numbers["DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", labels] == 7
    assert numbers["DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", labels] == 1


def test_a_gpu_that_is_lost_keeps_its_labels() -> None:
    numbers = of_nvml(GPU, {"index": 3, "temperature_c": 50}).numbers
    assert numbers["DCGM_FI_DEV_GPU_TEMP", (("gpu", "3"), ("pci_bus_id", ADDRESS))] == 50


def test_other_fabrics_than_efa_are_not_named_as_if_they_were(tmp_path: Path) -> None:
    names = {name for name, _ in of_fabric(tmp_path, vendor="0x15b3", device="0x1021").numbers}
    assert names == {"holdfast_rdma_rx_drops", "holdfast_rdma_rdma_read_wr_err"}


class Driver:
    """Functions of an NVML: link 1 is off, and of each link the counters are 10 + link and 100 + link."""

    def nvmlDeviceGetViolationStatus(self, gpu: Any, policy: int, found: Any) -> int:  # noqa: N802
        assert policy == 1
        found._obj.reference, found._obj.violation_ns = 9, 1234
        return 0

    def nvmlDeviceGetNvLinkErrorCounter(self, gpu: Any, link: int, counter: int, number: Any) -> int:  # noqa: N802
        if link == 1:
            return 2
        number._obj.value = (10 if counter == 0 else 100) + link
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(Library, "__init__", lambda self, name: setattr(self, "_library", found))
    return found


def test_what_a_driver_counts_of_links_is_added_up_without_those_that_are_off(driver: Driver) -> None:
    library = Library("any")
    assert library.link_errors(None, 3) == [10 + 12, 100 + 102]
    assert library.link_errors(None, 0) is None
    assert library.heat_ns(None) == 1234


def test_a_driver_without_these_functions_is_no_fault(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Driver, "nvmlDeviceGetViolationStatus")
    monkeypatch.delattr(Driver, "nvmlDeviceGetNvLinkErrorCounter")
    library = Library("any")
    assert (library.heat_ns(None), library.link_errors(None, 2)) == (None, None)


def test_a_gpu_lost_while_its_links_are_asked_is_lost(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Driver, "nvmlDeviceGetNvLinkErrorCounter", lambda *_: GPU_IS_LOST)
    with pytest.raises(NvmlError):
        Library("any").link_errors(None, 1)
