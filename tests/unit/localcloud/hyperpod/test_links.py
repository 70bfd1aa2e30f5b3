"""One association at work: what is wrong with one path keeps no other from being copied."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.hyperpod import fsx
from holdfast.localcloud.hyperpod.fsx import AssociationSync
from holdfast.localcloud.hyperpod.logs import LogShipper, stamp
from holdfast.localcloud.hyperpod.model import Association

ALL = frozenset({"NEW", "CHANGED", "DELETED"})
LATER_NS = 10**19
DEEP = 1500


def refusal(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")  # type: ignore[typeddict-item]


class Bucket:
    """S3, as far as a link asks it: keys are UTF-8 of at most 1,024 bytes, as S3's guide says."""

    def __init__(self, **objects: bytes) -> None:
        self.objects = {key.replace("__", "/"): body for key, body in objects.items()}
        self.failing: Exception | None = None
        self.puts = 0

    def get_paginator(self, _: str) -> "Bucket":
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": k, "ETag": str(hash(v)), "Size": len(v)} for k, v in self.objects.items()]}]

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        return {"Body": io.BytesIO(self.objects[Key]), "ETag": str(hash(self.objects[Key]))}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, Metadata: dict[str, str]) -> dict[str, str]:  # noqa: N803
        assert Metadata
        self.puts += 1
        if self.failing:
            raise self.failing
        if len(Key.encode()) > 1024:
            raise refusal("KeyTooLongError", 400)
        self.objects[Key] = Body
        return {"ETag": str(hash(Body))}

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        del self.objects[Key]


def linked(tmp_path: Path, s3: Bucket, *, imports: bool = False, exports: bool = False) -> AssociationSync:
    association = Association(
        association_id="dra-1",
        file_system_id="fs-1",
        path="/data",
        bucket="b",
        prefix="",
        imports=ALL if imports else frozenset(),
        exports=ALL if exports else frozenset(),
    )
    return AssociationSync(association=association, root=tmp_path, books=tmp_path / "books", s3=s3)


def run(link: AssociationSync) -> fsx.SyncResult:
    return link.run_once(now_ns=lambda: LATER_NS)


def nest(root: Path, *, levels: int) -> None:
    """Folders in each other, deeper than a path may be long."""
    handle = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("ddd", dir_fd=handle)
        below = os.open("ddd", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def test_a_name_that_is_no_text_is_told_and_the_files_beside_it_are_exported(tmp_path: Path) -> None:
    s3, root = Bucket(), tmp_path / "data"
    root.mkdir()
    (root / "a").write_bytes(b"1")
    Path(os.fsdecode(bytes(root) + b"/\xff")).write_bytes(b"2")
    (root / "z").write_bytes(b"3")
    link = linked(tmp_path, s3, exports=True)
    assert run(link).exported == ("a", "z")
    assert link.complaints.count == 1
    assert "\\udcff" in link.complaints.summary
    Path(os.fsdecode(bytes(root) + b"/\xff")).unlink()
    run(link)
    assert link.complaints.count == 0


def test_a_tree_deeper_than_a_path_is_long_is_told_and_the_files_beside_it_are_exported(tmp_path: Path) -> None:
    s3, root = Bucket(), tmp_path / "data"
    root.mkdir()
    nest(root, levels=DEEP)
    (root / "z").write_bytes(b"3")
    link = linked(tmp_path, s3, exports=True)
    assert run(link).exported == ("z",)
    assert "an S3 key has at most 1024 bytes of UTF-8" in link.complaints.summary
    remove_tree_quietly(root)
    assert not root.exists()


def test_a_folder_that_cannot_be_read_deletes_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3, root = Bucket(), tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "kept").write_bytes(b"1")
    link = linked(tmp_path, s3, exports=True)
    assert run(link).exported == ("sub/kept",)
    real = os.scandir

    def forgetful(descriptor: int) -> Any:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "sub":
            raise OSError(24, "Too many open files")
        return real(descriptor)

    monkeypatch.setattr("holdfast.localcloud.hyperpod.fsx.lustre.os.scandir", forgetful)
    run(link)
    assert s3.objects == {"sub/kept": b"1"}


def test_an_object_below_a_file_is_told_and_the_others_are_imported(tmp_path: Path) -> None:
    s3 = Bucket(a=b"1", a__b=b"2", z=b"3")
    link = linked(tmp_path, s3, imports=True)
    assert run(link).imported == ("a", "z")
    assert link.complaints.count == 1
    assert link.complaints.summary.startswith("data repository association dra-1: a/b: ")


def test_a_key_that_s3_does_not_take_is_told_once_and_tried_seldom(tmp_path: Path) -> None:
    s3, root = Bucket(), tmp_path / "data"
    long = Path("d" * 250, "e" * 250, "f" * 250, "g" * 250, "h" * 250)
    (root / long).mkdir(parents=True)
    (root / long / "x").write_bytes(b"1")
    (root / "z").write_bytes(b"3")
    link = linked(tmp_path, s3, exports=True)
    assert run(link).exported == ("z",)
    puts = s3.puts
    assert [run(link).exported for _ in range(3)] == [(), (), ()]
    assert s3.puts == puts


def test_what_a_pass_copied_before_the_service_failed_is_in_the_book(tmp_path: Path) -> None:
    s3, root = Bucket(), tmp_path / "data"
    root.mkdir()
    (root / "a").write_bytes(b"1")
    link = linked(tmp_path, s3, exports=True)
    run(link)
    (root / "b").write_bytes(b"1")
    s3.failing = EndpointConnectionError(endpoint_url="x")
    with pytest.raises(EndpointConnectionError):
        run(link)
    s3.failing = None
    again = linked(tmp_path, s3, exports=True)
    assert run(again).exported == ("b",)


@pytest.mark.parametrize(
    "line",
    [
        '{"time_ns": Infinity}',
        '{"time_ns": -Infinity}',
        '{"time_ns": NaN}',
        '{"time_ns": null}',
        '{"time_ns": -1}',
        '{"time_ns": 1e308}',
        '{"time_ns": ' + "9" * 4000 + "}",
        "[" * 100_000,
        "[1]",
        '"x"',
        "no json",
    ],
)
def test_a_line_without_a_time_that_the_service_takes_has_the_present_one(line: str) -> None:
    assert stamp(line, otherwise=lambda: 1_800_000_000_000) == (1_800_000_000_000, line)


def test_an_event_has_its_own_time() -> None:
    line = '{"time_ns": 1799999999000000000}'
    assert stamp(line, otherwise=lambda: 1_800_000_000_000) == (1_799_999_999_000, line)


class Logs:
    """CloudWatch Logs that refuses lines which hold "bad"."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def create_log_stream(self, **_: str) -> None:
        return

    def put_log_events(self, *, logGroupName: str, logStreamName: str, logEvents: list[Any]) -> None:  # noqa: N803
        if any("bad" in event["message"] for event in logEvents):
            raise refusal("InvalidParameterException", 400)
        self.lines += [event["message"] for event in logEvents]


def test_a_line_that_the_service_refuses_leaves_a_word_in_its_place_and_the_others_are_put() -> None:
    logs = Logs()
    shipper = LogShipper(logs=logs)
    shipper.put(group="g", stream="s", lines=[(number, f"line {number}") for number in range(5)])
    shipper.put(group="g", stream="s", lines=[(5, "bad"), (6, "line 6")])
    shipper.start()
    shipper.stop()
    *before, stand_in, last = logs.lines
    assert before == [f"line {number}" for number in range(5)]
    assert stand_in.startswith("[holdfast] CloudWatch Logs rejected a line")
    assert last == "line 6"
