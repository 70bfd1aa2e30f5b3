"""What users of the nodes put on a linked file system: it stays a file system, in both directions."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.localcloud.aws import fsx
from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.hyperpod.fsx import AssociationSync
from holdfast.localcloud.hyperpod.model import Association

EVERYTHING = frozenset({"NEW", "CHANGED", "DELETED"})
LATER_NS = 1 << 62


class Bucket:
    """As much of S3 as a link uses."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def get_paginator(self, _: str) -> "SimpleNamespace":
        return SimpleNamespace(paginate=self._pages)

    def _pages(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        yield {
            "Contents": [{"Key": key, "ETag": self._etag(key), "Size": len(self.objects[key])} for key in self.objects]
        }

    def _etag(self, key: str) -> str:
        return str(hash(self.objects[key]))

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        return {"Body": io.BytesIO(self.objects[Key]), "ETag": self._etag(Key)}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, Metadata: dict[str, str]) -> dict[str, Any]:  # noqa: N803
        self.objects[Key] = Body
        return {"ETag": self._etag(Key)}

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        self.objects.pop(Key, None)


class Lab:
    """A machine with a file system on it, and one link."""

    def __init__(self, place: Path, *, path: str) -> None:
        self.machine = place / "machine"
        self.root = place / "home/fsx/fs-1"
        self.machine.mkdir()
        self.root.mkdir(parents=True)
        self.bucket = Bucket()
        association = Association(
            association_id="dra-1", file_system_id="fs-1", path=path, bucket="b", prefix="p/",
            imports=EVERYTHING, exports=EVERYTHING,
        )  # fmt: skip
        self.linked = AssociationSync(association=association, root=self.root, books=place / "books", s3=self.bucket)

    def run(self) -> None:
        self.linked.run_once(now_ns=lambda: LATER_NS)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, path="/data")


def machine_of(lab: Lab) -> dict[str, str]:
    return {path.name: path.read_text() for path in lab.machine.iterdir()}


def test_a_link_copies_both_ways_and_deletes_both_ways(lab: Lab) -> None:
    lab.bucket.objects["p/in/a b.txt"] = b"object"
    lab.run()
    (lab.root / "data/out").mkdir()
    (lab.root / "data/out/c;d").write_text("file")
    lab.run()

    assert (lab.root / "data/in/a b.txt").read_bytes() == b"object"
    assert lab.bucket.objects["p/out/c;d"] == b"file"
    del lab.bucket.objects["p/in/a b.txt"]
    (lab.root / "data/out/c;d").unlink()
    lab.run()
    assert not (lab.root / "data/in/a b.txt").exists()
    assert lab.bucket.objects == {}


@pytest.mark.parametrize("path", ["/../../../machine", "/data/../../../../machine", "/x/../../fs-2"])
def test_a_link_whose_path_leads_out_of_the_file_system_reads_and_writes_nothing(tmp_path: Path, path: str) -> None:
    lab = Lab(tmp_path, path=path)
    (lab.machine / "shadow").write_text("secret")
    (lab.root.parent / "fs-2").mkdir()
    lab.bucket.objects["p/authorized_keys"] = b"attacker"

    with pytest.raises(OSError, match=r"\[Errno"):
        lab.run()

    assert machine_of(lab) == {"shadow": "secret"}
    assert list((lab.root.parent / "fs-2").iterdir()) == []
    assert list(lab.bucket.objects) == ["p/authorized_keys"]


def test_a_folder_of_a_link_that_became_a_symbolic_link_is_not_followed(lab: Lab) -> None:
    (lab.machine / "shadow").write_text("secret")
    (lab.root / "data").symlink_to(lab.machine)
    lab.bucket.objects["p/authorized_keys"] = b"attacker"

    with pytest.raises(OSError, match="symbolic links"):
        lab.run()

    assert machine_of(lab) == {"shadow": "secret"}
    assert list(lab.bucket.objects) == ["p/authorized_keys"]


def test_a_folder_within_a_link_that_became_a_symbolic_link_is_not_followed(lab: Lab) -> None:
    (lab.machine / "shadow").write_text("secret")
    lab.run()
    (lab.root / "data/sub").symlink_to(lab.machine)
    (lab.root / "data/file").symlink_to(lab.machine / "shadow")
    lab.bucket.objects |= {"p/sub/authorized_keys": b"attacker", "p/fine": b"fine"}
    lab.run()

    assert machine_of(lab) == {"shadow": "secret"}
    assert set(lab.bucket.objects) == {"p/sub/authorized_keys", "p/fine"}
    assert (lab.root / "data/fine").read_bytes() == b"fine"


def test_a_link_made_between_the_look_and_the_copy_is_not_followed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The race that a check beforehand loses: each copy and each deletion opens its own path."""
    (lab.machine / "shadow").write_text("secret")
    lab.bucket.objects["p/gone/shadow"] = b"was here"
    lab.run()
    (lab.root / "data/new").mkdir()
    (lab.root / "data/new/shadow").write_text("mine")
    del lab.bucket.objects["p/gone/shadow"]
    lab.bucket.objects["p/in/shadow"] = b"attacker"
    look = lab.linked._scan

    def look_and_swap(*, at_rest_before_ns: int) -> Any:
        found = look(at_rest_before_ns=at_rest_before_ns)
        for name in ("new", "gone", "in"):
            if (lab.root / "data" / name).exists():
                (lab.root / "data" / name).rename(lab.root / f"was-{name}")
            (lab.root / "data" / name).symlink_to(lab.machine)
        return found

    monkeypatch.setattr(lab.linked, "_scan", look_and_swap)
    lab.run()

    assert machine_of(lab) == {"shadow": "secret"}
    assert lab.bucket.objects == {"p/in/shadow": b"attacker"}


def test_names_that_s3_cannot_hold_and_deep_folders_stop_nothing(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.run()
    deep = lab.root / "data"
    for _ in range(600):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_text("too deep")
    (lab.root / "data" / "a\udcff").write_text("not UTF-8")
    (lab.root / "data/b").write_text("fine")
    lab.run()
    lab.run()

    assert lab.bucket.objects == {"p/b": b"fine"}
    assert sum("not exported" in line for line in caplog.messages) == 2


def test_an_object_whose_place_is_taken_stops_no_other(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.run()
    (lab.root / "data/folder").mkdir()
    (lab.root / "data/file").write_text("file")
    lab.bucket.objects |= {
        "p/file/below": b"x",
        "p/folder": b"x",
        "p/z": b"fine",
        "p/../../up": b"x",
        "p/file": b"file",
    }
    lab.run()
    lab.run()

    assert (lab.root / "data/z").read_bytes() == b"fine"
    assert not (lab.root / "up").exists()
    assert sum("not imported" in line for line in caplog.messages) == 3


@pytest.mark.parametrize("path", ["/..", "/../../..", "/a/../b", "/a/./b", "/a//b", "/a/.."])
def test_fsx_refuses_a_path_that_could_lead_out_of_the_file_system(path: str) -> None:
    with pytest.raises(ServiceError, match="must not contain '//'"):
        fsx.check_association(
            path=path,
            repository="s3://b/p",
            lustre={"DeploymentType": "PERSISTENT_2"},
            version="2.15",
            existing=(),
        )


@pytest.mark.parametrize("path", ["/", "/a", "/a/", "/a/b..c/.d"])
def test_fsx_takes_other_paths(path: str) -> None:
    fsx.check_association(
        path=path, repository="s3://b/p", lustre={"DeploymentType": "PERSISTENT_2"}, version="2.15", existing=()
    )
