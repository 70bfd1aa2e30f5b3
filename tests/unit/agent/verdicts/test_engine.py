"""Incidents: what is one, what it asks for in the end, when it is withdrawn, and what a node's history changes."""

import json
from dataclasses import replace

import pytest

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import Engine, History, Policy, SnapshotError, Verdict
from holdfast_common import Remedy, When

POLICY = Policy.standard()
A, B = "0000:05:00", "0000:18:00"
YEAR_2025_NS = 1_740_000_000_000_000_000


def xid(code: int, boot_s: float, *, device: str = A, **facts: object) -> Signal:
    return Signal(
        condition="xid",
        boot_s=boot_s,
        device=device,
        code=code,
        facts=facts,  # type: ignore[arg-type]
        evidence=f"NVRM: Xid (PCI:{device}): {code}",
    )


def condition(name: str, boot_s: float, *, device: str = "", over: bool = False, **facts: object) -> Signal:
    return Signal(
        condition=name,
        boot_s=boot_s,
        device=device,
        over=over,
        detector="test",
        facts=facts,  # type: ignore[arg-type]
        evidence=f"{name} of {device}",
    )


def engine() -> Engine:
    return Engine(policy=POLICY, boot_id="first", node="i-1")


def last(engine: Engine, *signals: Signal) -> Verdict:
    said = [verdict for signal in signals for verdict in engine.see(signal)]
    return said[-1]


def test_twenty_lines_of_one_failure_are_one_incident() -> None:
    judge = engine()
    switch = Signal(condition="sxid", boot_s=100.0, device="0000:06:00.0", code=20034, facts={"fatal": True})
    gpus = [f"0000:{16 + number:02x}:00" for number in range(8)]
    chain = [xid(code, 101.0 + number, device=gpu) for number, gpu in enumerate(gpus) for code in (74, 45)]
    said = [verdict for signal in (switch, *chain, xid(79, 110.0)) for verdict in judge.see(signal)]

    assert len(said) == 18
    assert len({verdict.incident for verdict in said if verdict.code in (20034, 74, 79)}) == 1
    assert said[-1].remedy is Remedy.REPLACE


def test_two_gpus_that_fail_a_minute_apart_are_two_incidents() -> None:
    judge = engine()

    assert last(judge, xid(79, 100.0)).incident != last(judge, xid(79, 160.0, device=B)).incident


def test_one_device_is_one_incident_however_its_address_is_written() -> None:
    judge = engine()
    spellings = ("0000:05:00", "0000:05:00.0", "00000000:05:00.0", "05:00.0", "0000:05:00.1")

    assert len({last(judge, xid(119, 100.0 + n, device=one)).incident for n, one in enumerate(spellings)}) == 1


def test_the_greatest_remedy_counts_and_now_counts_more_than_the_boundary() -> None:
    judge = engine()
    waits = last(judge, xid(63, 100.0))
    urgent = last(judge, xid(48, 101.0))
    smaller = last(judge, xid(94, 102.0))

    assert (waits.remedy, waits.when) == (Remedy.REBOOT, When.BOUNDARY)
    assert (urgent.remedy, urgent.when) == (smaller.remedy, smaller.when) == (Remedy.REBOOT, When.NOW)


def test_cleaning_up_after_another_error_asks_for_nothing_however_often() -> None:
    judge = engine()
    said = [verdict for n in range(672) for verdict in judge.see(xid(45, 100.0 + n * 0.01, pid=n))]

    assert {verdict.remedy for verdict in said} == {Remedy.NONE}
    assert len({verdict.incident for verdict in said}) == 1
    assert [verdict.news for verdict in said] == [True] + [False] * 671


def test_evidence_is_bounded_and_keeps_first_and_latest_lines_of_each_kind() -> None:
    judge = engine()
    judge.see(xid(79, 100.0), line=1)
    for number in range(100):
        judge.see(xid(45, 101.0 + number / 100), line=2 + number)
    (verdict,) = judge.see(xid(154, 103.0, action=2), line=102)

    lines = [one.line for one in verdict.evidence]
    assert len(lines) == 20
    assert lines == sorted(lines)
    assert {1, 2, 101, 102} <= set(lines)


