"""The images of a local cloud, and what nodes are given of them."""

import contextlib
import errno
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.commands.deployment import images as images_module
from holdfast.cli.terminal import CommandError
from holdfast.localcloud.containers import (
    ContainerParts,
    ImageError,
    ImageStore,
    add_image,
    missing,
    plugstack_line,
    prepare,
)

FIRST, SECOND = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


def store_with(home: Path, *images: tuple[str, str]) -> ImageStore:
    store = ImageStore(home=home)
    for name, digest in images:

        def unpack(root: Path, digest: str = digest) -> None:
            (root / "file").write_text(digest)

        store.add(name, digest=digest, config={"config": {}}, unpack=unpack)
    return store


def content(store: ImageStore, name: str) -> str:
    return (store.directory / "refs" / name / "rootfs" / "file").read_text()


def test_an_image_is_found_by_its_name(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("docker.io#ubuntu", FIRST))
    assert [(image.name, image.digest) for image in store.list()] == [("ubuntu:latest", FIRST)]
    assert content(store, "ubuntu%3Alatest") == FIRST


def test_a_name_that_moves_leaves_the_old_image_for_those_who_run_in_it(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("a", FIRST), ("a", SECOND))
    assert content(store, "a%3Alatest") == SECOND
    assert (store.directory / f"sha256-{'1' * 64}" / "rootfs/file").exists()


def test_an_image_that_is_there_is_not_unpacked_again(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("a", FIRST))

    def unpack(root: Path) -> None:
        raise AssertionError

    store.add("b", digest=FIRST, config={}, unpack=unpack)
    assert [image.name for image in store.list()] == ["a:latest", "b:latest"]


def test_what_a_killed_adding_left_goes_with_the_next_one(tmp_path: Path) -> None:
    store = store_with(tmp_path)
    store.create()
    (store.directory / ".unpacking-killed/image").mkdir(parents=True)

    store_with(tmp_path, ("a", FIRST))

    assert list(store.directory.glob(".unpacking-*")) == []


def test_an_image_that_cannot_be_unpacked_leaves_nothing(tmp_path: Path) -> None:
    def full(root: Path) -> None:
        (root / "half").write_text("of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    store = store_with(tmp_path)
    with pytest.raises(OSError, match="No space"):
        store.add("a", digest=FIRST, config={}, unpack=full)

    assert store.list() == ()
    assert sorted(path.name for path in store.directory.iterdir()) == [".lock", "refs"]


def test_an_image_is_found_in_any_form_of_its_name_and_no_other(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("ubuntu:1", FIRST))

    found = store.find("docker.io/library/ubuntu:1")

    assert found is not None
    assert (store.folder(found) / "rootfs/file").read_text() == FIRST
    assert store.find("ubuntu:2") is None
    with pytest.raises(ImageError, match="is not an image name"):
        store.find("a b")


def test_an_image_goes_with_its_last_name(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("a", FIRST), ("b", FIRST))
    store.remove("a")
    assert content(store, "b%3Alatest") == FIRST
    store.remove("b")
    assert list(store.directory.glob("sha256-*")) == []


def test_an_image_that_could_not_be_unpacked_leaves_nothing(tmp_path: Path) -> None:
    store = ImageStore(home=tmp_path)

    def unpack(root: Path) -> None:
        (root / "half").touch()
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        store.add("a", digest=FIRST, config={}, unpack=unpack)
    assert store.list() == ()
    assert {entry.name for entry in store.directory.iterdir()} == {"refs", ".lock"}


def test_a_name_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    store = store_with(tmp_path, ("a", FIRST))
    with pytest.raises(ImageError, match="no image b:latest; existing images: a:latest"):
        store.remove("b")
    with pytest.raises(ImageError, match="is not an image name"):
        store.add("a b", digest=FIRST, config={}, unpack=lambda _: None)
    with pytest.raises(ImageError, match="a digest is sha256: and 64 hexadecimal digits, got 'x'"):
        store.add("a", digest="x", config={}, unpack=lambda _: None)


def test_the_plugin_is_required_since_slurm_ignores_an_optional_ones_refusal() -> None:
    line = plugstack_line(Path("/opt/holdfast/containers/holdfast_containers.so"))
    assert line.startswith("required /opt/holdfast/containers/holdfast_containers.so helper=/opt/holdfast/containers ")
    assert "\n" not in line


def test_the_command_lists_what_jobs_may_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    listed = CliRunner().invoke(images_module.app, ["list"]).stdout.replace("\n", " ")
    assert "no images; to add some: holdfast images build" in listed
    store_with(tmp_path, ("a", FIRST))
    assert json.loads(CliRunner().invoke(images_module.app, ["list", "--json"]).stdout) == [
        {"name": "a:latest", "digest": FIRST}
    ]


def test_a_change_of_the_images_needs_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(CommandError, match="requires root; run: sudo HOLDFAST_HOME="):
        CliRunner().invoke(images_module.app, ["remove", "a"], catch_exceptions=False)


def test_a_machine_without_slurms_headers_gets_nodes_without_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.spank.compiling._VERSION", tmp_path / "absent.h")
    assert any("install Debian's package libslurm-dev" in problem for problem in missing())
    assert prepare(home=tmp_path) == ContainerParts()
    assert list(tmp_path.iterdir()) == []


def test_headers_of_another_slurm_are_refused_since_a_required_plugin_would_stop_every_srun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "slurm_version.h"
    header.write_text("#define SLURM_VERSION_NUMBER 0x180503\n")
    monkeypatch.setattr("holdfast.localcloud.spank.compiling._VERSION", header)
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
    monkeypatch.setattr("holdfast.localcloud.spank.compiling._slurm_version", lambda: "22.5.8")
    assert missing() == ["Slurm is 22.5.8 and its header files are of 24.5.3; install those of one version"]


@pytest.mark.parametrize("form", ["{}", "docker-archive:{}", "oci:{}"])
def test_an_archive_that_is_a_link_is_not_followed(tmp_path: Path, form: str) -> None:
    (tmp_path / "image.tar").symlink_to("/etc/shadow")
    with pytest.raises(ImageError, match=r"image\.tar is a symbolic link, which is not followed; name /etc/shadow"):
        add_image(ImageStore(home=tmp_path), source=form.format(tmp_path / "image.tar"), name="x")


def test_the_training_image_is_built_in_any_folder_and_all_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        images_module, "_changed_store", lambda *, verb: contextlib.nullcontext(ImageStore(home=tmp_path))
    )
    monkeypatch.setattr("holdfast.localcloud.containers.building.shutil.which", lambda _: None)
    monkeypatch.setattr("holdfast.localcloud.containers.building.importlib.util.find_spec", lambda _: None)
    done = CliRunner().invoke(images_module.app, ["build"])
    assert "apt-get install buildah mmdebstrap && " in str(done.exception)
    assert "-m pip install torch numpy" in str(done.exception)


def test_a_folder_that_holds_no_dockerfile_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(images_module.app, ["build", "--containers", str(tmp_path)])
    assert "allowed: the folder containers/ of a checkout of Holdfast" in str(done.exception)
