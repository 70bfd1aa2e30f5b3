"""The lifecycle puts the witness on the controller, and fails no controller for it."""

import sys
from pathlib import Path

import pytest
from scratch_node import ScratchNode

from holdfast_lifecycle.steps import witness

UNIT = "etc/systemd/system/holdfast-witness.service"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchNode:
    program = tmp_path / "holdfast_runtime" / "witness"
    program.mkdir(parents=True)
    (program / "__main__.py").write_text("first\n")
    return ScratchNode(tmp_path, monkeypatch)


def test_the_controller_runs_it_now_and_after_a_boot(node: ScratchNode) -> None:
    result = node.step("witness")

    assert (result.outcome, result.remark) == ("done", "holdfast-witness runs")
    assert "holdfast-witness" in node.running()
    assert "systemctl enable --now holdfast-witness" in node.calls()
    text = node.read(UNIT)
    assert f"ExecStart={sys.executable} -S -m holdfast_runtime.witness\n" in text
    assert "Restart=always\n" in text
    assert "WantedBy=multi-user.target\n" in text


def test_a_second_run_changes_nothing(node: ScratchNode) -> None:
    node.step("witness")
    node.forget()

    assert node.step("witness").outcome == "satisfied"
    assert {line.split()[1] for line in node.calls("systemctl")} == {"is-active"}


def test_another_program_is_started_in_place_of_the_old_one(node: ScratchNode, tmp_path: Path) -> None:
    node.step("witness")
    node.forget()
    (tmp_path / "holdfast_runtime/witness/__main__.py").write_text("second\n")

    assert node.step("witness").outcome == "done"
    assert "systemctl restart holdfast-witness" in node.calls()


def test_a_controller_that_cannot_have_one_says_so_and_is_not_failed(node: ScratchNode) -> None:
    node.breaks("holdfast-witness")

    result = node.step("witness")

    assert result.outcome == "done"
    assert result.remark.startswith("no witness: jobs on two nodes cannot survive the loss of one: holdfast-witness")


def test_a_python_that_is_too_old_is_named(node: ScratchNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "_LEAST", (9, 0))

    result = node.step("witness")

    assert result.outcome == "satisfied"
    assert "but 3.10 is required" in result.remark
    assert not (node.root / UNIT).exists()


def test_no_other_node_runs_it(node: ScratchNode) -> None:
    assert "witness" not in node.worker().lifecycle("users", "witness")
