"""The mistakes that the checks are judged by: each applies to its base, has a source, and still is a document."""

from pathlib import Path

import mistakes
import pytest
from mistakes import CLEAN, Mistake, apply, clean_files, kind_of, load, parse, subjects

ENTRIES = load()
MOST_WORDS = 20


@pytest.mark.parametrize("subject", list(subjects(ENTRIES)))
def test_a_mistake_applies_to_its_base_and_leaves_a_document(subject: str, tmp_path: Path) -> None:
    for mistake in (one.mistake for one in ENTRIES if one.subject == subject):
        before = (CLEAN / mistake.base).read_text(encoding="utf-8")
        (tmp_path / mistake.id).mkdir()
        path = apply(mistake, folder=tmp_path / mistake.id)
        after = path.read_text(encoding="utf-8")
        changed = {name for one in mistake.change if isinstance(one, mistakes.Files) for name in one.files}
        assert after != before or changed, mistake.id
        parse(after, kind=mistake.kind)


def test_there_are_as_many_mistakes_and_clean_files_as_were_asked_for() -> None:
    assert len(ENTRIES) >= 300
    assert len(clean_files()) >= 40
    environments = sum(one.mistake.kind == "environment" for one in ENTRIES)
    assert min(environments, len(ENTRIES) - environments) >= 150


def test_a_source_is_a_page_and_a_short_quotation() -> None:
    for one in ENTRIES:
        quotation = one.mistake.source.split(": ", 1)[1]
        assert len(quotation.split()) <= MOST_WORDS, one.mistake.id


def test_a_clean_file_is_a_document() -> None:
    assert [p.name for p in clean_files() if not parse(p.read_text(encoding="utf-8"), kind=kind_of(p))] == []


def test_an_entry_that_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("- {id: no-source, base: x, what: nothing at all, change: [], about: [x]}\n")
    with pytest.raises(ValueError, match=r"wrong\.yaml: no-source: source"):
        load(tmp_path)


def test_a_text_that_is_not_there_once_is_refused_by_name(tmp_path: Path) -> None:
    base = next(one for one in ENTRIES if one.mistake.kind == "environment").mistake.base
    change = (mistakes.Replacement(old="instance_count", new="x"),)
    twice = Mistake(
        id="twice", base=base, what="a text that is there often", change=change, about=("x",), source="a.md: b"
    )
    with pytest.raises(ValueError, match="twice: 'instance_count' is"):
        apply(twice, folder=tmp_path)


def test_a_mistake_is_found_by_what_is_not_said_of_the_clean_file() -> None:
    twice = next(one.mistake for one in ENTRIES if one.mistake.id == "env-two-groups-of-one-name")
    assert mistakes.found(twice)
    assert not mistakes.found(twice.model_copy(update={"about": ("something else entirely",)}))


def test_the_name_of_a_file_is_not_what_a_finding_is_about() -> None:
    base = CLEAN / "templates" / "network.yaml"
    assert not any("network.yaml" in one.path + one.message for one in mistakes.said_of_clean(base))
