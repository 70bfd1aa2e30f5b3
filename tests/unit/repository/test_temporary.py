"""Temporary files of programs that run as root: never in the folder that all users share."""

import ast
import subprocess
from importlib.resources import files
from pathlib import Path

import yaml
from house import modules

ROOTS = ("holdfast.localcloud", "holdfast_agent", "holdfast_common", "holdfast_lifecycle")
MAKERS = ("NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mkdtemp", "mkstemp")


def test_each_temporary_file_of_root_names_its_folder() -> None:
    shared = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if f"{name}.".startswith(tuple(f"{root}." for root in ROOTS))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in MAKERS
        and "dir" not in {word.arg for word in node.keywords}
    ]
    assert shared == []


def test_the_token_of_a_pipeline_is_readable_by_its_user_alone(tmp_path: Path) -> None:
    template = files("holdfast.cli.repository").joinpath("template/gitlab-ci.yml.txt").read_text()
    script = yaml.safe_load(template.replace("@@region@@", "us-west-2"))["holdfast"]["script"][-1]
    diff = tmp_path / "ci" / "diff.sh"
    diff.parent.mkdir()
    diff.write_text('#!/bin/sh\nstat -c "%a %n" "$AWS_WEB_IDENTITY_TOKEN_FILE"; cat "$AWS_WEB_IDENTITY_TOKEN_FILE"\n')
    diff.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "AWS_ROLE_ARN": "arn", "AWS_TOKEN": "secret"}
    done = subprocess.run(
        ["bash", "-c", f"umask 022; {script}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"600 {tmp_path}/")
    assert done.stdout.endswith("\nsecret")
