"""Every long test is in one part of ``make e2e``, and a part that is run again repeats only what failed."""

import json
from collections import Counter
from pathlib import Path

import pytest
from resuming import passed_at, shard_of

import run_parts


def test_each_file_with_long_tests_is_in_exactly_one_part(repository: Path) -> None:
    parts = run_parts.read_parts()
    files = Counter(
        path
        for part in parts.values()
        for path in dict.fromkeys(part.paths())
        if not part.keyword or part.keyword == "sid"
    )
    long = {
        path
        for path in (repository / "tests").rglob("test_*.py")
        if "mark.e2e" in path.read_text() or path.is_relative_to(repository / "tests" / "e2e")
    }
    long -= {Path(__file__)}

    assert {path.relative_to(repository) for path in long - set(files)} == set()
    assert [str(path) for path, count in files.items() if count > 1] == []


def test_each_guarded_folder_exists(repository: Path) -> None:
    guarded = {folder for part in run_parts.read_parts().values() for folder in part.guards}

    assert [folder for folder in sorted(guarded) if not (repository / folder).exists()] == []


def test_shards_are_neighbours_and_together_all_cases() -> None:
    cases = [str(number) for number in range(11)]

    shards = [shard_of(cases, shard=number, shards=3) for number in (1, 2, 3)]

    assert [case for shard in shards for case in shard] == cases
    assert {len(shard) for shard in shards} == {3, 4}


def test_a_case_is_done_when_its_newest_result_at_this_commit_is_a_pass(tmp_path: Path) -> None:
    results = tmp_path / "part.jsonl"
    lines = [("a", "passed", "c1"), ("b", "passed", "c1"), ("b", "failed", "c1"), ("c", "passed", "c0")]
    results.write_text(
        "".join(
            json.dumps({"case": case, "outcome": outcome, "commit": commit}) + "\n" for case, outcome, commit in lines
        )
        + '{"case": "d", "outc'
    )

    assert passed_at(results, "c1") == {"a"}
    assert passed_at(results, "c1+changes") == set()
    assert passed_at(tmp_path / "none.jsonl", "c1") == set()


def test_an_unknown_part_is_refused_with_those_that_exist() -> None:
    with pytest.raises(SystemExit, match=r"got part 'kill'; allowed: around-steps, .*kills-replicas"):
        run_parts.selected(run_parts.read_parts(), ["kill"])


def test_a_part_is_run_whole_or_by_shard() -> None:
    chosen = run_parts.selected(run_parts.read_parts(), ["kills-replicas", "kills-sharded-2"])

    assert [(part.name, shard) for part, shard in chosen] == [
        ("kills-replicas", 1),
        ("kills-replicas", 2),
        ("kills-sharded", 2),
    ]
