"""Images for the nodes of a local EKS: the table of stand-ins, what is made of it, and the registry, over loopback."""

import hashlib
import http.client
import io
import json
import re
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.localcloud.containers import ImageStore
from holdfast.localcloud.image import ENVIRONMENT_PROGRAMS, environment_programs
from holdfast.localcloud.kubernetes import node_root
from holdfast.localcloud.kubernetes.images import (
    SANDBOX_IMAGE,
    Entry,
    Image,
    ImageCatalog,
    NodeRoot,
    Registry,
    StandIn,
    StandIns,
    make_image,
    node_files,
    stand_ins,
)

ECR = "602401143452.dkr.ecr.us-west-2.amazonaws.com"
CHART_IMAGES = (
    "nvcr.io/nvidia/k8s-device-plugin:v0.16.1",
    f"{ECR}/eks/aws-efa-k8s-device-plugin:v0.5.13",
    "public.ecr.aws/neuron/neuron-device-plugin:2.19.16.0",
    "905418368575.dkr.ecr.us-west-2.amazonaws.com/hyperpod-health-monitoring-agent:1.0.1892.0_1.0.424.0",
)
"""Of the charts in holdfast/catalog/charts.json that have pods, as their values and templates name them."""


def row(*images: str, **more: object) -> StandIn:
    facts = {"purpose": "tests", "source": "none", "date": "2026-11-23", **more}
    return StandIn(images=images, **facts)  # type: ignore[arg-type]


def contents(image: Image) -> dict[str, tarfile.TarInfo]:
    """The members of an image's only layer."""
    manifest = json.loads(image.manifest)
    with tarfile.open(fileobj=io.BytesIO(image.blobs[manifest["layers"][0]["digest"]])) as layer:
        return {member.name: member for member in layer}


def config(image: Image) -> dict[str, object]:
    document: dict[str, object] = json.loads(image.blobs[json.loads(image.manifest)["config"]["digest"]])["config"]
    return document


@pytest.mark.parametrize("name", [*CHART_IMAGES, f"{SANDBOX_IMAGE}:latest"])
def test_what_the_pinned_charts_and_the_runtime_name_has_a_stand_in(name: str) -> None:
    assert stand_ins().find(name) is not None


def test_each_row_says_what_it_is_for_and_where_its_names_are_from() -> None:
    for one in stand_ins().rows:
        assert one.purpose, one.images
        assert one.source, one.images
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", one.date), one.images


def test_a_star_stands_for_one_part_of_a_name_and_any_tag_fits() -> None:
    table = StandIns([row("*.dkr.ecr.*/eks/pause")])

    assert table.find(f"{ECR}/eks/pause:3.5") is not None
    assert table.find(f"{ECR}/mirror/eks/pause:3.5") is None
    assert table.find(f"evil.example/{ECR}/eks/pause:3.5") is None
    assert table.find(f"{ECR}/eks/pause-windows:3.5") is None


def test_the_first_row_that_fits_counts() -> None:
    first, second = row("a/b", purpose="first"), row("a/*", purpose="second")
    assert StandIns([first, second]).find("a/b:1") is first