def test_lines_of_one_burst_count_once() -> None:
    judge = engine()
    burst = [xid(43, 100.0 + number / 1000, pid=7) for number in range(50)]

    assert last(judge, *burst).remedy is Remedy.RESTART_PROCESS
    assert last(judge, xid(43, 200.0, pid=8)).remedy is Remedy.RESTART_PROCESS
    diagnosis = last(judge, xid(43, 300.0, pid=9))
    assert (diagnosis.remedy, diagnosis.when, diagnosis.check) == (Remedy.NONE, When.BOUNDARY, True)


def test_jobs_are_counted_and_not_lines() -> None:
    judge = engine()
    crash = [xid(13, 100.0 + number / 1000) for number in range(16)]
    again = [replace(one, boot_s=one.boot_s + 5000) for one in crash]
    third = [replace(one, boot_s=one.boot_s + 9000) for one in crash]

    assert last(judge, *crash).remedy is Remedy.RESTART_PROCESS
    assert last(judge, *again).remedy is Remedy.RESTART_PROCESS
    assert last(judge, *third).check


def test_a_condition_that_ends_withdraws_what_it_asked_for() -> None:
    judge = engine()
    asked = last(judge, condition("mount-stalled", 100.0, device="/fsx"))
    over = last(judge, condition("mount-stalled", 130.0, device="/fsx", over=True))

    assert (asked.remedy, asked.withdrawn) == (Remedy.REBOOT, False)
    assert (over.remedy, over.withdrawn, over.incident) == (Remedy.NONE, True, asked.incident)
    assert over.reason == "mount-stalled of /fsx"
    assert judge.standing() == ()


def test_one_of_two_conditions_that_ends_leaves_the_other() -> None:
    judge = engine()
    judge.see(condition("gpu-ecc-rate", 100.0, device=A))
    judge.see(condition("nvlink-error", 101.0, device=A))
    left = last(judge, condition("gpu-ecc-rate", 200.0, device=A, over=True))

    assert (left.remedy, left.withdrawn) == (Remedy.REBOOT, False)


def test_the_end_of_something_that_was_never_seen_says_nothing() -> None:
    assert engine().see(condition("mount-stalled", 100.0, device="/fsx", over=True)) == ()


def test_a_link_that_comes_back_within_a_minute_was_a_blip() -> None:
    judge = engine()
    down = last(judge, condition("fabric-link-down", 100.0, device="rdmap79s0"))
    early = judge.advance(boot_s=159.0)
    up = last(judge, condition("fabric-link-down", 159.5, device="rdmap79s0", over=True))

    assert (down.remedy, early, up.withdrawn) == (Remedy.NONE, (), True)
    assert judge.advance(boot_s=500.0) == ()


def test_a_link_that_stays_down_asks_when_its_minute_is_over() -> None:
    judge = engine()
    down = last(judge, condition("fabric-link-down", 100.0, device="rdmap79s0"))
    (due,) = judge.advance(boot_s=160.0)

    assert (due.incident, due.remedy, due.news) == (down.incident, Remedy.REBOOT, True)
    assert judge.advance(boot_s=161.0) == ()


def test_after_the_reboot_that_it_asked_for_a_fault_is_withdrawn_and_is_worse_when_it_comes_back() -> None:
    judge = engine()
    first = last(judge, xid(119, 100.0))
    (cured,) = judge.booted("second")
    again = last(judge, xid(119, 40.0))

    assert (first.remedy, cured.withdrawn, cured.incident) == (Remedy.REBOOT, True, first.incident)
    assert again.incident != first.incident
    assert again.remedy is Remedy.REPLACE


def test_a_fault_of_another_gpu_after_a_reboot_is_that_gpus_first() -> None:
    judge = engine()
    judge.see(xid(119, 100.0))
    judge.booted("second")

    assert last(judge, xid(119, 40.0, device=B)).remedy is Remedy.REBOOT


def test_a_remap_that_is_pending_still_after_the_reboot_is_for_a_new_node_and_that_of_another_row_is_not() -> None:
    survived, new = engine(), engine()
    for judge in (survived, new):
        judge.see(xid(63, 100.0, row="0xa"))
        judge.booted("second")
    still = last(survived, condition("gpu-remap-pending", 200.0, device=A))
    other = last(new, xid(63, 150.0, row="0xb"), condition("gpu-remap-pending", 200.0, device=A))

    assert still.remedy is Remedy.REPLACE
    assert (other.remedy, other.when) == (Remedy.REBOOT, When.BOUNDARY)


