"""Recorded logs of real machines, each line labelled from the sources: all is found, and nothing is invented."""

import json
from pathlib import Path

import pytest

from holdfast_agent.replay import replayed
from holdfast_agent.verdicts import Policy

ROOT = Path(__file__).parents[4]
RECORDINGS = ROOT.parent / "shared/cases/health"
LABELS = json.loads((ROOT / "tests/cases/health/labels.json").read_text())["files"]

KEYS = ("line", "fault", "code", "device", "severity", "remedy", "when")

recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not part of the repository")


@recordings
@pytest.mark.parametrize("name", LABELS)
def test_of_a_recording_all_is_found_and_nothing_is_invented(name: str) -> None:
    words = [word.as_json() for word in replayed(RECORDINGS / name, policy=Policy.standard())]

    assert [{key: word[key] for key in KEYS} for word in words] == LABELS[name]["signals"]


@recordings
def test_every_recording_of_a_log_is_labelled() -> None:
    logs = {path.relative_to(RECORDINGS).as_posix() for path in RECORDINGS.rglob("*.log")}
    dumps = {path.relative_to(RECORDINGS).as_posix() for path in RECORDINGS.rglob("pstore/*")}

    assert logs | dumps == set(LABELS)
    assert all(recording["source"] for recording in LABELS.values())
