"""``holdfast explain`` prints what a finding means, from the package's own rules and examples."""

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli.commands.environment import explain
from holdfast.cli.findings import as_plain_text
from holdfast.cli.terminal import CommandError
from holdfast.validation import all_rules

app = typer.Typer()
app.command()(explain.explain)


def test_a_code_is_explained_with_its_example_and_the_fix() -> None:
    lines = CliRunner().invoke(app, ["hf041"]).stdout.splitlines()

    assert lines[0] == "HF041: The cluster is created after the routes and endpoints of its subnets"
    assert "    Resources.Cluster.DependsOn: [NodesRoutesOfSubnet, FromNodes, ToNodes, S3]" in lines
    assert lines[-1] == "        fix: add NodesRoute to DependsOn of Cluster"


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("gpu-lost", "gpu-lost: a GPU fell off the bus", "least remedy: replace, due now"),
        ("xid-79", "xid-79: fault gpu-lost: a GPU fell off the bus", "remedy: replace, due now"),
        ("XID-7", "xid-7: fault gpu-notice: ", "severity: info; remedy: none"),
    ],
)
def test_a_fault_or_an_xid_is_explained_as_the_agents_judge_it(name: str, first: str, second: str) -> None:
    lines = CliRunner().invoke(app, [name]).stdout.splitlines()

    assert lines[0].startswith(first)
    assert second in lines[1]
    assert lines[2].startswith("  source: NVIDIA Xid catalogue")


def test_a_code_of_cfn_lint_is_explained_as_its_own() -> None:
    text = CliRunner().invoke(app, ["e3012"]).stdout

    assert text.startswith("E3012: Check resource properties values\n")
    assert "Source: cfn-lint 1." in text
    assert "cfn-lint: {config: {ignore_checks: [E3012]}}" in text
    assert CliRunner().invoke(app, ["W3010"]).stdout.startswith("W3010: a code of cfn-lint that is not reported: ")


def test_without_a_code_all_are_listed() -> None:
    lines = CliRunner().invoke(app, []).stdout.splitlines()

    assert [line.split()[0] for line in lines] == sorted(all_rules())


def test_an_unknown_code_is_refused_with_those_that_exist() -> None:
    error = CliRunner().invoke(app, ["HF000"]).exception

    assert isinstance(error, CommandError)
    assert str(error).startswith("got 'HF000'; allowed: one of ")
    assert str(error).endswith("; list them with holdfast explain")


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# A\n\n**b** [c](d.md)\n", "A\n\nb c"),
        ("a\n\n```yaml\n# **b**\n\nc: [d](e)\n```\n", "a\n\n    # **b**\n\n    c: [d](e)"),
    ],
)
def test_prose_loses_its_marks_and_code_keeps_them(markdown: str, text: str) -> None:
    assert as_plain_text(markdown) == text
