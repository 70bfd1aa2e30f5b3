"""Forms of logs: what the kernel said is read from each, and what others wrote to the same file is not believed."""

import gzip
import json
from pathlib import Path

import pytest

from holdfast_agent.replay import replayed
from holdfast_agent.verdicts import LogReader, Policy, Record, parse_kmsg, rfc_3339, since_boot

XID = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
POLICY = Policy.standard()


def read(raw: str, *, year: int = 2025) -> Record | None:
    seen = LogReader(year=year).read(raw)
    assert seen is None or isinstance(seen, Record)
    return seen


def words(path: Path, data: bytes) -> list[dict[str, object]]:
    path.write_bytes(data)
    return [word.as_json() for word in replayed(path, policy=POLICY)]


@pytest.mark.parametrize(
    ("raw", "boot_s", "wall"),
    [
        (f"4,3964,206764307,-;{XID}", 206.764307, ""),
        (f"12,3964,206764307,c,caller=T12;{XID}", 206.764307, ""),
        (f"[   12.345678] {XID}", 12.345678, ""),
        (f"[   12.345678][ T1234] {XID}", 12.345678, ""),
        (f"<4>[   12.345678] {XID}", 12.345678, ""),
        (f"kern  :warn  : [   12.345678] {XID}", 12.345678, ""),
        (f"[Sun Feb 23 16:24:18 2025] {XID}", None, "2025-02-23T16:24:18Z"),
        (f"kern  :warn  : 2025-02-23T16:24:18,285060+00:00 {XID}", None, "2025-02-23T16:24:18.28506Z"),
        (f"2025-02-23T17:24:18,285060+01:00 {XID}", None, "2025-02-23T16:24:18.28506Z"),
        (f"Feb 23 16:24:18 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18Z"),
        (f"Feb  3 16:24:18 ip-10-1-0-12 kernel: [   12.345678] {XID}", 12.345678, "2025-02-03T16:24:18Z"),
        (f"<4>Feb 23 16:24:18 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18Z"),
        (f"Feb 23 16:24:18.123456 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18.123456Z"),
        (
            f"2025-02-23T16:24:18.123456+00:00 ip-10-1-0-12 kernel: [ 12.345678] {XID}",
            12.345678,
            "2025-02-23T16:24:18.123456Z",
        ),
        (f"2025-02-23T16:24:18+0000 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18Z"),
        (f"2025-02-23 16:24:18 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18Z"),
        (f"Sun 2025-02-23 16:24:18 UTC ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18Z"),
        (f"1740327858.123456 ip-10-1-0-12 kernel: {XID}", None, "2025-02-23T16:24:18.123456Z"),
        (f"[   12.345678] ip-10-1-0-12 kernel: {XID}", 12.345678, ""),
        (f"<4>1 2025-02-23T16:24:18.123456+00:00 ip-10-1-0-12 kernel - - - {XID}", None, "2025-02-23T16:24:18.123456Z"),
        (f'<4>1 2025-02-23T16:24:18Z ip kernel - - [meta a="b"] {XID}', None, "2025-02-23T16:24:18Z"),
        (json.dumps({"MESSAGE": XID, "__REALTIME_TIMESTAMP": "1740327858123456"}), None, "2025-02-23T16:24:18.123456Z"),
        (json.dumps({"MESSAGE": list(XID.encode()), "_SOURCE_MONOTONIC_TIMESTAMP": "12345678"}), 12.345678, ""),
        (json.dumps({"record": {"text": XID, "boot_s": 12.5}}), 12.5, ""),
        (XID, None, ""),
    ],
)
def test_text_and_time_are_read_from_every_form(raw: str, boot_s: float | None, wall: str) -> None:
    record = read(raw)

    assert record is not None
    assert (record.text, record.boot_s) == (XID, boot_s)
    assert (rfc_3339(record.time_ns) if record.time_ns else "") == wall


