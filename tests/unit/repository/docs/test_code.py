"""Code blocks of pages: commands exist with their options, settings pass ``holdfast check``, constructs synthesise."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import typer
import yaml
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from house import make_targets
from typer.testing import CliRunner

import holdfast_constructs
from holdfast import cli
from local_tables import commands

ROOT = Path(__file__).parents[4]
PAGES = [
    ROOT / "README.md",
    ROOT / "constructs/README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "adr"),
    *sorted((ROOT / "examples").rglob("README.md")),
    ROOT / "holdfast/cli/repository/template/README.md.txt",
    ROOT / "holdfast/cli/repository/template/SKILL.md.txt",
]
BASES = {"health-agent.md": "local-eks", "jobs-on-kubernetes.md": "local-eks", "node-pools.md": "eks-p5"}
"""Environment that the settings of a page belong to. Default: minimal."""
GLOBAL = {"--help", "--version", "--install-completion"}
READ_ONLY = {"check", "explain", "diff", "plan", "status", "jobs", "logs", "events", "incidents"}
SCRIPT = re.compile(r"[\w./-]+\.(py|sh)$")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of each command of a block of shell, without comments and assignments."""
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\||;|\$\(", line.partition(" #")[0]):
            words = re.sub(r"[)\"']+$", "", part.strip()).split()
            while words and (words[0] in ("sudo", "eval", "srun", "nice") or re.match(r"\w+=", words[0])):
                words = words[1:]
            if words and not words[0].startswith("#"):
                yield words


COMMANDS = {
    names: {word for one in command.params for word in (*one.opts, *one.secondary_opts)}
    for names, command in commands(typer.main.get_command(cli.app))
}


@cache
def launcher_options() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast_runtime.launcher", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": f"{ROOT}/containers/training:{ROOT}/containers/common"},
    )
    return set(re.findall(r"--[a-z][a-z-]+", done.stdout))


def problem(words: list[str]) -> str:
    """Return the reason why a command line cannot work, or nothing."""
    name, *rest = words
    if name == "make":
        return "" if rest[:1] and rest[0] in make_targets() else "no such target of make"
    if name == "holdfast-run":
        end = next((number for number, word in enumerate(rest) if SCRIPT.match(word)), len(rest))
        return ", ".join(sorted(options(rest[:end]) - launcher_options()))
    if name != "holdfast" or not rest:
        return ""
    command = next((key for key in (tuple(rest[:2]), tuple(rest[:1])) if key in COMMANDS), None)
    if command is None:
        return "" if rest[0] in GLOBAL else "no such command of holdfast"
    free = command == ("submit",)  # other options are those of sbatch
    own = rest[: rest.index("--")] if "--" in rest else rest
    return "" if free else ", ".join(sorted(options(own) - COMMANDS[command] - GLOBAL))


def options(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}


def test_each_command_of_a_page_exists_with_its_options() -> None:
    lines = [(page, words) for page in PAGES for text in blocks(page, "sh") for words in command_lines(text)]
    wrong = [f"{page.name}: {shlex.join(words)}: {found}" for page, words in lines if (found := problem(words))]

    assert len(lines) > 100
    assert wrong == []


def test_commands_that_an_agent_may_use_change_nothing_and_print_json_where_they_can() -> None:
    (skill,) = [page for page in PAGES if page.name == "SKILL.md.txt"]
    (block,) = blocks(skill, "sh")
    lines = [words for words in command_lines(block) if words[0] == "holdfast"]

    assert {words[1] for words in lines} == READ_ONLY
    assert [words for words in lines if "--json" not in words and "--json" in COMMANDS[(words[1],)]] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("holdfast status --nonsense", "--nonsense"),
        ("sudo holdfast nonsense", "no such command of holdfast"),
        ("holdfast-run --spare 1 train.py --lr 3", "--spare"),
        ("make nonsense", "no such target of make"),
        ("holdfast images list --json", ""),
    ],
)
def test_a_wrong_option_is_found(line: str, reason: str) -> None:
    (words,) = command_lines(line)

    assert problem(words) == reason


