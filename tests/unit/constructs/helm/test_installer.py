"""The function that installs charts: what it refuses, what it asks of helm, and what CloudFormation is told."""

import base64
import contextlib
import io
import json
import stat
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import boto3
import pytest

from holdfast_constructs.helm_installer import handler
from holdfast_constructs.helm_installer._archive import ChartRefusedError, read_chart, tree_sha256
from holdfast_constructs.helm_installer._cluster import Cluster, sign_in, write_kubeconfig
from holdfast_constructs.helm_installer._helm import Helm
from holdfast_constructs.helm_installer._release import PAUSE_S, Outcome, apply

CHART = {"Chart.yaml": b"name: demo\n", "templates/role.yaml": b"kind: Role\n"}
PATH = "charts/demo"
NO_RELEASE = (1, "Error: release: not found")
LACKING = (1, 'Error: resource mapping not found: no matches for kind "NodePool" in version "karpenter.sh/v1"')


def archive(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    """An archive as GitHub makes them, with everything below one folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"repo-commit/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(f"repo-commit/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return out.getvalue()


def chart_archive(**more: bytes) -> bytes:
    return archive({"README": b"no chart", **{f"{PATH}/{name}": text for name, text in {**CHART, **more}.items()}})


class Bench:
    """A fake helm that records how it is called, and says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.binary = folder / "helm"
        self.answers(status=NO_RELEASE)
        self.content = chart_archive()
        self.left_s = 900.0

    def answers(self, **commands: tuple[int, str]) -> None:
        """Exit code and output by helm's command; other commands succeed."""
        cases = "\n".join(
            f"{command}) cat '{self._output(command, text)}' >&{2 if code else 1}; exit {code};;"
            for command, (code, text) in commands.items()
        )
        copy = f'if [ "$1" = upgrade ]; then cp -r "$3" "{self.folder}/installed"; fi'
        self.binary.write_text(
            f'#!/bin/sh\necho "$@" >>"{self.folder}/calls"\n{copy}\ncase "$1" in\n{cases}\n*) exit 0;;\nesac\n'
        )
        self.binary.chmod(self.binary.stat().st_mode | stat.S_IXUSR)

    def _output(self, command: str, text: str) -> Path:
        path = self.folder / f"{command}.out"
        path.write_text(text)
        return path

    def apply(self, request: str, **changes: Any) -> Outcome:
        properties = {
            "Release": "demo",
            "Namespace": "kube-system",
            "Archive": {"Url": "https://example.invalid"},
            "ChartPath": PATH,
            "TreeSha256": tree_sha256(CHART),
            "Values": '{"debug": false}',
            "Wait": "true",
            **changes.pop("properties", {}),
        }
        event = {"RequestType": request, "ResourceProperties": properties, **changes}
        return apply(event, open_archive=self._open, connect=self._connect, left_s=lambda: self.left_s)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @contextlib.contextmanager
    def _open(self, _: object) -> Iterator[IO[bytes]]:
        yield io.BytesIO(self.content)

    def _connect(self, folder: Path) -> Helm:
        return Helm(binary=self.binary, kubeconfig=folder / "kubeconfig", home=folder, timeout_s=5)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_installs_the_verified_files_and_waits_until_they_run(bench: Bench) -> None:
    assert bench.apply("Create") == Outcome(physical_id="kube-system/demo")

    status, upgrade = bench.calls
    assert status == "status demo --namespace=kube-system --output=json"
    for flag in ("--install", "--rollback-on-failure", "--wait=watcher", "--namespace=kube-system"):
        assert flag in upgrade.split()
    installed = bench.folder / "installed"
    assert {str(f.relative_to(installed)): f.read_bytes() for f in installed.rglob("*") if f.is_file()} == CHART


def test_daemon_sets_are_not_waited_for(bench: Bench) -> None:
    bench.apply("Create", properties={"Wait": "false"})

    assert "--wait" not in bench.calls[-1]
    assert "--rollback-on-failure" not in bench.calls[-1]


def test_an_upgrade_keeps_the_resource_and_a_new_name_makes_a_new_one(bench: Bench) -> None:
    same = bench.apply("Update", PhysicalResourceId="kube-system/demo")
    renamed = bench.apply("Update", PhysicalResourceId="kube-system/demo", properties={"Release": "other"})

    assert same == Outcome(physical_id="kube-system/demo")
    assert renamed == Outcome(physical_id="kube-system/other")


def test_refuses_files_with_another_digest_and_leaves_nothing_to_delete(bench: Bench) -> None:
    bench.content = chart_archive(**{"templates/role.yaml": b"kind: ClusterRole\n"})

    outcome = bench.apply("Create")

    assert outcome.physical_id == "kube-system/demo/never-installed"
    assert outcome.reason is not None
    assert outcome.reason.startswith("kube-system/demo: chart charts/demo: got files with digest ")
    assert f"allowed: {tree_sha256(CHART)}" in outcome.reason
    assert bench.apply("Delete", PhysicalResourceId=outcome.physical_id).reason is None
    assert bench.calls == []


def test_a_refused_update_leaves_the_release_as_it_was(bench: Bench) -> None:
    outcome = bench.apply("Update", PhysicalResourceId="kube-system/demo", properties={"TreeSha256": "0" * 64})

    assert outcome.physical_id == "kube-system/demo"
    assert outcome.reason is not None
    assert bench.calls == []


@pytest.mark.parametrize(
    "content",
    [
        archive({f"{PATH}/Chart.yaml": b"", f"{PATH}/../../etc/passwd": b"root"}),
        archive({f"{PATH}/Chart.yaml": b""}, links={f"{PATH}/values.yaml": "/etc/passwd"}),
        archive({f"{PATH}/Chart.yaml": b"", f"{PATH}/a": b"1"}, links={f"{PATH}/a": "b"}),
    ],
    ids=["a path that leads out", "a link", "an entry that comes twice"],
)
def test_refuses_an_archive_with(bench: Bench, content: bytes) -> None:
    bench.content = content

    outcome = bench.apply("Create")

    assert "allowed: plain files, each once" in str(outcome.reason)
    assert bench.calls == []


def test_refuses_an_archive_without_the_chart() -> None:
    with pytest.raises(ChartRefusedError, match=r"the archive has no charts/demo/Chart\.yaml; got 0 files there"):
        read_chart(io.BytesIO(archive({"charts/demonstration/Chart.yaml": b""})), PATH)


def test_the_digest_is_of_names_and_contents_and_of_no_order() -> None:
    assert tree_sha256(dict(reversed(CHART.items()))) == tree_sha256(CHART)
    assert tree_sha256({"a": b"b"}) != tree_sha256({"ab": b""})
    assert read_chart(io.BytesIO(chart_archive()), PATH) == CHART


def test_says_why_helm_failed_and_that_nothing_is_left(bench: Bench) -> None:
    bench.answers(status=(1, "not found"), upgrade=(1, "level=INFO busy\nError: context deadline exceeded"))

    outcome = bench.apply("Create")

    assert outcome == Outcome(
        physical_id="kube-system/demo/never-installed",
        reason="kube-system/demo: helm upgrade demo failed with exit 1: Error: context deadline exceeded",
    )


def test_a_failed_creation_that_left_a_release_is_deleted_with_its_stack(bench: Bench) -> None:
    bench.answers(status=(0, '{"info": {"status": "failed"}}'), upgrade=(1, "Error"))

    outcome = bench.apply("Create")
    bench.apply("Delete", PhysicalResourceId=outcome.physical_id)

    assert outcome.physical_id == "kube-system/demo"
    assert bench.calls[-1].startswith("uninstall demo --namespace=kube-system --ignore-not-found")


@pytest.mark.parametrize(
    ("status", "first"), [("pending-install", "uninstall"), ("pending-upgrade", "rollback"), ("deployed", "upgrade")]
)
def test_an_interrupted_run_is_undone_before_the_next(bench: Bench, status: str, first: str) -> None:
    bench.answers(status=(0, json.dumps({"info": {"status": status}})))

    assert bench.apply("Create").reason is None
    assert bench.calls[1].split()[0] == first
    assert bench.calls[-1].split()[0] == "upgrade"


def test_a_release_that_awaits_kinds_is_tried_again_until_kubernetes_has_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.answers(upgrade=LACKING, status=NO_RELEASE)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            bench.answers(status=NO_RELEASE)

    monkeypatch.setattr("holdfast_constructs.helm_installer._release.time", SimpleNamespace(sleep=pause))

    assert bench.apply("Create", properties={"AwaitKinds": "true"}).reason is None
    assert pauses == [PAUSE_S, PAUSE_S]


@pytest.mark.parametrize(("left_s", "properties"), [(70.0, {"AwaitKinds": "true"}), (900.0, {})])
def test_missing_kinds_are_reported_in_time_and_at_once_where_nothing_installs_them(
    left_s: float, properties: dict[str, str], bench: Bench
) -> None:
    bench.answers(upgrade=LACKING, status=NO_RELEASE)
    bench.left_s = left_s

    outcome = bench.apply("Create", properties=properties)

    assert 'no matches for kind "NodePool"' in str(outcome.reason)
    assert outcome.physical_id == "kube-system/demo/never-installed"
    assert [call.split()[0] for call in bench.calls].count("upgrade") == 1


def test_a_broken_event_is_answered_too() -> None:
    outcome = apply({"RequestType": "Create"}, open_archive=_never, connect=_never, left_s=lambda: 0)

    assert outcome == Outcome(physical_id="never-installed", reason="no property 'ResourceProperties'")


def test_an_archive_comes_over_https_or_not_at_all() -> None:
    with (
        pytest.raises(ValueError, match="allowed: an address that begins with https://"),
        handler.open_archive({"Url": "file:///etc/passwd"}),
    ):
        pass


def test_the_token_is_a_signed_question_that_names_the_cluster() -> None:
    session = boto3.Session(aws_access_key_id="AKID", aws_secret_access_key="secret", region_name="us-west-2")
    cluster = Cluster(name="demo", endpoint="https://e", certificate_authority="Y2E=")

    prefix, encoded = sign_in(cluster, session).split(".", 1)

    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    assert prefix == "k8s-aws-v1"
    assert url.startswith("https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity")
    assert "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id" in url


def test_the_kubeconfig_is_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, cluster=Cluster(name="d", endpoint="https://e", certificate_authority="Y2E="), token="t")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["users"][0]["user"] == {"token": "t"}


def test_cloudformation_is_told_the_outcome_where_it_waits_for_it(bench: Bench, monkeypatch: Any) -> None:
    monkeypatch.setattr(handler, "open_archive", bench._open)
    monkeypatch.setattr(handler, "connect", bench._connect)
    with listening() as (url, received):
        event = {
            "RequestType": "Create",
            "ResponseURL": url,
            "StackId": "stack",
            "RequestId": "request",
            "LogicalResourceId": "logical",
            "ResourceProperties": {
                "Release": "demo",
                "Namespace": "kube-system",
                "Archive": {},
                "ChartPath": PATH,
                "TreeSha256": "wrong",
                "Values": "{}",
                "Wait": "true",
            },
        }
        handler.on_event(event, SimpleNamespace(log_stream_name="stream-1"))

    (answer,) = received
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].endswith("(log stream stream-1)")
    assert answer["PhysicalResourceId"] == "kube-system/demo/never-installed"
    assert (answer["StackId"], answer["RequestId"], answer["LogicalResourceId"]) == ("stack", "request", "logical")


@contextlib.contextmanager
def listening() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    received: list[dict[str, Any]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/answer", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _never(*_: object) -> Any:
    raise AssertionError("must not be called")