def test_asking_what_stands_takes_no_news_away() -> None:
    judge = engine()
    judge.see(condition("fabric-link-down", 100.0, device="rdmap79s0"))
    (standing,) = judge.standing()
    (due,) = judge.advance(boot_s=160.0)

    assert (standing.remedy, standing.news, due.news) == (Remedy.NONE, False, True)


def test_a_storm_without_a_reboot_does_not_climb() -> None:
    judge = engine()

    assert {last(judge, xid(119, 100.0 + 400 * number)).remedy for number in range(30)} == {Remedy.REBOOT}


def test_a_fault_that_comes_back_after_months_is_a_first_one() -> None:
    judge = engine()
    judge.see(replace(xid(119, 100.0), time_ns=YEAR_2025_NS))
    judge.booted("second")
    month_ns = 30 * 86_400_000_000_000

    assert last(judge, replace(xid(119, 40.0), time_ns=YEAR_2025_NS + month_ns)).remedy is Remedy.REBOOT


def test_what_only_a_new_node_cures_outlives_a_reboot() -> None:
    judge = engine()
    lost = last(judge, xid(79, 100.0))

    assert judge.booted("second") == ()
    assert [(one.incident, one.remedy) for one in judge.standing()] == [(lost.incident, Remedy.REPLACE)]


def test_the_boot_that_is_known_already_changes_nothing() -> None:
    judge = engine()
    judge.see(xid(119, 100.0))

    assert judge.booted("first") == ()
    assert len(judge.standing()) == 1


def test_history_outlives_the_agent() -> None:
    before = engine()
    before.see(xid(119, 100.0))
    kept = json.loads(json.dumps(before.snapshot()))
    after = Engine.restored(policy=POLICY, snapshot=kept, boot_id="second")
    (cured,) = after.advance(boot_s=5.0)

    assert cured.withdrawn
    assert last(after, xid(119, 40.0)).remedy is Remedy.REPLACE


def test_a_restart_within_a_boot_goes_on_with_the_same_incident() -> None:
    before = engine()
    first = last(before, xid(119, 100.0))
    after = Engine.restored(policy=POLICY, snapshot=json.loads(json.dumps(before.snapshot())), boot_id="first")
    second = last(after, xid(119, 107.0))

    assert (second.incident, second.news) == (first.incident, False)


@pytest.mark.parametrize("broken", [{}, {"version": 2}, {"version": 1, "open": 3}])
def test_a_snapshot_that_is_none_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(SnapshotError):
        Engine.restored(policy=POLICY, snapshot=broken)


def test_a_half_written_incident_is_refused() -> None:
    judge = engine()
    judge.see(xid(79, 100.0))
    snapshot = judge.snapshot()
    del snapshot["open"][0]["sightings"][next(iter(snapshot["open"][0]["sightings"]))]["remedy"]

    with pytest.raises(SnapshotError, match="not a snapshot"):
        Engine.restored(policy=POLICY, snapshot=snapshot)


def test_a_condition_nobody_knows_is_told_and_asks_for_nothing() -> None:
    told = last(engine(), condition("moon-phase", 100.0))

    assert (told.fault, told.remedy) == ("unknown-condition", Remedy.NONE)


def test_a_condition_named_as_a_fault_means_that_fault() -> None:
    assert last(engine(), condition("gpu-lost", 100.0, device=A)).remedy is Remedy.REPLACE


def test_a_check_may_say_what_it_asks_for_and_only_what_there_is() -> None:
    asked = last(engine(), condition("check-failed", 100.0, device="disks", remedy="replace", when="boundary"))
    refused = last(engine(), condition("check-failed", 100.0, device="disks", remedy="rm -rf /"))

    assert (asked.remedy, asked.when) == (Remedy.REPLACE, When.BOUNDARY)
    assert refused.remedy is Remedy.NONE


def test_crashes_and_cures_that_are_remembered_are_bounded() -> None:
    history = History()
    for number in range(1000):
        history.cured("gpu-lost", str(number), 1.0)
        history.crashed(str(number), pid=number, at_s=1.0, since_s=0.0)

    assert len(history.cures) == len(history.crashes) == 200
