"""The agent's configuration, what it keeps, and what it writes: once, whatever ends it in between."""

import errno
import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agent_parts import instant

from holdfast_agent.configuration import Configuration, ConfigurationError, keys, load
from holdfast_agent.detectors import Detector, Instant, Seen, Support
from holdfast_agent.service import LockedError, Outbox, Service, StateFile, detectors_of
from holdfast_agent.signals import Happening, Signal
from holdfast_agent.slurm import installed_version
from holdfast_agent.verdicts import Engine, Policy, Verdict
from holdfast_common import kinds, parse_events

# --- configuration


def test_a_file_and_what_is_set_make_a_configuration(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text('{"remedies.mode": "act", "metrics": {"port": 9500}, "node.host": "ip-10-1-0-1"}')
    found = load(file=file, assignments=["remedies.breaker_share=0.5", "metrics.port=9600"], environment={})
    assert (found.remedies_mode, found.metrics_port, found.remedies_breaker_share) == ("act", 9600, 0.5)
    assert found.node_host == "ip-10-1-0-1"


def test_all_mistakes_are_told_at_once_with_what_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text('{"remedies.mode": "obey", "metrics.port": true, "kernel.log": "x", "burn_in.seconds": "long"}')
    with pytest.raises(ConfigurationError) as raised:
        load(file=file, assignments=["remedies.breaker_share=2", "controller.enabled=maybe", "nothing"], environment={})
    problems = "\n".join(raised.value.problems)
    assert len(raised.value.problems) == 7
    assert "remedies.mode must be one of observe, act, got 'obey'" in problems
    assert "metrics.port must be a whole number from 0 to 65535, got True" in problems
    assert "unknown key 'kernel.log'; allowed: " in problems
    assert "burn_in.seconds must be a number from 1 to 86400, got 'long'" in problems
    assert "--set remedies.breaker_share=2: remedies.breaker_share must be a number from 0 to 1, got '2'" in problems
    assert "controller.enabled must be true or false, got 'maybe'" in problems
    assert "--set nothing: must be KEY=VALUE" in problems


@pytest.mark.parametrize("text", ["[1]", "{", "null", '"x"', "\xff"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "agent.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError):
        load(file=file, environment={})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(file=tmp_path / "none.json", environment={})


def test_every_field_has_its_key() -> None:
    assert sorted(keys().values()) == sorted(Configuration._fields)


# --- state


def state_of(tmp_path: Path, *, node: str = "i-1", boot: str = "b") -> StateFile:
    return StateFile(path=tmp_path / "state.json", node=node, boot=boot)


def test_a_state_is_read_back_and_its_boot_is_known(tmp_path: Path) -> None:
    assert state_of(tmp_path).load() == (None, False, "")
    assert state_of(tmp_path).save({"engine": {"x": 1}})
    known, same_boot, word = state_of(tmp_path).load()
    assert known is not None
    assert (known["engine"], same_boot, word) == ({"x": 1}, True, "")
    assert state_of(tmp_path, boot="c").load()[1] is False


@pytest.mark.parametrize("text", ["", "{", '{"version": 1, "no', "[]", '{"version": 99}', "\x00" * 64])
def test_a_half_written_state_is_set_aside_with_a_word(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    known, _, word = state_of(tmp_path).load()
    assert known is None
    assert "set aside as state.json.damaged" in word
    assert (tmp_path / "state.json.damaged").read_text() == text
    assert state_of(tmp_path).load() == (None, False, "")


def test_the_state_of_another_node_is_set_aside_with_a_word(tmp_path: Path) -> None:
    state_of(tmp_path, node="i-2").save({})
    known, _, word = state_of(tmp_path).load()
    assert known is None
    assert "belongs to another node, 'i-2'; set aside as state.json.other-node" in word


def test_a_second_agent_is_refused(tmp_path: Path) -> None:
    first = state_of(tmp_path)
    first.lock()
    with pytest.raises(LockedError, match="another agent runs on this node"):
        state_of(tmp_path).lock()


# --- outbox


def outbox_of(tmp_path: Path, **given: Any) -> Outbox:
    return Outbox(path=tmp_path / "events.jsonl", cluster="c", node="i-1", **given)


def written(tmp_path: Path) -> list[str]:
    parsed = parse_events((tmp_path / "events.jsonl").read_text().splitlines())
    assert parsed.problems == ()
    return [event.evidence for event in parsed.events]


def saying(*texts: str) -> list[Happening]:
    return [Happening(kind=kinds.VERDICT, evidence=text) for text in texts]


def test_what_an_agent_wrote_before_it_was_killed_is_not_written_again(tmp_path: Path) -> None:
    first = outbox_of(tmp_path, clock=lambda: 7)  # all at the same nanosecond
    first.add(saying("one", "two", "three"))
    memory = json.loads(json.dumps(first.remember()))
    for _ in range(3):
        again = outbox_of(tmp_path)
        again.restore(memory)
        if again.pending:
            again._pending = again._pending[:1]  # killed after one more
            again.flush()
    assert written(tmp_path) == ["one", "two", "three"]


def test_what_was_written_before_the_log_was_rotated_is_not_written_again(tmp_path: Path) -> None:
    first = outbox_of(tmp_path)
    (tmp_path / "events.jsonl").write_text("\n" * 500)
    first.add(saying("one", "two"))
    memory = json.loads(json.dumps(first.remember()))
    first._pending = first._pending[:1]
    first.flush()
    (tmp_path / "events.jsonl").rename(tmp_path / "events.jsonl.1")
    again = outbox_of(tmp_path)
    again.restore(memory)
    again.flush()
    assert written(tmp_path) == ["two"]


def test_events_without_room_are_kept_and_a_torn_line_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outbox = outbox_of(tmp_path)
    outbox.add(saying("one"))
    outbox.flush()

    def full(**_: Any) -> None:
        with (tmp_path / "events.jsonl").open("a") as file:
            file.write('{"version":1,"time')
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(outbox._log, "write", full)
        outbox.add(saying("two", "three"))
        assert not outbox.flush()
        assert outbox.pending == 2
        assert "No space left" in outbox.problem
    assert outbox.flush()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["evidence"] for line in lines if line.endswith("}")] == ["one", "two", "three"]
    assert "cannot write events to" in capsys.readouterr().err


def test_events_that_wait_too_long_for_room_are_given_up_and_counted(tmp_path: Path) -> None:
    outbox = outbox_of(tmp_path)
    outbox.add(saying(*map(str, range(1005))))
    assert (outbox.pending, outbox.lost) == (1000, 5)


# --- the loop


class Scripted(Detector):
    name = "scripted"
    interval_s = 0.01

    def __init__(self, *seen: Seen) -> None:
        super().__init__()
        self.left = list(seen)

    def look(self, at: Instant) -> tuple[Seen, ...]:
        return (self.left.pop(0),) if self.left else ()


class Broken(Detector):
    name = "broken"
    interval_s = 0.01

    def look(self, at: Instant) -> tuple[Seen, ...]:
        raise RuntimeError("broken detector")


class Remedies:
    phase, problem = "idle", ""
    leaving: ClassVar[dict[str, Any]] = {}

    def __init__(self, tmp_path: Path) -> None:
        self.verdicts: list[Verdict] = []
        self.known_then: list[list[str]] = []
        self._path = tmp_path / "state.json"

    def snapshot(self) -> dict[str, Any]:
        return {"verdicts": len(self.verdicts)}

    def restore(self, snapshot: dict[str, Any]) -> bool:
        return True

    def close(self) -> None:
        pass

    def consider(self, verdicts: Any, *, jobs: Any, boot_s: float, answers: Any = ()) -> tuple[Happening, ...]:
        if verdicts:
            self.verdicts += verdicts
            opened = json.loads(self._path.read_text())["engine"]["open"]
            self.known_then.append([one["id"] for one in opened])
        return ()


def xid(code: int, boot_s: float, *, device: str = "0000:05:00") -> Signal:
    text = f"NVRM: Xid (PCI:{device}): {code}"
    return Signal(condition="xid", boot_s=boot_s, code=code, device=device, evidence=text)


def service_of(tmp_path: Path, *detectors: Detector, **given: Any) -> Service:
    return Service(
        detectors=detectors,
        engine=given.pop("engine", None) or Engine(policy=Policy.standard(), boot_id="b", node="i-1"),
        outbox=outbox_of(tmp_path),
        state=state_of(tmp_path),
        remedies=given.pop("remedies", None) or Remedies(tmp_path),
        **given,
    )


def turned(service: Service, times: int = 6) -> Service:
    service._begin()
    for _ in range(times):
        service.turn()
    return service


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo slurm-wlm 24.11.5", "slurm-wlm 24.11.5"),
        ("echo no configuration >&2; exit 1", "not known: scontrol -V: no configuration"),
        ("", ""),
    ],
)
def test_an_agent_tells_slurms_version_when_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, version: str
) -> None:
    if script:
        (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed_version() == version
    turned(service_of(tmp_path, described={"slurm": version}), times=0)
    (begun,) = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    assert (begun.kind, begun.detail.get("slurm", "")) == (kinds.AGENT_STARTED, version)


def test_what_hands_have_to_remember_is_kept(tmp_path: Path) -> None:
    turned(service_of(tmp_path, Scripted(xid(79, 5.0)), remedies=Remedies(tmp_path)))._close()
    known, _, _ = state_of(tmp_path).load()
    assert known is not None
    assert known["remedies"] == {"verdicts": 1}


def test_a_verdict_is_kept_before_it_is_acted_on(tmp_path: Path) -> None:
    remedies = Remedies(tmp_path)
    turned(service_of(tmp_path, Scripted(xid(79, 5.0)), remedies=remedies))
    (verdict,) = remedies.verdicts
    assert remedies.known_then == [[verdict.incident]]
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    (told,) = [event for event in events if event.kind == kinds.VERDICT]
    assert (told.fault, told.action, told.detail["incident"]) == ("gpu-lost", "replace", verdict.incident)
    assert told.detail["code"] == 79


def test_a_verdict_tells_when_its_incident_began_also_after_what_made_it_worse(tmp_path: Path) -> None:
    first, worse = (replace(xid(code, boot_s), time_ns=int(boot_s * 1e9)) for code, boot_s in ((31, 5.0), (79, 9.0)))
    times = count()
    turned(service_of(tmp_path, Scripted(first, worse), clock=lambda: instant(10.0 + next(times) / 100)))
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    verdicts = [event for event in events if event.kind == kinds.VERDICT]
    assert [event.detail["code"] for event in verdicts] == [31, 79]
    assert {event.detail["signal_ns"] for event in verdicts} == {5_000_000_000}


def test_a_sign_of_unknown_time_is_not_told_as_one_of_1970(tmp_path: Path) -> None:
    turned(service_of(tmp_path, Scripted(xid(79, 5.0))))
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    (told,) = [event for event in events if event.kind == kinds.VERDICT]
    assert "signal_ns" not in told.detail


def test_a_storm_of_lines_is_one_event(tmp_path: Path) -> None:
    storm = Scripted(*(xid(45, 1000.0 + n / 100) for n in range(100)))
    times = count()
    turned(service_of(tmp_path, storm, clock=lambda: instant(1000.0 + next(times) / 100)), 120)
    assert storm.left == []
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    assert len([event for event in events if event.kind == kinds.VERDICT]) == 1


def test_a_detector_that_fails_costs_the_others_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    service = turned(service_of(tmp_path, Broken(), Scripted(xid(79, 5.0))))
    assert len(service.status()["incidents"]) == 1
    described = {one["name"]: one for one in service.status()["detectors"]}
    assert described["broken"]["failed"]
    assert described["broken"]["reason"] == "RuntimeError: broken detector"
    assert capsys.readouterr().err.count("broken detector") == 1


def test_what_keeps_a_remedy_from_going_on_is_logged_once_until_it_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remedies = Remedies(tmp_path)
    service = service_of(tmp_path, remedies=remedies)
    for remedies.problem in ("", "timed out", "timed out", "refused", "", "refused"):
        service._act(instant(1000.0), ())
    assert capsys.readouterr().err.splitlines() == [
        f"remedy failed: {problem}; retrying" for problem in ("timed out", "refused", "refused")
    ]


def test_to_ask_for_the_status_makes_nothing_old_news(tmp_path: Path) -> None:
    clock = [instant(1000.0)]
    down = Signal(condition="fabric-link-down", boot_s=1000.0, device="rdmap0/1", evidence="port down")
    service = service_of(tmp_path, Scripted(down), clock=lambda: clock[0])
    turned(service, 2)
    clock[0] = instant(1061.0)
    assert service.status()["incidents"]
    service.turn()
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    assert [event.action for event in events if event.kind == kinds.VERDICT][-1] == "reboot"


class Reader:
    """What serves or sends metrics, without a thread."""

    name, problem = "sending of metrics", "Unreachable: nobody answers"
    state = problem

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def numbers(self) -> dict[str, float]:
        return {"scrapes_total": 3.0}


def test_nothing_is_measured_where_nobody_wants_to_know(tmp_path: Path) -> None:
    assert turned(service_of(tmp_path, Scripted()), 1).measured == {}
    service = service_of(tmp_path, Scripted())
    service.measure([Reader()])
    measured = turned(service, 1).measured
    assert measured["holdfast_agent_scrapes_total", ()] == 3.0
    assert measured["holdfast_detector_hung", (("detector", "scripted"),)] == 0.0
    assert service.status()["beside"] == [{"name": Reader.name, "problem": Reader.problem}]
    assert ["holdfast_detector_hung", {"detector": "scripted"}, 0.0] in service.status()["numbers"]


def test_an_agent_at_rest_looks_at_each_thing_in_its_time(tmp_path: Path) -> None:
    settings = {
        "kernel_log.path": tmp_path / "messages",
        "mounts.paths": "",
        "disks.paths": "",
        "nvml.library": "libabsent.so",
        "fabric.root": tmp_path / "none",
        "checks.directory": "",
        "hma.path": tmp_path / "hma.log",
    }
    (tmp_path / "messages").touch()
    configuration = load(file=None, assignments=[f"{name}={value}" for name, value in settings.items()], environment={})
    detectors = detectors_of(configuration)
    time_s, looked = 1000.0, dict.fromkeys((one.name for one in detectors), 0)
    while time_s < 1060.0:  # a minute, with the clock that decides when to look next
        due_s = []
        for one in detectors:
            one.look(instant(time_s))
            looked[one.name] += 1
            wanted_s = one.due_in_s(instant(time_s))
            assert wanted_s > 0 or one.asking() or looked[one.name] < 3, one.name
            due_s.append(wanted_s)
        time_s += 10.0
    for one in detectors:
        one.close()
    assert {one.name for one in detectors if one.support is Support.YES} >= {"kernel-log", "links", "stuck-processes"}


def test_an_agent_that_restarts_acts_on_what_it_knows_and_tells_nothing_twice(tmp_path: Path) -> None:
    turned(service_of(tmp_path, Scripted(xid(79, 5.0))))
    known, _, _ = state_of(tmp_path).load()
    assert known is not None
    engine = Engine.restored(policy=Policy.standard(), snapshot=known["engine"], boot_id="b")
    remedies = Remedies(tmp_path)
    turned(service_of(tmp_path, Scripted(xid(79, 5.0)), engine=engine, remedies=remedies))
    assert {verdict.fault for verdict in remedies.verdicts} == {"gpu-lost"}
    events = parse_events((tmp_path / "events.jsonl").read_text().splitlines()).events
    assert len([event for event in events if event.kind == kinds.VERDICT]) == 1
