"""Where agents disagree: each story in every form of a log, the last word on each incident, and nothing beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_logs import FORMS

from holdfast_agent.replay import replayed
from holdfast_agent.verdicts import Policy

CASES = Path(__file__).parents[3] / "cases/health/disagreements.json"
STORIES = {story["name"]: story for story in json.loads(CASES.read_text())["stories"]}
POLICY = Policy.standard()
SHARP = {43, 45, 63, 71, 94, 109, 121, 136, 142, *range(144, 151), 154, 160}


def last_words(path: Path) -> list[dict[str, Any]]:
    incidents: dict[str, dict[str, Any]] = {}
    for word in replayed(path, policy=POLICY):
        said = word.as_json()
        known = incidents.setdefault(said["incident"], {"codes": []})
        known["codes"].append(said["code"])
        known |= {"remedy": said["remedy"], "when": said["when"], "withdrawn": said["withdrawn"]}
    return list(incidents.values())


@pytest.mark.parametrize("form", FORMS)
def test_the_last_word_on_each_incident_is_that_of_the_sources(form: str, tmp_path: Path) -> None:
    for name, story in STORIES.items():
        (tmp_path / "log").write_text(FORMS[form]([(boot_s, text) for boot_s, text in story["lines"]]))

        assert last_words(tmp_path / "log") == story["incidents"], name


def test_every_sharp_disagreement_has_its_stories() -> None:
    codes = {code for story in STORIES.values() for one in story["incidents"] for code in one["codes"]}

    assert codes >= SHARP
    assert all(story["source"] for story in STORIES.values())
