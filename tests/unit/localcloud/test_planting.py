"""What can be planted, what the kernel says of it, and what NVML answers meanwhile."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.catalog import instance_types
from holdfast.localcloud.gpus import addresses, changed, healthy
from holdfast.localcloud.planting import (
    FAULTS,
    FaultError,
    fault_named,
    names_beginning_with,
    seconds_of,
)
from holdfast.localcloud.planting.lines import GpuProcess, clean_up, xid

P5 = healthy(instance_types()["ml.p5.48xlarge"])


@given(st.integers(min_value=1, max_value=999))
def test_any_xid_can_be_planted_and_its_line_is_one_of_the_drivers(code: int):
    fault = fault_named(f"xid-{code}")
    line = xid(fault.xid, address="0000:53:00.0", gpu=0, process=GpuProcess(pid=42, name="python3"))
    assert re.fullmatch(r"NVRM: Xid \(PCI:0000:53:00\): (\d+), [ -~]+", line)[1] == str(code)
    assert "{" not in line


def test_a_line_without_a_process_says_that_it_is_unknown():
    line = xid(13, address="0000:10:1c.0", gpu=0, process=None)
    assert line.startswith("NVRM: Xid (PCI:0000:10:1c): 13, pid='<unknown>', name=<unknown>, Graphics")


def test_the_line_of_79_is_that_of_the_driver():
    line = xid(79, address="0000:05:00.0", gpu=0, process=GpuProcess(pid=1, name="python3"))
    assert line == "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.mark.parametrize("gpus", [0, 1, 4, 8])
def test_a_clean_up_is_672_times_xid_45_and_all_gpus_have_their_share(gpus: int):
    known = addresses(P5)[:gpus]
    lines = clean_up(known, process=GpuProcess(pid=7, name="python3"))
    assert len(lines) == 672
    assert {re.search(r"\): (\d+),", line)[1] for line in lines} == {"45"}
    assert len({line.split(")")[0] for line in lines}) == max(1, gpus)


@pytest.mark.parametrize("name", ["xid-0", "xid-1000", "xid-N", "xid-", "xid-07", "gpu", "", "xid-9 ", "\n"])
def test_what_is_no_fault_is_refused_with_those_that_are(name: str):
    with pytest.raises(FaultError, match=r"got fault .*; allowed: xid-N, clean-up-burst, gpu-lost"):
        fault_named(name)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(seconds: float):
    with pytest.raises(FaultError, match="allowed: a number of seconds above 0"):
        seconds_of(fault_named("hung-driver"), seconds)


def test_what_is_over_at_once_takes_no_time():
    assert seconds_of(fault_named("xid-79"), None) is None
    with pytest.raises(FaultError, match="xid-79 is momentary, got --for 5; leave --for out"):
        seconds_of(fault_named("xid-79"), 5.0)


def test_names_are_completed_with_what_they_do():
    assert [name for name, _ in names_beginning_with("xid-6")] == ["xid-63-pending", "xid-63", "xid-64"]
    assert all(what for _, what in names_beginning_with(""))
    assert {name for name, _ in names_beginning_with("")} > FAULTS.keys() - {"xid-N"}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("ml.p5.48xlarge", 8),
        ("ml.p4d.24xlarge", 8),
        ("ml.g5.12xlarge", 4),
        ("ml.m5.xlarge", 0),
        ("ml.trn1.32xlarge", 0),
    ],
)
def test_a_node_has_the_gpus_of_its_type(name: str, count: int):
    known = addresses(healthy(instance_types()[name]))
    assert len(known) == len(set(known)) == count
    assert all(re.fullmatch(r"0000:[0-9a-f]{2}:[0-9a-f]{2}\.0", one) for one in known)


names = st.sampled_from(["gpu-lost", "ecc-rate", "hung-driver"])
answers = st.dictionaries(st.sampled_from(["gpu0.result", "gpu1.ecc", "device"]), st.sampled_from(["1", "x"]))


@given(st.lists(st.tuples(names, answers), max_size=8))
def test_what_was_planted_can_be_taken_away_in_any_order(planted: list[tuple[str, dict[str, str]]]):
    text = P5
    for name, lines in planted:
        text = changed(text, name=name, lines=lines)
        assert all(f"{key}={value}\n" in text for key, value in lines.items())
    for name in ("ecc-rate", "hung-driver", "gpu-lost"):
        text = changed(text, name=name, lines={})
    assert text == P5
