"""What ``holdfast submit`` asks an API server, and which files beside a manifest travel."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cli.submission import submit_manifests
from holdfast.cli.terminal import CommandError
from holdfast_common import KubernetesError

JOB = """apiVersion: {version}
kind: {kind}
metadata: {{name: train}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: a, image: x}}]
      volumes: [{{name: code, configMap: {{name: train}}}}]
"""
SERVED = {
    "/apis/batch/v1": [{"name": "jobs", "kind": "Job", "namespaced": True}],
    "/apis/kubeflow.org/v1": [{"name": "pytorchjobs", "kind": "PyTorchJob", "namespaced": True}],
    "/api/v1": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
}


class Server:
    """An API server without operators, which notes what is applied."""

    def __init__(self) -> None:
        self.applied: list[dict[str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        if path == "/version":
            return {"major": "1", "minor": "20+"}
        if path not in SERVED:
            raise KubernetesError(404, "not found")
        return {"resources": SERVED[path]}

    def items(self, _path: str) -> list[dict[str, Any]]:
        return []

    def apply(self, _path: str, body: dict[str, Any]) -> None:
        if "suspend" in body.get("spec", {}):
            raise KubernetesError(
                500, "failed to create typed patch object: .spec.suspend: field not declared in schema"
            )
        self.applied.append(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    room = "holdfast.cli.submission.manifests"
    monkeypatch.setattr(f"{room}.sign_in", lambda _: SimpleNamespace(client=made))
    monkeypatch.setattr(f"{room}.workload", lambda *_, **__: None)
    monkeypatch.setattr(f"{room}.record_event", lambda *_, **__: None)
    return made


def submit(file: Path) -> str:
    context: Any = SimpleNamespace(session=SimpleNamespace(cloud="embedded"))
    return submit_manifests(context, file=file)


def manifest(folder: Path, *, kind: str = "Job", version: str = "batch/v1", spec: str = "") -> Path:
    file = folder / "job.yaml"
    file.write_text(JOB.format(kind=kind, version=version).replace("spec:\n", f"spec:\n  {spec}\n", 1))
    return file


def test_files_beside_a_manifest_travel_without_links_and_folders(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    file = manifest(tmp_path)
    (tmp_path / "leak.txt").symlink_to("/etc/shadow")
    (tmp_path / "src").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, text in {"train.py": "print()\n", ".env.sample": "", "a.log": "", ".gitignore": "*.log\n"}.items():
        (tmp_path / name).write_text(text)

    assert submit(file) == "train"
    assert set(server.applied[0]["data"]) == {"job.yaml", "train.py", ".env.sample", ".gitignore"}
    told = capsys.readouterr().err
    assert "leak.txt (symbolic links, which are not followed)" in told
    assert "src (folders, of which a ConfigMap has none)" in told
    assert "pipe (a FIFO)" in told
    assert "a.log (.gitignore)" in told


def test_a_pointer_of_git_lfs_beside_a_manifest_is_named(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vocab.json").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    submit(manifest(tmp_path))
    assert "vocab.json" in server.applied[0]["data"]
    assert "vocab.json is a Git LFS pointer and not the file; fetch it with: git lfs pull" in capsys.readouterr().err


def test_a_manifest_that_is_a_link_is_not_followed(tmp_path: Path, server: Server) -> None:
    real = manifest(tmp_path)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    with pytest.raises(CommandError, match=r"link\.yaml' cannot be read"):
        submit(link)
    assert server.applied == []


def test_a_kind_that_no_controller_serves_is_refused_before_anything_is_applied(tmp_path: Path, server: Server) -> None:
    file = manifest(tmp_path, kind="PyTorchJob", version="kubeflow.org/v1")
    with pytest.raises(CommandError, match=r"no controller serves pytorchjobs of kubeflow.* none is installed"):
        submit(file)
    assert server.applied == []


def test_a_kind_that_is_not_installed_is_refused_before_anything_is_applied(tmp_path: Path, server: Server) -> None:
    file = manifest(tmp_path, kind="MPIJob", version="mpi.example/v1")
    with pytest.raises(CommandError, match=r"MPIJob train was refused: this cluster has no mpi\.example/v1; allowed:"):
        submit(file)
    assert server.applied == []


def test_a_misspelt_kind_is_refused_with_the_nearest_one(tmp_path: Path, server: Server) -> None:
    file = manifest(tmp_path, kind="PytorchJob", version="kubeflow.org/v1")
    with pytest.raises(CommandError, match=r"has no PytorchJob in kubeflow\.org/v1; .*; did you mean PyTorchJob\?"):
        submit(file)


def test_an_object_beside_the_job_of_a_kind_that_is_missing_is_refused_before_anything_is_applied(
    tmp_path: Path, server: Server
) -> None:
    file = manifest(tmp_path)
    other = "{apiVersion: node.k8s.io/v9, kind: RuntimeClass, metadata: {name: a}}"
    file.write_text(f"{file.read_text()}---\n{other}\n")
    with pytest.raises(CommandError, match=r"no node\.k8s\.io/v9; allowed: kinds of Kubernetes 1\.20, such as Job"):
        submit(file)
    assert server.applied == []


def test_an_indexed_job_is_adapted_to_an_older_server_and_told_of(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    submit(manifest(tmp_path, spec="completionMode: Indexed\n  completions: 2"))
    applied = server.applied[-1]["spec"]
    assert applied["template"]["metadata"]["labels"] == {"holdfast.dev/indexed-completions": "2"}
    assert "completionMode" not in applied
    assert "Job train: adapted to Kubernetes 1.20\n" in capsys.readouterr().err


def test_a_field_that_the_server_lacks_is_refused_with_the_servers_version(tmp_path: Path, server: Server) -> None:
    with pytest.raises(CommandError, match=r"\.spec\.suspend: field not declared in schema; .* Kubernetes 1\.20$"):
        submit(manifest(tmp_path, spec="suspend: true"))
    assert "Job" not in [one["kind"] for one in server.applied]