@pytest.mark.parametrize(
    "raw",
    [
        f"Feb 23 16:24:18 ip-10-1-0-12 python3[4242]: {XID}",
        f"Feb 23 16:24:18 ip-10-1-0-12 user: {XID}",
        f"2025-02-23T16:24:18.123456+00:00 ip-10-1-0-12 python3[4242]: {XID}",
        f"<12>1 2025-02-23T16:24:18Z ip-10-1-0-12 python3 4242 - - {XID}",
        json.dumps({"MESSAGE": XID, "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "kernel"}),
        json.dumps({"MESSAGE": XID, "_TRANSPORT": "syslog", "SYSLOG_IDENTIFIER": "python3"}),
        json.dumps({"MESSAGE": None, "_TRANSPORT": "kernel"}),
    ],
)
def test_what_another_program_wrote_proves_nothing(raw: str, tmp_path: Path) -> None:
    assert words(tmp_path / "log", raw.encode()) == []


def test_a_line_that_continues_another_programs_message_is_not_the_kernels(tmp_path: Path) -> None:
    log = f"Feb 23 16:24:18 ip kernel: usb 1-1: new device\nFeb 23 16:24:19 ip python3[42]: traceback\n  {XID}\n{XID}\n"

    assert words(tmp_path / "log", log.encode()) == []


def test_a_text_within_a_message_of_the_kernel_is_told_and_not_acted_on(tmp_path: Path) -> None:
    said = words(tmp_path / "log", f"4,1,1000000,-;systemd[1]: started check: {XID}\n".encode())

    assert [(one["fault"], one["code"], one["remedy"]) for one in said] == [("xid-unreadable", None, "none")]


def test_a_damaged_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = f"4,1,1000000,-;{XID}\n".encode()
    torn = b"4,2,2000000,-;NVRM: Xid (PCI:0000:18:0"
    data = b"\0" * 4096 + whole + b"\xff\xfe\x80 no text\n" + b"x" * 1_000_000 + b"\n" + torn
    said = words(tmp_path / "log", data)

    assert [(one["line"], one["code"], one["remedy"]) for one in said] == [(1, 79, "replace"), (4, None, "none")]


def test_a_megabyte_after_an_xid_is_cut(tmp_path: Path) -> None:
    (said,) = words(tmp_path / "log", f"4,1,1000000,-;{XID}".encode() + b"a,1: " * 250_000)

    assert said["code"] == 79
    assert len(said["evidence"][0]["text"]) == 1000  # type: ignore[index]


def test_a_torn_line_of_the_journal_is_told(tmp_path: Path) -> None:
    line = json.dumps({"_TRANSPORT": "kernel", "MESSAGE": XID})

    assert [one["fault"] for one in words(tmp_path / "log", line[:-20].encode())] == ["xid-unreadable"]


def test_a_compressed_log_is_read(tmp_path: Path) -> None:
    assert [one["code"] for one in words(tmp_path / "log.gz", gzip.compress(f"[ 1.5] {XID}\n".encode()))] == [79]


def test_records_of_dev_kmsg_give_back_what_it_escaped() -> None:
    record = parse_kmsg(
        "4,7,12500000,-;first\\x0asecond\\x09x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:05:00.0\n", booted_ns=10
    )

    assert record == Record(text="first\nsecond\tx", boot_s=12.5, time_ns=12_500_000_010, sequence=7)
    assert parse_kmsg(" SUBSYSTEM=pci") is None


def test_a_year_is_found_for_stamps_without_one() -> None:
    reader = LogReader(year=2025)
    times = [reader.read(f"{day} 00:00:01 h kernel: x") for day in ("Dec 31", "Jan  1")]

    assert [rfc_3339(one.time_ns)[:10] for one in times if isinstance(one, Record)] == ["2025-12-31", "2026-01-01"]


def test_times_are_written_in_two_ways() -> None:
    assert (since_boot(12.5), since_boot(0.0), since_boot(206.764307)) == ("+12.5s", "+0.0s", "+206.764307s")
    assert rfc_3339(0) == "1970-01-01T00:00:00Z"
    assert rfc_3339(1_709_210_096_000_000_000) == "2024-02-29T12:34:56Z"
