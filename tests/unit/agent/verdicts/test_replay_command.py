"""``holdfast-agent replay``: objects or a table, 0, and 2 for a file that cannot be read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast_agent
import holdfast_common
from holdfast_agent.commands import main

LOST = "4,1,12500000,-;NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n"
CRASH = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:38:00): 13, Graphics Exception\n"
KEYS = [
    "time",
    "file",
    "line",
    "incident",
    "fault",
    "code",
    "device",
    "severity",
    "remedy",
    "when",
    "withdrawn",
    "evidence",
]


def test_each_signal_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("6,0,1,-;quiet\n" + LOST)
    two.write_text(CRASH)

    assert main(["replay", "--json-lines", str(one), str(two)]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(word) for word in said] == [KEYS, KEYS]
    incident = said[0].pop("incident")
    assert incident != said[1]["incident"]
    assert said[0] == {
        "time": "+12.5s",
        "file": str(one),
        "line": 2,
        "fault": "gpu-lost",
        "code": 79,
        "device": "0000:05:00",
        "severity": "device",
        "remedy": "replace",
        "when": "now",
        "withdrawn": False,
        "evidence": [{"line": 2, "text": "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus."}],
    }
    assert (said[1]["time"], said[1]["remedy"]) == ("2025-02-23T16:24:18Z", "restart-process")


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(LOST)

    assert main(["replay", "--json-lines", str(tmp_path / "none"), str(tmp_path), str(tmp_path / "log")]) == 2
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert f"cannot read {tmp_path / 'none'}: No such file or directory" in said.err
    assert f"cannot read {tmp_path}: Is a directory" in said.err


def test_a_compressed_file_that_ends_too_early_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.gz").write_bytes(b"\x1f\x8b\x08\x00")

    assert main(["replay", str(tmp_path / "log.gz")]) == 2
    assert "compressed file is truncated" in capsys.readouterr().err


def test_rows_of_an_administrator_are_tried_by_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(LOST)
    row = '{"condition":"xid","code":79,"fault":"gpu-lost","remedy":"reboot","source":"ours","date":"2026-11-23"}'
    (tmp_path / "rows").write_text(f"{row}\n{{}}\n")

    assert main(["replay", "--json-lines", "--policy", str(tmp_path / "rows"), str(tmp_path / "log")]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["remedy"] == "reboot"
    assert "rows: line 2: condition must be the name of a condition" in said.err
    assert main(["replay", "--policy", str(tmp_path / "none"), str(tmp_path / "log")]) == 2


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOST * 5000)
    command = [sys.executable, "-m", "holdfast_agent", "replay", "--json-lines", str(tmp_path / "log")]
    path = os.pathsep.join(str(Path(package.__file__).parents[1]) for package in (holdfast_agent, holdfast_common))
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    ) as replaying:
        assert replaying.stdout is not None
        assert replaying.stderr is not None
        replaying.stdout.readline()
        replaying.stdout.close()

        assert replaying.stderr.read() == ""
    assert replaying.returncode == 0


def test_two_nodes_with_the_same_log_have_incidents_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(LOST)
    main(["replay", "--json-lines", str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "one")])
    one, two, again = (json.loads(line)["incident"] for line in capsys.readouterr().out.splitlines())

    assert one == again != two


def test_people_get_a_table_with_what_is_asked_for_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(LOST)
    (tmp_path / "quiet").write_text("6,0,1,-;quiet\n")

    assert main(["replay", str(tmp_path / "log"), str(tmp_path / "quiet")]) == 0
    said = capsys.readouterr().out
    assert "log: 1 signals, 1 incidents" in said
    assert "final remedies: replace (" in said
    assert said.endswith("quiet: 0 signals, 0 incidents\n")
