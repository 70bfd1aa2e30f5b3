"""A detector that worked and works no more is an event, whatever took its source; one that never worked is none."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from agent_parts import ScriptedChild, instant

from holdfast_agent.coverage import Change, Coverage, Report
from holdfast_agent.detectors import Checks, Detector, Fabric, Instant, KernelLog, Links, Mounts, Nvml, Seen
from holdfast_agent.machine import Machine
from holdfast_agent.service import NoRemedies, Outbox, Service, StateFile
from holdfast_agent.verdicts import Engine, Policy
from holdfast_common import kinds, parse_events


def assessed(coverage: Coverage, times_s: range, **parts: str | None) -> list[tuple[int, str, bool]]:
    """When which part changed; a part is named after an underscore, and the whole is ``_``."""
    given = {name.removeprefix("_"): why for name, why in parts.items()}
    found = []
    for time_s in times_s:
        report = Report(detector="d", parts=given, lost_after_s=10.0)
        found += [(time_s, one.part, one.lost) for one in coverage.assess([report], boot_s=time_s)]
    return found


def test_what_never_worked_is_not_lost() -> None:
    assert assessed(Coverage(), range(300), _="no driver") == []


def test_what_worked_is_lost_once_when_it_has_failed_for_long_enough_and_back_once() -> None:
    coverage = Coverage()
    assert assessed(coverage, range(5), _="") == []
    assert assessed(coverage, range(5, 60), _="gone") == [(15, "", True)]
    assert coverage.lost() == {("d", ""): "gone"}
    assert assessed(coverage, range(60, 70), _="") == [(60, "", False)]
    assert coverage.lost() == {}
    assert assessed(coverage, range(70, 79), _="gone") == []  # and it counts from the beginning
    assert assessed(coverage, range(79, 90), _="gone") == [(80, "", True)]


def test_failures_that_do_not_last_are_no_loss() -> None:
    coverage = Coverage()
    for time_s in range(0, 200, 8):
        assert assessed(coverage, range(time_s, time_s + 1), _="") == []
        assert assessed(coverage, range(time_s + 1, time_s + 8), _="away for a moment") == []


def test_a_pass_without_a_result_changes_nothing() -> None:
    coverage = Coverage()
    assessed(coverage, range(3), _="", _fsx="")
    assert assessed(coverage, range(3, 100), _="", _fsx=None) == []
    assert assessed(coverage, range(100, 120), _="", _fsx="hangs") == [(110, "fsx", True)]


def test_an_agent_that_stood_still_for_an_hour_has_seen_no_failure_of_an_hour() -> None:
    coverage = Coverage()
    assessed(coverage, range(3), _="")
    assessed(coverage, range(3, 5), _="gone")
    assert assessed(coverage, range(3605, 3606), _="gone") == []
    assert assessed(coverage, range(3606, 3620), _="gone") == [(3612, "", True)]


def test_a_part_that_is_not_watched_any_more_is_neither_lost_nor_stays_so() -> None:
    coverage = Coverage()
    assessed(coverage, range(3), _="", _fan="", _disk="")
    assert assessed(coverage, range(3, 20), _="", _fan="reported no result", _disk="") == [(13, "fan", True)]
    assert assessed(coverage, range(20, 40), _="") == [(20, "fan", False)]
    assert coverage.remember() == [["d", ""]]


@pytest.mark.parametrize(("same_boot", "at_s"), [(True, 10), (False, 120)])
def test_a_restarted_agent_knows_what_worked_and_reports_the_loss_again(same_boot: bool, at_s: int) -> None:
    first = Coverage()
    assessed(first, range(3), _="")
    second = Coverage()
    second.restore(json.loads(json.dumps(first.remember())), same_boot=same_boot)
    assert assessed(second, range(300), _="gone") == [(at_s, "", True)]


# --- real sources that fail


def changes(detector: Detector, coverage: Coverage, times_s: range) -> list[Change]:
    """As the service does: a pass each second."""
    found: list[Change] = []
    for time_s in times_s:
        detector.look(instant(time_s))
        report = Report(detector=detector.name, parts=detector.parts, lost_after_s=detector.lost_after_s)
        found += coverage.assess([report], boot_s=time_s)
    return found


def test_a_kernel_log_that_is_taken_away_is_lost_and_back_when_it_is_there_again(tmp_path: Path) -> None:
    log, coverage = tmp_path / "kmsg", Coverage()
    log.write_text("")
    detector = KernelLog(str(log))
    assert changes(detector, coverage, range(3)) == []
    log.unlink()
    (lost,) = changes(detector, coverage, range(3, 30))
    assert (lost.lost, lost.for_s <= 12.0) == (True, True)
    assert "No such file" in lost.why
    log.write_text("")
    assert [one.lost for one in changes(detector, coverage, range(30, 35))] == [False]
    detector.close()


def test_a_file_of_metrics_that_is_taken_away_is_a_loss(tmp_path: Path) -> None:
    snmp, coverage = tmp_path / "snmp", Coverage()
    snmp.write_text("Tcp: OutSegs RetransSegs\nTcp: 1 0\n")
    detector = Links(path=str(snmp))
    assert changes(detector, coverage, range(3)) == []
    snmp.unlink()
    assert [one.lost for one in changes(detector, coverage, range(3, 30))] == [True]


def test_a_file_of_the_machines_metrics_that_is_taken_away_is_a_loss_of_its_own(tmp_path: Path) -> None:
    for name in ("loadavg", "meminfo", "stat", "vmstat"):
        (tmp_path / name).write_text("")
    detector, coverage = Machine(proc=tmp_path), Coverage()
    assert changes(detector, coverage, range(3)) == []
    (tmp_path / "meminfo").unlink()
    (lost,) = changes(detector, coverage, range(3, 30))
    assert (lost.part, lost.lost) == ("meminfo", True)


ROW = "36 35 0:30 / {point} rw - lustre 10.1.0.9@tcp:/fsx rw"


class Probed(Mounts):
    """Mounts whose probes are answered by the test."""

    def __init__(self, table: Path, **given: Any) -> None:
        super().__init__(node="i-1", mountinfo=str(table), **given)
        self.children: dict[str, ScriptedChild] = {}

    def _begin(self, at: Instant, point: str, folder: str) -> Any:
        watched = super()._begin(at, point, folder)
        watched.child = self.children.setdefault(point, ScriptedChild())
        watched.child.answer = {"errno": None}
        return watched


def test_a_file_system_that_is_not_mounted_any_more_is_a_loss(tmp_path: Path) -> None:
    table, coverage = tmp_path / "mountinfo", Coverage()
    table.write_text(f"{ROW.format(point='/fsx')}\n{ROW.format(point='/mnt/of-a-pod')}\n")
    detector = Probed(table)
    assert changes(detector, coverage, range(12)) == []
    table.write_text("")
    (lost,) = changes(detector, coverage, range(12, 60))
    assert (lost.part, lost.lost, lost.why) == ("/fsx", True, "/fsx is not mounted")


def test_a_probe_that_hangs_is_a_loss_beside_its_verdict(tmp_path: Path) -> None:
    table, coverage = tmp_path / "mountinfo", Coverage()
    table.write_text(f"{ROW.format(point='/fsx')}\n")
    detector = Probed(table)
    assert changes(detector, coverage, range(6)) == []
    detector.children["/fsx"].answer = None
    (lost,) = changes(detector, coverage, range(6, 40))
    assert (lost.part, lost.lost) == ("/fsx", True)
    assert "does not answer" in lost.why
    detector.children["/fsx"].answer = {"errno": None}
    assert [one.lost for one in changes(detector, coverage, range(40, 50))] == [False]


def test_nvml_that_worked_before_the_boot_and_has_no_driver_after_it_is_a_loss() -> None:
    child, coverage = ScriptedChild(), Coverage()
    coverage.restore([["nvml", ""]], same_boot=False)
    child.answer = {"absent": "libnvidia-ml.so.1: cannot open shared object file"}
    detector = Nvml(library="libnvidia-ml.so.1", child=child)
    (lost,) = changes(detector, coverage, range(300))
    assert (lost.detector, lost.lost) == ("nvml", True)
    fresh = Nvml(library="libnvidia-ml.so.1", child=child)
    assert changes(fresh, Coverage(), range(300)) == []


@pytest.mark.parametrize("answer", [{"failed": 9, "text": "NVML error 9"}, None])
def test_nvml_that_fails_or_hangs_is_a_loss(answer: Any) -> None:
    child, coverage = ScriptedChild(), Coverage()
    detector = Nvml(library="x", child=child)
    child.answer = {"count": 1, "gpus": [{"index": 0, "pci": "0000:01:00.0"}]}
    assert changes(detector, coverage, range(12)) == []
    child.answer = answer
    assert [one.lost for one in changes(detector, coverage, range(12, 200))] == [True]
    child.answer = {"count": 1, "gpus": [{"index": 0, "pci": "0000:01:00.0"}]}
    assert [one.lost for one in changes(detector, coverage, range(200, 220))] == [False]


def test_a_tree_of_devices_that_does_not_answer_is_a_loss(tmp_path: Path) -> None:
    child, coverage = ScriptedChild(), Coverage()
    detector = Fabric(root=str(tmp_path), child=child)
    port = {"state": "ACTIVE", "physical": "LinkUp", "rate": "100", "layer": "InfiniBand", "counters": {}}
    child.answer = {"efa0": {"kind": "efa 0xefa2", "ports": {"1": port}}}
    assert changes(detector, coverage, range(15)) == []
    child.answer = None
    assert [one.lost for one in changes(detector, coverage, range(15, 60))] == [True]


def test_a_check_that_cannot_say_any_more_is_a_loss_and_one_that_never_could_is_none(tmp_path: Path) -> None:
    for name, text in (("fan", "exit 0"), ("never", "exit 2")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        (tmp_path / f"{name}.json").write_text('{"interval_s": 1}')
    detector, coverage = Checks(directory=str(tmp_path)), Coverage()
    assert until(detector, coverage, "fan", "", from_s=100) == []
    (tmp_path / "fan").write_text("#!/bin/sh\nexit 2\n")
    changed = until(detector, coverage, "fan", "reported no result", from_s=1000)
    changed += changes(detector, coverage, range(1900, 1912))
    detector.close()
    assert [(one.part, one.lost) for one in changed] == [("fan", True)]


def until(detector: Detector, coverage: Coverage, part: str, state: str, *, from_s: int) -> list[Change]:
    """Real programs end in their own time."""
    found: list[Change] = []
    for time_s in range(from_s, from_s + 900):
        found += changes(detector, coverage, range(time_s, time_s + 1))
        if detector.parts.get(part) == state:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{part} is {detector.parts.get(part)!r}")


# --- the loop


class Failing(Detector):
    name = "failing"
    interval_s = 0.01

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def look(self, at: Instant) -> tuple[Seen, ...]:
        if self.broken:
            raise RuntimeError("no such device")
        self.supported()
        return ()


def test_an_agent_writes_that_a_detector_is_lost_and_back_and_its_status_and_metrics_have_it(tmp_path: Path) -> None:
    now = [1000.0]
    detector = Failing()
    service = Service(
        detectors=[detector],
        engine=Engine(policy=Policy.standard(), boot_id="b", node="i-1"),
        outbox=Outbox(path=tmp_path / "events.jsonl", cluster="c", node="i-1"),
        state=StateFile(path=tmp_path / "state.json", node="i-1", boot="b"),
        remedies=NoRemedies(),
        clock=lambda: instant(now[0]),
    )
    service._begin()

    def turn(times: int) -> None:
        for _ in range(times):
            now[0] += 1.0
            service.turn()

    turn(3)
    detector.broken = True
    turn(20)
    assert service.status()["lost"] == [{"detector": "failing", "part": "", "why": "RuntimeError: no such device"}]
    assert service.numbers()["holdfast_detector_lost", (("detector", "failing"), ("part", ""))] == 1.0
    detector.broken = False
    turn(3)
    assert service.status()["lost"] == []
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    told = [(one.kind, one.evidence) for one in events if one.kind != kinds.AGENT_STARTED]
    assert told == [
        (kinds.DETECTOR_LOST, "failing: RuntimeError: no such device"),
        (kinds.DETECTOR_BACK, "failing: works again"),
    ]
    assert json.loads((tmp_path / "state.json").read_text())["coverage"] == [["failing", ""]]