def test_a_stand_in_without_a_command_says_that_it_sleeps() -> None:
    script = next(entry for entry in row("a", purpose="it's idle").entries() if entry.content)

    command = ["timeout", "0.2", "/bin/sh", "-c", (script.content or b"").decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout == "a stand-in that does nothing: it's idle\n"
    assert done.returncode in (0, 124)


def test_digests_are_those_of_the_contents_and_come_out_the_same_again() -> None:
    entries = [Entry(path="/etc"), Entry(path="/etc/a", content=b"a"), Entry(path="/b", link="etc/a")]

    image, again = (make_image(files="node", entries=entries, config={"Cmd": ["x"]}) for _ in range(2))

    assert image == again
    assert all(digest == f"sha256:{hashlib.sha256(blob).hexdigest()}" for digest, blob in image.blobs.items())
    manifest = json.loads(image.manifest)
    for part in (manifest["config"], *manifest["layers"]):
        assert len(image.blobs[part["digest"]]) == part["size"]
    assert json.loads(image.blobs[manifest["config"]["digest"]])["rootfs"]["diff_ids"] == [
        manifest["layers"][0]["digest"]
    ]
    assert list(contents(image)) == [".holdfast-image", "etc", "etc/a", "b"]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root like that of Debian, with secrets in it."""
    root = tmp_path / "machine"
    for folder in ("usr/lib", "etc/kubernetes", "etc/ssl/private", "lib32", "root", "srv/data"):
        (root / folder).mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    (root / "etc/services").write_text("ssh 22/tcp\n")
    for secret in ("etc/kubernetes/key", "etc/shadow", "etc/ssl/private/key", "root/key", "srv/data/key"):
        (root / secret).write_text("secret")
    return root


def test_a_root_of_the_nodes_shows_programs_and_copies_no_secret(machine: Path) -> None:
    root = NodeRoot(environment=("/opt/holdfast/env", "/root/my python"), machine=machine)

    entries = {entry.path: entry for entry in root.entries()}
    shown = [line.split()[0] for line in root.fstab().splitlines()]

    assert entries["/bin"].link == "usr/bin"
    assert not any(entry.content == b"secret" for entry in entries.values())
    assert shown == [
        "/etc/alternatives",
        "/etc/ld.so.cache",
        "/etc/ssl/certs",
        "/lib32",
        "/opt/holdfast/env",
        "/opt/kube/bin/holdfast-stand-ins",
        "/root/my\\040python",
        "/usr",
    ]
    assert {path.replace("\\040", " ") for path in shown} <= set(entries)
    assert {line.split()[3] for line in root.fstab().splitlines()} == {"bind,ro,nofail"}


def test_pods_have_the_programs_of_the_nodes_over_those_of_the_environment(machine: Path) -> None:
    """The first line of a console script in the environment names an interpreter of this machine."""
    shown = [line.split()[0] for line in node_root().fstab().splitlines()]
    laid_over = [mount.target for mount in environment_programs(machine / "programs", at="/opt/holdfast/env")]
    assert laid_over == [ENVIRONMENT_PROGRAMS, "/opt/holdfast/env/bin"]
    assert [path for path in shown if path.startswith("/opt/holdfast/env")] == ["/opt/holdfast/env", *laid_over]


def test_the_launcher_of_a_pod_runs_in_the_first_python_of_its_path(tmp_path: Path) -> None:
    row = stand_ins().find("holdfast.local/training:1")
    assert row is not None
    (script,) = [entry.content for entry in row.entries() if entry.path.endswith("/holdfast-run")]
    (tmp_path / "python3").write_text('#!/bin/sh\necho "$PYTHONPATH" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", (script or b"").decode(), "holdfast-run", "a b.py", "--x"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": "/mine"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "/mine:/opt/holdfast/lib -m holdfast_runtime.launcher a b.py --x\n"


def test_a_layer_has_each_folder_before_what_is_in_it(machine: Path) -> None:
    root = NodeRoot(environment=("/a/b/c",), machine=machine)
    seen = {"/"}
    for entry in root.entries():
        assert str(Path(entry.path).parent) in seen, entry.path
        seen.add(entry.path)


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(home=tmp_path / "home")


def add(store: ImageStore, name: str, *, passwd: str = "", link: str = "") -> None:
    def unpack(root: Path) -> None:
        (root / "etc").mkdir()
        if link:
            (root / "etc/passwd").symlink_to(link)
        else:
            (root / "etc/passwd").write_text(passwd)

    digest = hashlib.sha256(f"{name}{passwd}{link}".encode()).hexdigest()
    store.add(name, digest=f"sha256:{digest}", config={"config": {"User": "me"}}, unpack=unpack)


def offered(store: ImageStore, *rows: StandIn, machine: Path = Path("/nonexistent")) -> ImageCatalog:
    return ImageCatalog(store=store, stand_ins=StandIns(rows), root=NodeRoot(machine=machine))


def test_an_image_of_the_store_wins_over_its_stand_in(store: ImageStore) -> None:
    images = offered(store, row(f"{ECR}/app"))
    stand_in = images.find(f"{ECR}/app:1")
    add(store, f"{ECR}/app:1")

    found = images.find(f"{ECR}/app:1")

    assert stand_in is not None
    assert found is not None
    assert config(found) == {"User": "me"}
    assert images.find(f"{ECR}/app:2") == stand_in


def test_a_name_without_a_registry_means_dockers(store: ImageStore) -> None:
    add(store, "holdfast-training:latest")

    assert offered(store).find("docker.io/library/holdfast-training:latest") is not None
    assert offered(store).find(f"{ECR}/holdfast-training:latest") is None


@pytest.mark.parametrize("name", [f"{ECR}/app@sha256:{'1' * 64}", "docker.io/library/../../etc:1", "a b:1", ":", ""])
def test_what_is_no_name_with_a_tag_stands_for_nothing(store: ImageStore, name: str) -> None:
    assert offered(store, row("*"), row("*/*")).find(name) is None


@pytest.mark.parametrize("link", ["/etc/hostname", "../../../../../../../../etc/hostname", "/dev/zero"])
def test_a_link_in_an_image_leads_nowhere_on_this_machine(store: ImageStore, link: str) -> None:
    add(store, "hostile:1", link=link)

    found = offered(store).find("hostile:1")

    assert found is not None
    assert "etc/passwd" not in contents(found)


def test_an_image_with_an_endless_list_of_accounts_is_cut(store: ImageStore) -> None:
    add(store, "endless:1", passwd="x" * (3 << 20))

    found = offered(store).find("endless:1")

    assert found is not None
    assert contents(found)["etc/passwd"].size == 1 << 20


class Caller:
    """A client of a registry on loopback."""

    def __init__(self, *, registry: Registry, store: ImageStore, port: int) -> None:
        self.registry, self.store, self._port = registry, store, port
        registry.start()

    def ask(self, path: str, *, method: str = "GET", source: str = "127.0.0.1") -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5, source_address=(source, 0))
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    store = ImageStore(home=tmp_path_factory.mktemp("registry"))
    listener = socket.create_server(("127.0.0.1", 0))
    registry = Registry(
        listener=listener,
        store=store,
        stand_ins=StandIns([row("*/app")]),
        root=NodeRoot(machine=Path("/nonexistent")),
        is_node=lambda address: address == "127.0.0.1",
    )
    yield Caller(registry=registry, store=store, port=listener.getsockname()[1])
    registry.stop()


def test_an_image_is_pulled_by_tag_then_by_digests(caller: Caller) -> None:
    status, headers, manifest = caller.ask("/v2/app/manifests/1?ns=example.com")
    assert status == 200
    assert headers["Content-Type"] == "application/vnd.oci.image.manifest.v1+json"
    assert headers["Docker-Content-Digest"] == f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    assert caller.ask(f"/v2/app/manifests/{headers['Docker-Content-Digest']}?ns=example.com")[2] == manifest

    for part in (json.loads(manifest)["config"], *json.loads(manifest)["layers"]):
        blob = caller.ask(f"/v2/app/blobs/{part['digest']}?ns=example.com")[2]
        assert f"sha256:{hashlib.sha256(blob).hexdigest()}" == part["digest"]


def test_head_says_what_get_would_and_sends_nothing(caller: Caller) -> None:
    _, headers, manifest = caller.ask("/v2/app/manifests/1?ns=example.com")
    _, told, nothing = caller.ask("/v2/app/manifests/1?ns=example.com", method="HEAD")

    assert told["Content-Length"] == str(len(manifest)) == headers["Content-Length"]
    assert nothing == b""


@pytest.mark.parametrize(
    "path",
    [
        "/v2/nginx/manifests/1?ns=docker.io",
        f"/v2/app/manifests/sha256:{'1' * 64}?ns=example.com",
        f"/v2/app/blobs/sha256:{'1' * 64}?ns=example.com",
        "/v2/app/tags/list?ns=example.com",
        "/v2/../../etc/passwd",
        "/v2/app/manifests/..%2f..%2fetc?ns=example.com",
        "/",
    ],
)
def test_everything_else_is_not_found(caller: Caller, path: str) -> None:
    assert caller.ask(path)[0] == 404


def test_a_pod_is_told_nothing(caller: Caller) -> None:
    assert caller.ask("/v2/app/manifests/1?ns=example.com", source="127.0.0.2")[0] == 403
    assert caller.ask("/v2/", source="127.0.0.2")[0] == 403


def test_nothing_can_be_pushed(caller: Caller) -> None:
    assert caller.ask("/v2/app/blobs/uploads/", method="POST")[0] == 501
    assert caller.ask("/v2/app/manifests/1", method="PUT")[0] == 501


def test_a_broken_image_costs_one_answer(caller: Caller) -> None:
    add(caller.store, "broken:1")
    image = caller.store.find("broken:1")
    assert image is not None
    (caller.store.folder(image) / "config.json").write_text("{")

    assert caller.ask("/v2/library/broken/manifests/1?ns=docker.io")[0] == 500
    assert caller.ask("/v2/")[0] == 200


def test_nothing_but_the_registry_is_asked_for_any_name() -> None:
    files = node_files(registry="10.1.0.1:5000", runc="/runc", root=NodeRoot())
    hosts = files["/etc/containerd/certs.d/_default/hosts.toml"].content.decode()

    assert re.findall(r"https?://[^\"]+", hosts) == ["http://10.1.0.1:5000"] * 2
