"""The policy is data: each row has its source, the whole catalogue has rows, what is wrong is refused by its line."""

import csv
from pathlib import Path

import pytest

from holdfast_agent.signals import Signal
from holdfast_agent.verdicts import Engine, Policy
from holdfast_common import FAULTS, Remedy, When

POLICY = Policy.standard()
CATALOGUE = Path(__file__).parents[5] / "shared/cases/health/gpud/nvidia_xid_catalog.csv"

APP = {8, 11, 13, 25, 31, 32, 43, 68, 69, 71, 94, *range(126, 136), 137}
REBOOT = {46, 48, 62, 74, 95, 109, 110, 119, 120, 136, 140, 151, 155, 156, 158}
REPLACE = {54, 64, 79, 143, 167}
WATCH = {38, 44, 45, 66, 67, 92, 121, 122, 123, 124, 125, 142, *range(144, 151), 154, 157, *range(160, 166), 171, 172}


def of_xid(code: int) -> tuple[Remedy, When]:
    row = POLICY.row(Signal(condition="xid", boot_s=0.0, code=code))
    return row.remedy, row.when


@pytest.mark.parametrize(
    ("codes", "remedy"),
    [(APP, Remedy.RESTART_PROCESS), (REBOOT, Remedy.REBOOT), (REPLACE, Remedy.REPLACE), (WATCH, Remedy.NONE)],
)
def test_each_xid_asks_for_what_the_table_of_disagreements_proposes(codes: set[int], remedy: Remedy) -> None:
    assert {code: of_xid(code) for code in codes} == dict.fromkeys(codes, (remedy, When.NOW))


def test_a_pending_remap_waits() -> None:
    assert of_xid(63) == (Remedy.REBOOT, When.BOUNDARY)


@pytest.mark.skipif(not CATALOGUE.is_file(), reason="the catalogue is not part of the repository")
def test_the_whole_catalogue_has_rows() -> None:
    with CATALOGUE.open() as lines:
        codes = {int(row["code"]) for row in csv.DictReader(lines)}

    assert [code for code in codes if f"xid:{code}" not in POLICY.rows] == []


def test_every_row_has_its_source_and_date() -> None:
    assert [row.key for row in POLICY.rows.values() if not row.source or len(row.date) != len("2026-11-20")] == []


def test_codes_that_nobody_knows_ask_for_nothing() -> None:
    assert {of_xid(code)[0] for code in range(173, 1000)} == {Remedy.NONE}


def test_every_fault_can_be_told_by_its_own_name() -> None:
    judge = Engine(policy=POLICY)
    told = [judge.see(Signal(condition=fault.name, boot_s=0.0, evidence="seen"))[-1].fault for fault in FAULTS]

    assert told == [fault.name for fault in FAULTS]


def test_an_administrators_rows_go_over_the_shipped_ones() -> None:
    row = '{"condition":"xid","code":79,"fault":"gpu-lost","remedy":"reboot","source":"ours","date":"2026-11-23"}'
    policy, problems = POLICY.extended(f"# ours\n\n{row}\n")

    assert problems == ()
    assert policy.row(Signal(condition="xid", boot_s=0.0, code=79)).remedy is Remedy.REBOOT
    assert len(policy.rows) == len(POLICY.rows)


WRONG = [
    ("{", "line 1: not JSON"),
    ("[]", "line 1: must be an object"),
    ('{"condition":"xid","cod":7}', "line 1: unknown keys cod; allowed: again, asks"),
    ('{"fault":"gpu-lost"}', "line 1: condition must be the name of a condition, got None"),
    ('{"condition":"xid","code":"79"}', "line 1: code must be a number, got '79'"),
    ('{"condition":"x","fault":"gpu-lost"}', "line 1: source and date are required"),
    ('{"condition":"x","source":"s","date":"d","fault":"gone"}', "line 1: fault must be one of the taxonomy"),
    (
        '{"condition":"x","source":"s","date":"d","fault":"gpu-lost","remedy":"explode"}',
        "line 1: remedy must be one of none, restart-process, reset-gpu, reboot, replace, got 'explode'",
    ),
    (
        '{"condition":"x","source":"s","date":"d","fault":"gpu-lost","often":{"count":0,"within_s":1}}',
        "line 1: often.count must be a number of at least 1, got 0",
    ),
    ('{"condition":"x","source":"s","date":"d","fault":"gpu-lost","holds_s":-1}', "line 1: holds_s must be seconds"),
    ('{"condition":"x","source":"s","date":"d","fault":"gpu-lost","variants":{}}', "line 1: variants must be a list"),
    (
        '{"condition":"x","source":"s","date":"d","fault":"gpu-lost","variants":[{"is":1}]}',
        "line 1: a variant must be an object with fact and is or at_least",
    ),
]


@pytest.mark.parametrize(("row", "message"), WRONG)
def test_a_wrong_row_is_refused_with_its_line_and_the_rest_counts(row: str, message: str) -> None:
    good = '{"condition":"ours","fault":"check-failed","source":"ours","date":"2026-11-23"}'
    policy, problems = POLICY.extended(f"{row}\n{good}\n")

    assert len(problems) == 1
    assert problems[0].startswith(message)
    assert "ours" in policy.rows
