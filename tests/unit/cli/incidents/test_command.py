"""``holdfast incidents``: what it prints of recorded logs, for people and programs, and what it refuses."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from holdfast import cli
from holdfast.cli.deployed import AwsError, Context
from holdfast.cli.views.incidents import Fleet, incident_table, rows_of
from holdfast_common import parse_events

FIELDS = [
    "id", "node", "host", "fault", "state", "when", "started_ns", "signal_s", "verdict_s", "training_again_s",
    "replaced_s", "at_strength_s", "steps_lost", "steps_redone", "gpu_hours", "cost_usd", "reported_gpu_hours",
    "reported_cost_usd", "job", "replacement", "repaired_with", "remedies", "evidence", "reported_by_job",
]  # fmt: skip
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def logs(repository: Path) -> Path:
    return repository / "tests" / "cases" / "events"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, repository: Path) -> Run:
    monkeypatch.chdir(repository)

    def of(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["holdfast", "incidents", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return of


def told(run: Run, log: Path, *words: str) -> list[dict[str, Any]]:
    code, out, err = run("--events", log, "--environment", "local", "--json", *words)
    assert code == 0, err
    rows: list[dict[str, Any]] = json.loads(out)
    return rows


@pytest.mark.parametrize(
    ("log", "states"),
    [
        ("hand-over", ["gpu-lost repaired"]),
        ("boundary", ["row-remap-pending repaired"]),
        ("withdrawn", ["mount-stalled withdrawn"]),
        ("breaker", ["gpu-lost repaired", "gpu-lost refused", "gpu-lost refused", "gpu-lost refused"]),
        ("two-at-once", ["gpu-lost repaired", "driver-hung repaired"]),
        ("during-a-replacement", ["gpu-lost repaired", "stalled-mount repaired", "lifecycle-failed repaired"]),
        ("controller-restart", ["instance-lost repaired"]),
        ("rehearsal", ["instance-lost repaired", "instance-lost repaired"]),
    ],
)
def test_the_incidents_of_each_log_and_their_last_state(run: Run, logs: Path, log: str, states: list[str]) -> None:
    rows = told(run, logs / f"{log}.jsonl")

    assert [f"{row['fault']} {row['state']}" for row in rows] == states
    assert [list(row) for row in rows] == [FIELDS] * len(rows)


def test_a_hand_over_loses_no_step_and_its_seconds_are_those_of_the_log(run: Run, logs: Path) -> None:
    (row,) = told(run, logs / "hand-over.jsonl")

    counted = [row[name] for name in FIELDS if name.endswith("_s")]
    assert counted == pytest.approx([0.05, 0.41, 1.92, 10.1, 19.1])
    assert (row["steps_lost"], row["steps_redone"], row["job"], row["when"]) == (0, 0, "7", "now")
    assert [(step["remedy"], step["way"], step["outcome"]) for step in row["remedies"]] == [
        ("replace", "runtime", "done"),
        ("replace", "slurm", "done"),
    ]
    assert row["evidence"][0]["text"].startswith("NVRM: Xid (PCI:0000:3b:00): 79")


def test_a_fault_at_the_boundary_is_handed_over_only_there(run: Run, logs: Path) -> None:
    (row,) = told(run, logs / "boundary.jsonl")

    assert (row["when"], row["replacement"]) == ("boundary", None)
    assert row["training_again_s"] == pytest.approx(31.2)
    assert row["steps_lost"] == 0


def test_a_refused_incident_leaves_its_node_in_the_job_and_says_why(run: Run, logs: Path) -> None:
    refused = told(run, logs / "breaker.jsonl")[1:]

    assert {row["training_again_s"] for row in refused} == {None}
    assert all(row["evidence"][-1]["text"].startswith("breaker is open") for row in refused)
    assert [[step["outcome"] for step in row["remedies"]] for row in refused] == [["refused"]] * 3


def test_the_broken_instance_is_priced_and_what_the_job_reports_of_the_others_stands_apart(
    run: Run, logs: Path
) -> None:
    (row,) = told(run, logs / "hand-over.jsonl", "--price", "36")

    broken, others = (10.1 - 1.92) / 3600, 3 * 0.74 / 3600
    assert (row["gpu_hours"], row["cost_usd"]) == (pytest.approx(8 * broken), pytest.approx(36 * broken))
    assert row["reported_gpu_hours"] == pytest.approx(8 * others)
    assert row["reported_cost_usd"] == pytest.approx(36 * others)
    assert {"steps_lost", "at_strength_s", "reported_cost_usd"} < set(row["reported_by_job"])
    assert not {"cost_usd", "gpu_hours", "training_again_s"} & set(row["reported_by_job"])


def test_what_it_took_is_unknown_without_instance_types_and_while_an_incident_goes_on(run: Run, logs: Path) -> None:
    code, out, _ = run("--events", logs / "hand-over.jsonl", "--json")
    open_rows = told(run, logs / "breaker.jsonl")[1:]

    assert code == 0
    assert [(row["gpu_hours"], row["cost_usd"]) for row in [*json.loads(out), *open_rows]] == [(None, None)] * 4


def test_a_withdrawn_verdict_took_nothing(run: Run, logs: Path) -> None:
    (row,) = told(run, logs / "withdrawn.jsonl")

    assert (row["gpu_hours"], row["cost_usd"], row["remedies"]) == (0.0, 0.0, [])


@pytest.mark.parametrize("columns", [80, 200])
def test_the_table_has_every_incident_whole_at_any_width(logs: Path, columns: int) -> None:
    events = parse_events((logs / "two-at-once.jsonl").read_text().splitlines()).events
    console = Console(file=StringIO(), width=columns)
    console.print(incident_table([row for _, row in rows_of(events, Fleet())]))
    assert isinstance(console.file, StringIO)
    out = console.file.getvalue()

    for text in ("i3-4f1c-5", "i2-90aa-1", "driver-hung", "ip-10-1-0-13", "19.0 s", "33.0 s"):
        assert text in out
    assert max(map(len, out.splitlines())) <= columns


@pytest.mark.parametrize("wanted", ["i2-90aa-1", "i2-9"])
def test_one_incident_is_told_in_detail_by_its_id_or_the_beginning_of_it(run: Run, logs: Path, wanted: str) -> None:
    code, out, _ = run(wanted, "--events", logs / "two-at-once.jsonl", "--environment", "local")

    assert code == 0
    assert out.index("first sign") < out.index("verdict") < out.index("resumes") < out.index("full strength")
    assert "NVML: a query has not returned for 12.0 s" in out
    assert "i3-4f1c-5" not in out


def test_an_id_that_was_shown_before_the_agent_spoke_finds_the_incident(run: Run, logs: Path, tmp_path: Path) -> None:
    lines = (logs / "hand-over.jsonl").read_text().splitlines()
    early = tmp_path / "early.jsonl"
    until = next(at for at, line in enumerate(lines) if '"fault_injected"' in line) + 1
    early.write_text("\n".join(lines[:until]))
    (before,) = told(run, early)

    (after,) = told(run, logs / "hand-over.jsonl", before["id"])

    assert (before["state"], before["id"] == after["id"], after["state"]) == ("unnoticed", False, "repaired")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing-like-it"], "there is no incident 'nothing-like-it'; the newest: i3-4f1c-5, i2-90aa-1"),
        (["i"], "got 'i', which begins the ids i3-4f1c-5, i2-90aa-1; give one of them"),
        (["--price", "cheap"], "got --price 'cheap'; allowed: dollars per instance-hour, 0 or more, or one of"),
        (["--price", "nan"], "got --price 'nan'; allowed"),
        (["--since", "soon"], "got --since 'soon'"),
        (["--cluster", "prod"], "got --events and --cluster"),
        (["--html", "/nowhere/page.html"], "--html /nowhere/page.html cannot be written"),
    ],
)
def test_a_mistake_is_told_with_what_is_allowed_and_ends_with_2(
    run: Run, logs: Path, words: list[str], says: str
) -> None:
    code, _, err = run("--events", logs / "two-at-once.jsonl", *words)

    assert code == 2
    assert says in " ".join(err.split())
    assert "Traceback" not in err


def test_a_file_without_events_is_refused(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("not an event\n")

    code, _, err = run("--events", empty)

    assert code == 2
    assert "holds no event" in err


def test_a_calm_log_has_no_incidents_and_that_is_no_error(run: Run, logs: Path, tmp_path: Path) -> None:
    calm = tmp_path / "calm.jsonl"
    calm.write_text((logs / "rehearsal.jsonl").read_text().splitlines()[0])

    assert run("--events", calm)[0] == 0
    assert json.loads(run("--events", calm, "--json")[1]) == []


def test_only_those_that_began_since_a_time_are_shown(run: Run, logs: Path) -> None:
    rows = told(run, logs / "rehearsal.jsonl", "--since", "2026-11-21T05:34:00")

    assert [row["job"] for row in rows] == ["2"]


def test_a_torn_line_is_named_and_the_rest_is_told(run: Run, logs: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text((logs / "hand-over.jsonl").read_text() + '{"version":1,"time_ns":17')

    code, out, err = run("--events", torn, "--environment", "local", "--json")

    assert (code, len(json.loads(out))) == (0, 1)
    assert err.count("set aside") == 1
    assert "1 line of " in err


def test_one_bad_byte_is_one_bad_line(run: Run, logs: Path, tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.jsonl"
    spoiled.write_bytes((logs / "hand-over.jsonl").read_bytes() + b'\n{"version":1,"evidence":"\xff"}\n')

    code, out, err = run("--events", spoiled, "--environment", "local", "--json")

    assert (code, len(json.loads(out))) == (0, 1)
    assert "1 line of " in err
    assert "not UTF-8: byte 0xff" in err


def cluster_on_aws(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    def ask(self: Context, service: str, operation: str, **parameters: Any) -> Any:
        if operation == "FilterLogEvents":
            assert parameters["logGroupName"] == "/holdfast/prod/events"
        answer = answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Context, "ask", ask)


STREAMS = {"control-plane": "control-plane", "cli": "cli", "agent": "i-1", "lifecycle": "i-1", "job": "i-1/jobs"}
ARN = "arn:aws:sagemaker:us-east-2:111122223333:cluster/abc123def456"
DESCRIBED = {
    "ClusterName": "prod",
    "InstanceGroups": [{"InstanceGroupName": "workers", "InstanceType": "ml.p5.48xlarge"}],
}


def test_a_cluster_on_aws_is_found_by_its_arn_and_its_types_are_its_own(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (logs / "hand-over.jsonl").read_text().splitlines()
    found = {"events": [{"message": line, "logStreamName": STREAMS[json.loads(line)["source"]]} for line in lines]}
    nodes: dict[str, Any] = {"ClusterNodeSummaries": []}
    cluster_on_aws(monkeypatch, {"DescribeCluster": DESCRIBED, "ListClusterNodes": nodes, "FilterLogEvents": found})

    code, out, err = run("--cluster", ARN, "--json")

    assert code == 0, err
    (row,) = json.loads(out)
    assert (row["id"], row["gpu_hours"]) == ("i3-4f1c-1", pytest.approx(8 * (10.1 - 1.92) / 3600))


def test_a_cluster_without_a_log_group_is_told_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = AwsError(code="ResourceNotFoundException", message="no such group")
    nodes: dict[str, Any] = {"ClusterNodeSummaries": []}
    cluster_on_aws(monkeypatch, {"DescribeCluster": DESCRIBED, "ListClusterNodes": nodes, "FilterLogEvents": missing})

    code, _, err = run("--cluster", ARN)

    assert code == 2
    assert "there is no log group /holdfast/prod/events in us-east-2" in " ".join(err.split())
