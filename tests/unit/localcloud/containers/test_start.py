"""Containers under Slurm: the pure parts of the helper that makes them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.localcloud import containers
from holdfast.localcloud.containers.start import container, errors, mounts, reference, spec, squashfs
from holdfast.localcloud.containers.start import request as request_command


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("holdfast-training", "holdfast-training:latest"),
        ("holdfast-training:1.2", "holdfast-training:1.2"),
        ("localhost/holdfast-training:1.2", "holdfast-training:1.2"),
        ("docker://ubuntu", "ubuntu:latest"),
        ("docker.io#library/ubuntu:24.04", "ubuntu:24.04"),
        ("docker.io/ubuntu:24.04", "ubuntu:24.04"),
        ("$oauthtoken@nvcr.io#nvidia/pytorch:21.12-py3", "nvcr.io/nvidia/pytorch:21.12-py3"),
        ("registry:5000#team/image:1", "registry:5000/team/image:1"),
    ],
)
def test_a_name_in_any_form_of_pyxis_means_one_image(given: str, name: str) -> None:
    assert reference.canonical(given) == name
    assert reference.canonical(name) == name


@pytest.mark.parametrize("given", ["./image.sqsh", "/fsx/image.sqsh", "../image"])
def test_a_path_is_no_name_of_an_image(given: str) -> None:
    with pytest.raises(errors.RefusedError, match=r"a path is not an image name; .* 'holdfast images list'"):
        reference.canonical(given)


@pytest.mark.parametrize(
    ("given", "command"),
    [
        (
            "nvcr.io#nvidia/pytorch:24.01-py3",
            "add docker://nvcr.io/nvidia/pytorch:24.01-py3 nvcr.io/nvidia/pytorch:24.01-py3",
        ),
        ("docker://ubuntu:24.04", "add docker://docker.io/library/ubuntu:24.04 ubuntu:24.04"),
        ("docker://user/image", "add docker://docker.io/user/image:latest user/image:latest"),
        ("registry:5000#team/image:1", "add docker://registry:5000/team/image:1 registry:5000/team/image:1"),
        ("holdfast-training", "build"),
    ],
)
def test_an_image_that_is_not_there_comes_with_the_command_that_adds_it(
    tmp_path: Path, given: str, command: str
) -> None:
    with pytest.raises(errors.RefusedError, match=f"run: holdfast images {re.escape(command)}, or name one"):
        container.find_image(step(given, folder=tmp_path))


def step(image: str, *, folder: Path) -> request_command.StepRequest:
    user = request_command.StepUser(uid=os.getuid(), gid=os.getgid(), groups=())
    return request_command.StepRequest(user=user, image=image, images=str(folder), folder=str(folder))


HEAD = b"hsqs" + bytes(36) + (1000).to_bytes(8, "little")


@pytest.mark.root
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is not a squashfs file; make one with enroot import or mksquashfs"),
        (b"#!/bin/sh\n" * 99, "it is not a squashfs file"),
        (HEAD + bytes(100), "it has 148 of its 1000 bytes; copy it again"),
        (None, "no such file on this node"),
    ],
)
def test_an_image_file_that_is_none_or_half_a_one_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "image.sqsh").write_bytes(content)
    with pytest.raises(errors.RefusedError, match=re.escape(f"failed to import image file: ./image.sqsh: {said}")):
        container.find_image(step("./image.sqsh", folder=tmp_path))


def test_variables_and_folder_of_an_image_file_are_those_that_enroot_wrote(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "environment").write_text("PATH=/opt/bin:/bin\nNAME=two words\nnone\n")
    (tmp_path / "etc" / "rc").write_text('mkdir -p "/work" 2> /dev/null\ncd "/work" && unset OLDPWD || exit 1\n')
    found = squashfs.config(tmp_path)
    assert spec.environment(found) == ("PATH=/opt/bin:/bin", "NAME=two words")
    assert spec.working_directory(found) == "/work"
    (tmp_path / "etc" / "rc").unlink()
    (tmp_path / "etc" / "rc").symlink_to("/etc/passwd")
    assert spec.working_directory(squashfs.config(tmp_path)) == "/"


@pytest.mark.parametrize(
    "given", ["", "a/../b", "a//b", "a b", "a:", "a:b:c", "a/.hidden", "-a", "a\0b", "a" * 600, "ä", "name:tag/x", "#a"]
)
def test_what_is_not_an_images_name_is_refused(given: str) -> None:
    with pytest.raises(
        errors.RefusedError, match=r"is not an image name; allowed: \[USER@\]\[REGISTRY#\]IMAGE\[:TAG\]"
    ):
        reference.canonical(given)


def test_a_name_is_one_file_of_the_store() -> None:
    assert reference.file_name("nvcr.io/nvidia/pytorch:21.12-py3") == "nvcr.io%2Fnvidia%2Fpytorch%3A21.12-py3"


def test_mounts_mean_what_they_mean_to_pyxis() -> None:
    assert mounts.parse("/fsx:/data:ro+rprivate,/a,./b:/c:,tmpfs:/scratch:noexec", folder="/fsx/me") == (
        mounts.ContainerMount(source="/fsx", target="/data", attributes=frozenset({"ro"})),
        mounts.ContainerMount(source="/a", target="/a"),
        mounts.ContainerMount(source="/fsx/me/./b", target="/c"),
        mounts.ContainerMount(source="", target="/scratch", attributes=frozenset({"noexec"})),
    )
    assert mounts.parse("") == ()


def test_a_target_never_leaves_the_container() -> None:
    assert mounts.parse("/a:/x/../../y,/b:../z,/c://d") == (
        mounts.ContainerMount(source="/a", target="/y"),
        mounts.ContainerMount(source="/b", target="/z"),
        mounts.ContainerMount(source="/c", target="/d"),
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (":", "invalid format: :"),
        ("/a:", "invalid format: /a:"),
        ("/a:/b,", "invalid format: "),
        ("a:/b", "mount source must be a relative path, an absolute path"),
        ("/a:b", "mount target must be a relative path or an absolute path"),
        ("umount:/tmp", "'umount' is not available on the local cluster"),
        ("/a:/b:suid", "flag 'suid' is not known; allowed: bind, nodev"),
        ("/:/", "the container's / is its image"),
        ("/a:/b/..", "the container's / is its image"),
        (",".join(["/a"] * 257), "257 mounts; at most 256 are allowed"),
    ],
)
def test_a_mount_that_cannot_be_is_refused(option: str, said: str) -> None:
    with pytest.raises(errors.RefusedError) as refused:
        mounts.parse(option)
    assert said in str(refused.value)


def test_a_request_is_read_as_the_plugin_writes_it() -> None:
    words = [
        "uid=1000",
        "gid=1001",
        "groups=1001,27",
        "images=/i",
        "image=a=b",
        "mounts=/a:/b",
        "home=",
    ]
    request = request_command.parse("".join(f"{word}\0" for word in words).encode())
    assert (request.user.uid, request.user.gid, request.user.groups, request.user.home) == (1000, 1001, (1001, 27), "/")
    assert (request.image, request.mounts, request.read_only) == ("a=b", "/a:/b", False)


def test_a_request_beyond_the_limit_is_refused() -> None:
    with pytest.raises(errors.RefusedError, match=f"at most {request_command.MAX_BYTES} are allowed"):
        request_command.parse(b"x" * (request_command.MAX_BYTES + 1))


def test_the_images_environment_always_says_where_programs_are() -> None:
    assert spec.environment({}) == (f"PATH={spec.DEFAULT_PATH}",)
    assert spec.environment({"config": None}) == (f"PATH={spec.DEFAULT_PATH}",)
    assert spec.environment({"config": {"Env": ["A=1", "PATH=/bin", "broken", "=x"]}}) == ("A=1", "PATH=/bin")


def test_the_working_directory_is_absolute() -> None:
    assert spec.working_directory({"config": {"WorkingDir": "work/"}}) == "/work"
    assert spec.working_directory({"config": {"WorkingDir": ""}}) == "/"


def test_the_users_account_comes_first_and_is_the_only_one_of_its_number() -> None:
    image = "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\nubuntu:x:5:5::/:/bin/sh\n"
    made = spec.with_account(image, entry="ubuntu:x:1000:1000::/home/ubuntu:/bin/sh")
    assert made == "ubuntu:x:1000:1000::/home/ubuntu:/bin/sh\nroot:x:0:0::/root:/bin/sh\n"
    assert spec.with_account("", entry="a:x:7:") == "a:x:7:\n"


def test_runc_is_given_no_privilege_and_no_namespace_of_processes_or_network_to_make() -> None:
    config = spec.runc_config(root="/r", process_files="/p", files={"/etc/hosts": "/h"}, uid=1000, gid=1001)
    assert config["process"]["noNewPrivileges"] is True
    assert "capabilities" not in config["process"]
    assert config["process"]["user"] == {"uid": 1000, "gid": 1001}
    assert {one["type"] for one in config["linux"]["namespaces"]} == {"mount", "pid"}
    assert {mount["destination"] for mount in config["mounts"]} == {
        "/proc",
        "/sys",
        "/dev",
        "/tmp",
        "/run",
        "/etc/hosts",
    }
    for mount in config["mounts"]:
        assert mount["destination"] == "/proc" or "nosuid" in mount["options"]


def test_the_helper_runs_with_the_standard_library_alone(tmp_path: Path) -> None:
    shutil.copytree(Path(containers.__file__).parent / "start", tmp_path / "start")
    program = "import sys; sys.path.insert(0, sys.argv[1]); from start import main"
    command = [sys.executable, "-I", "-S", "-B", "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
