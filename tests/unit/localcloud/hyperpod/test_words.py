"""HyperPod's words for failures, and what is read from a script that failed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.hyperpod import lifecycle
from holdfast.localcloud.hyperpod.lifecycle import failed_step, working_folder
from holdfast.localcloud.hyperpod.logs import FileTail
from holdfast.localcloud.hyperpod.model import (
    LONGEST,
    Cluster,
    Instance,
    cluster_failed,
    completed,
    provisioning_failed,
    rebooting,
    replacing,
    script_event,
    script_failed,
    script_missing,
)

CLUSTER = Cluster(arn="arn:aws:sagemaker:us-west-2:123456789012:cluster/abc", name="lab", status="Creating")
INSTANCE = Instance(instance_id="i-1", group="workers", address="10.1.0.11")


# --- messages


def test_a_failed_script_is_told_as_the_guide_prints_it() -> None:
    assert cluster_failed(INSTANCE, reason=script_failed(CLUSTER, INSTANCE)) == (
        'Instance i-1 failed to provision with the following error: "Lifecycle scripts did not run successfully. To '
        "view lifecycle script logs, visit log group \u2018/aws/sagemaker/Clusters/lab/abc' and log stream "
        "\u2018LifecycleConfig/workers/i-1\u2019. If you cannot find corresponding lifecycle script logs in "
        "CloudWatch, please make sure you follow one of the options here: https://docs.aws.amazon.com/sagemaker/"
        "latest/dg/sagemaker-hyperpod-faq-slurm.html#hyperpod-faqs-q1.\u201d Note that multiple instances may be "
        "impacted."
    )


def test_a_missing_script_and_any_other_reason_stand_between_plain_quotes() -> None:
    told = cluster_failed(INSTANCE, reason=script_missing())
    assert told.endswith('script execution details." Note that multiple instances may be impacted.')
    assert '"no room" Note that' in cluster_failed(INSTANCE, reason="no room")


def test_a_message_fits_the_api() -> None:
    told = cluster_failed(INSTANCE, reason="x" * 5000)
    assert (len(told), told[-4:]) == (LONGEST, "x...")


def test_events_of_an_instance_are_worded_as_the_reference_lists_them() -> None:
    where = "Cluster lab and IG workers"
    assert provisioning_failed(CLUSTER, INSTANCE) == f"Instance creation i-1 in {where} failed"
    done = completed(CLUSTER, INSTANCE, operation="reboot")
    assert done == f"Instance reboot i-1 in {where} completed successfully"
    new = replacing(CLUSTER, INSTANCE, new="i-2")
    assert new == f"Instance i-2 is starting as part of instance replacement in {where}"
    assert rebooting(CLUSTER, INSTANCE) == f"Reboot of EC2 Instance i-1 is currently in progress on {where}"
    failed = "Instance lifecycle script execution for EC2 Instance i-1 has Failed. To view lifecycle script logs, visit"
    assert script_event(CLUSTER, INSTANCE).startswith(failed)


# --- scripts


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("s3://sagemaker-lab/lifecycle/one", "/tmp/sagemaker-lab/lifecycle/one"),
        ("s3://sagemaker-lab/lifecycle/", "/tmp/sagemaker-lab/lifecycle"),
        ("s3://sagemaker-lab", "/tmp/sagemaker-lab"),
        ("https://sagemaker-lab/one", "/tmp/sagemaker-lab/one"),
    ],
)
def test_scripts_work_in_the_folder_of_their_bucket_and_prefix(uri: str, folder: str) -> None:
    assert working_folder(uri) == folder


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exit code 3"),
        (None, "timed out after 600"),
        (-9, "was killed by SIGKILL"),
        (143, "SIGTERM"),
        (255, "255"),
    ],
)
def test_the_end_of_a_script_is_said_in_words(code: int | None, words: str) -> None:
    assert words in lifecycle.how_it_ended(code, timeout_s=600.0)


def node_with(events: Path) -> Any:
    return SimpleNamespace(outside=lambda path: events)


def event(kind: str, **detail: str) -> str:
    inner = ",".join(f'"{key}":"{value}"' for key, value in detail.items())
    return f'{{"version":1,"time_ns":1,"source":"lifecycle","kind":"{kind}","detail":{{{inner}}}}}\n'


def test_the_last_step_that_failed_is_named(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(
        event("step_failed", step="users")
        + event("step_succeeded", step="users")
        + "torn {\n"
        + event("step_failed", step="mounts")
        + event("step_failed", step="slurm", outcome="not started")
    )
    assert failed_step(node_with(log)) == "mounts"
    log.write_text(event("step_succeeded", step="users"))
    assert failed_step(node_with(log)) == ""
    assert failed_step(node_with(tmp_path / "none")) == ""


def test_only_the_last_lines_of_an_output_are_kept() -> None:
    tail = lifecycle.OutputTail()
    for number in range(5000):
        tail.add(f"line {number}\n".encode())
    assert tail.lines()[-6:] == [f"line {number}" for number in range(4994, 5000)]
    assert len("\n".join(tail.lines())) <= lifecycle.TAIL_BYTES
    tail.add(b"\xff\xfe")
    assert tail.lines()[-1] == "\ufffd\ufffd"


@pytest.mark.parametrize(
    ("said", "logged", "kept"),
    [
        ("abcdefgh", "", "cdefgh"),
        ("", "stuvwxyz", "uvwxyz"),
        ("abcdefgh", "stuvwxyz", "fghxyz"),
        ("a", "stuvwxyz", "avwxyz"),
        ("abcdefgh", "z", "defghz"),
    ],
)
def test_the_last_words_are_shared_by_what_a_script_said_and_what_it_logged(said: str, logged: str, kept: str) -> None:
    assert lifecycle.last_lines(reported=list(said), logged=list(logged)) == list(kept)


# --- files of nodes


@pytest.fixture
def tail(tmp_path: Path) -> FileTail:
    return FileTail(path=tmp_path / "provisioning.log", group="g", stream="s", is_events=False)


def test_a_file_is_read_line_by_line_as_it_grows(tail: FileTail) -> None:
    assert tail.read() == []
    tail.path.write_bytes(b"one\n\ntw")
    assert tail.read() == ["one"]
    with tail.path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert tail.read() == ["two", "three"]
    assert tail.read() == []


def test_a_large_file_is_read_in_chunks_and_no_line_is_lost(tail: FileTail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.hyperpod.logs.events.CHUNK_BYTES", 16)
    lines = [f"line {number}" for number in range(20)]
    tail.path.write_text("\n".join(lines) + "\n")
    chunks = []
    while chunk := tail.read():
        chunks.append(chunk)
    assert [line for chunk in chunks for line in chunk] == lines
    assert max(len(chunk) for chunk in chunks) <= 3


def test_a_line_that_never_ends_is_passed_on_in_parts(tail: FileTail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.hyperpod.logs.events.CHUNK_BYTES", 16)
    tail.path.write_bytes(b"x" * 40)
    parts = [part for _ in range(4) for part in tail.read()]
    assert parts == ["x" * 32]
    assert len(tail.torn) == 8
