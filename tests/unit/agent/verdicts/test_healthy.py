"""Healthy nodes are left alone; `python benchmarks/health.py` does the same over 1,000 node-hours and more."""

import health
from healthy import PATTERNS, node_log

LOGS = [node_log(seed=seed, hours=24.0) for seed in range(8)]


def test_no_healthy_node_is_repaired() -> None:
    assert health.false_repairs(LOGS).total() == 0


def test_the_logs_are_such_that_a_policy_without_judgement_repairs() -> None:
    assert any("NVRM: Xid" in line.text for log in LOGS for line in log)


def test_every_pattern_comes_up_and_has_its_source() -> None:
    told = {line.pattern for seed in range(60) for line in node_log(seed=seed, hours=24.0)}

    assert told == {"", *(pattern.name for pattern in PATTERNS)}
    assert all(pattern.source for pattern in PATTERNS)


def test_a_seed_gives_the_same_log() -> None:
    assert [str(line) for line in node_log(seed=3, hours=24.0)] == [str(line) for line in LOGS[3]]


def test_one_line_of_a_real_fault_in_a_healthy_log_is_found() -> None:
    log = list(LOGS[0])
    middle = len(log) // 2
    lost = "NVRM: Xid (PCI:0000:b9:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    log.insert(middle, type(log[0])("planted", log[middle].hours, log[middle].boot_s, lost, "kernel"))

    assert health.false_repairs([log]) == {"planted": 1}
