"""The flags of AWS's hyperpodrun, as holdfast-run gets them."""

from pathlib import Path
from typing import Any

import pytest
from torch.distributed.run import get_args_parser

from holdfast_runtime.launcher import hyperpodrun

OPERATOR = {"PET_NNODES": "3", "PET_NPROC_PER_NODE": "8"}


def given(text: str, environment: dict[str, str] | None = None) -> list[str]:
    values = hyperpodrun.command_line().parse_args(text.split())
    return hyperpodrun.launcher_arguments(values, OPERATOR if environment is None else environment)


def test_place_and_size_come_from_the_operator_and_the_rest_from_the_flags() -> None:
    text = "--nnodes=2 --nproc_per_node=4 --rdzv-backend hyperpod --log_dir /tmp/hyperpod /job/ddp.py --nnodes 7"
    found = ["--nproc-per-node", "4", "--log-dir", "/tmp/hyperpod", "/job/ddp.py", "--nnodes", "7"]
    assert given(text) == found
    assert given(text, {}) == ["--nnodes", "2", *found]


def test_output_of_both_places_is_the_pods_log_where_log_rules_look_for_it() -> None:
    assert given("--tee=3 --log_dir=/tmp/hyperpod x.py") == ["x.py"]


def test_flags_of_aws_s_page_are_taken() -> None:
    text = (
        "--server-host 0.0.0.0 --server-port 8080 --server-log-level info --server-shutdown-timeout 300 "
        "--shutdown-signal SIGKILL --shutdown-timeout 45 --inprocess-restart --inprocess-timeout 60 -m train.main a b"
    )
    assert given(text) == ["--deadlines", "stop=45.0", "-m", "train.main", "a", "b"]


def test_every_flag_of_torchrun_is_taken() -> None:
    own = {flag for action in hyperpodrun.command_line()._actions for flag in action.option_strings}
    assert {flag for action in get_args_parser()._actions for flag in action.option_strings} <= own


def test_flags_of_aws_s_checkpointless_manifests_are_taken() -> None:
    text = "--nproc_per_node=8 --log_dir /logs --tee 3 --redirect 3 --inprocess-restart x.py --redirect 4"
    assert given(text) == ["--nproc-per-node", "8", "x.py", "--redirect", "4"]


def test_the_operator_s_number_of_ranks_stands_for_auto_and_without_it_the_devices_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert given("--nproc-per-node auto x.py") == ["x.py"]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [Path("/dev/nvidia0"), Path("/dev/nvidia1")])
    assert given("--nproc-per-node=gpu x.py", {}) == ["--nproc-per-node", "2", "x.py"]


@pytest.mark.parametrize(("exit_code", "result", "trains"), [(0, 0, True), (3, 3, False)])
def test_training_starts_after_the_script_before_it(
    exit_code: int, result: int, trains: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("holdfast_runtime.launcher.__main__.main", lambda arguments: seen.append(arguments) or 0)
    script, note = tmp_path / "before.sh", tmp_path / "note"
    script.write_text(f'#!/bin/sh\necho "$2" >> {note}\nexit {exit_code}\n')
    script.chmod(0o755)
    arguments = ["--pre-train-script", str(script), "--pre-train-args", "-a 'x y'", "--post-train-script", str(script)]
    assert hyperpodrun.main([*arguments, "x.py", "--lr", "1"]) == result
    assert seen == ([["x.py", "--lr", "1"]] if trains else [])
    assert note.read_text().splitlines() == (["x y", ""] if trains else ["x y"])
