"""What holds of verdicts whatever is logged, in random logs."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import Engine, LogReader, Policy, Recognizer, Record, Verdict, recorded

POLICY = Policy.standard()
DEVICES = ("0000:05:00", "0000:18:00", "0000:9b:00")
CODES = (13, 31, 43, 45, 48, 63, 74, 79, 94, 95, 119, 149, 154, 162, 163, 999)

xids = st.builds(
    lambda code, device, boot_s, action: Signal(
        condition="xid",
        boot_s=boot_s,
        device=device,
        code=code,
        facts={"action": action} if code == 154 else {},
        evidence=f"NVRM: Xid (PCI:{device}): {code}",
    ),
    st.sampled_from(CODES),
    st.sampled_from(DEVICES),
    st.integers(0, 4000).map(float),
    st.integers(0, 7),
)
conditions = st.builds(
    lambda name, boot_s, over: Signal(condition=name, boot_s=boot_s, device=f"of {name}", over=over, evidence=name),
    st.sampled_from(("mount-stalled", "fabric-link-down", "driver-hung", "out-of-memory")),
    st.integers(0, 4000).map(float),
    st.booleans(),
)
logs = st.lists(st.one_of(xids, conditions), max_size=40).map(
    lambda signals: sorted(signals, key=lambda signal: signal.boot_s)
)


def engine() -> Engine:
    return Engine(policy=POLICY, boot_id="first", node="i-1")


def judged(signals: Sequence[Signal], judge: Engine | None = None) -> list[Verdict]:
    judge = judge or engine()
    return [verdict for signal in signals for verdict in judge.see(signal)]


@given(logs)
def test_the_same_log_gives_the_same_verdicts(log: list[Signal]) -> None:
    assert judged(log) == judged(log)


@given(logs, st.integers(0, 40))
def test_a_restart_anywhere_changes_no_verdict(log: list[Signal], at: int) -> None:
    before = engine()
    first = judged(log[:at], before)
    snapshot = json.loads(json.dumps(before.snapshot()))
    after = Engine.restored(policy=POLICY, snapshot=snapshot, boot_id="first")

    assert first + judged(log[at:], after) == judged(log)


@given(logs)
def test_lines_about_one_device_do_not_change_the_last_word_on_another(log: list[Signal]) -> None:
    """Wherever they stand: each device alone comes to the same end as together with others. But for what joins them."""
    apart = [signal for signal in log if signal.code not in (74, 79, 149)]

    def last_words(signals: Sequence[Signal]) -> dict[str, tuple[object, ...]]:
        judge = engine()
        said = [*judged(signals, judge), *judge.advance(boot_s=5000.0)]
        return {one.device: (one.incident, one.remedy, one.when, one.withdrawn) for one in said}

    together = last_words(apart)
    for device in {signal.device for signal in apart}:
        alone = last_words([signal for signal in apart if signal.device == device])
        assert alone.get(device) == together.get(device)


@given(logs, st.integers(-3600, 3600))
def test_a_wall_clock_that_jumps_changes_nothing(log: list[Signal], jump_s: int) -> None:
    def at(signal: Signal, *, jumped: bool) -> Signal:
        wall_s = 1_740_000_000 + signal.boot_s + (jump_s if jumped and signal.boot_s > 2000 else 0)
        return Signal(**{**vars(signal), "time_ns": int(wall_s * 1e9)})

    assert judged([at(one, jumped=True) for one in log]) == judged([at(one, jumped=False) for one in log])


@given(logs)
def test_without_a_signal_there_is_no_verdict(log: list[Signal]) -> None:
    judge = engine()

    assert [word for second in range(0, 4000, 10) for word in judge.advance(boot_s=float(second))] == []
    assert {verdict.evidence[-1].text for verdict in judged(log) if verdict.evidence} <= {one.evidence for one in log}


@given(logs)
def test_nothing_below_a_node_is_asked_of_a_log_of_processes_and_notices(log: list[Signal]) -> None:
    harmless = [
        one for one in log if one.code in (13, 31, 43, 45, 94, 162, 163, 999) or one.condition == "out-of-memory"
    ]

    assert {verdict.remedy.value for verdict in judged(harmless)} <= {"none", "restart-process"}


@given(logs)
def test_a_recording_gives_the_signals_back(log: list[Signal]) -> None:
    reader = LogReader()

    assert [reader.read(recorded(one)) for one in log] == log


PREFIXES = (
    "",
    "4,1,2,-;",
    "[ 1.0] ",
    "<4>",
    '{"MESSAGE":"',
    "Feb 29 25:61:61 h kernel: ",
    "2025-99-99T99:99:99Z h kernel: ",
)


@given(st.text(max_size=200), st.sampled_from(PREFIXES))
def test_no_line_breaks_reader_and_recognizer(text: str, prefix: str) -> None:
    reader, recognizer = LogReader(), Recognizer()
    seen = reader.read(f"{prefix}NVRM: Xid (PCI:{text}")

    if isinstance(seen, Record):
        recognizer.read(seen)
    recognizer.read(Record(text=text))