def merged(base: Any, part: Any) -> Any:
    """Settings of a page over those of a file; items of a list with names replace those of the same name."""
    if isinstance(base, dict) and isinstance(part, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in part.items()}}
    if isinstance(base, list) and isinstance(part, list) and all("name" in item for item in part):
        added = {item["name"]: item for item in part}
        kept = [merged(item, added.pop(item["name"], {})) for item in base]
        return [*kept, *added.values()]
    return part


def settings() -> Iterator[tuple[str, str, Any]]:
    """Page, base and settings of each block of YAML; what a block leaves out is ``...``."""
    for page in PAGES:
        for text in blocks(page, "yaml"):
            found = yaml.safe_load(
                re.sub(r"^ *\.\.\.\n", "", text, flags=re.MULTILINE).replace("sha256:...", "sha256:" + 64 * "0")
            )
            if isinstance(found, list):
                found = {"cluster": {"instance_groups": found}}
            yield page.name, BASES.get(page.name, "minimal"), found


def checked(base: str, part: Any, folder: Path) -> str:
    """The errors that ``holdfast check`` prints of settings over those of an environment."""
    file = folder / "environment.yaml"
    text = (ROOT / "environments" / f"{base}.yaml").read_text()
    file.write_text(yaml.safe_dump(merged(yaml.safe_load(text), part), sort_keys=False))
    done = CliRunner().invoke(cli.app, ["check", str(file), "--offline"])
    return "" if done.exit_code == 0 else done.output + str(done.exception or "")


def test_the_settings_of_pages_pass_the_check(tmp_path: Path) -> None:
    found = {page: checked(base, part, tmp_path) for page, base, part in settings()}

    assert len(found) >= 3
    assert {page: errors for page, errors in found.items() if errors} == {}


def test_a_wrong_setting_of_a_page_fails_the_check(tmp_path: Path) -> None:
    assert "nonsense" in checked("minimal", {"lifecycle": {"nonsense": 1}}, tmp_path)


class Stack(cdk.Stack):
    """A stack with the things that the snippets have from elsewhere."""

    def __init__(self) -> None:
        super().__init__(cdk.App(), "Team", env=cdk.Environment(account="111122223333", region="us-west-2"))

    @property
    def availability_zones(self) -> list[str]:
        return ["us-west-2a", "us-west-2b"]


def names(stack: Stack) -> dict[str, Any]:
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-1",
        availability_zones=["us-west-2a"],
        private_subnet_ids=["subnet-0a1b2c3d4e5f60718"],
        private_subnet_route_table_ids=["rtb-1"],
    )
    role = iam.Role.from_role_arn(stack, "Role", "arn:aws:iam::111122223333:role/Team")
    return {
        **{name: getattr(holdfast_constructs, name) for name in holdfast_constructs.__all__},
        "Path": Path,
        "self": stack,
        "stack": stack,
        "vpc": vpc,
        "group": ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0a1b2c3d4e5f60718"),
        "platform": eks.Cluster.from_cluster_attributes(stack, "Platform", cluster_name="platform", vpc=vpc),
        "nodes_role": role,
        "operator_role": role,
    }


@pytest.mark.parametrize("page", ["docs/do/existing.md", "constructs/README.md"])
def test_the_constructs_of_a_page_synthesise(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "on_init_complete.sh").write_text("#!/bin/bash\n")
    monkeypatch.chdir(tmp_path)
    stack = Stack()
    (snippet,) = blocks(ROOT / page, "python")

    exec(snippet, names(stack))
    resources = assertions.Template.from_stack(stack).to_json()["Resources"].values()

    assert [each["Type"] for each in resources].count("AWS::SageMaker::Cluster") == 1
