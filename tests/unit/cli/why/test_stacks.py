import pytest
from rich.console import Console

from holdfast.cli.diagnosis import (
    Diagnosis,
    StackOf,
    Suspect,
    Verdict,
    doing,
    doing_by_output,
    parse_stack,
    place,
    shown_frames,
)
from holdfast.cli.views import render_diagnosis

FAULTHANDLER = """Current thread 0x00007f0a1 (most recent call first):
  File "/opt/holdfast_runtime/control/client.py", line 204 in _dump
  File "/opt/holdfast_runtime/control/client.py", line 170 in _listen

Thread 0x00007f0b2 (most recent call first):
  File "/fsx/jobs/7/train.py", line 31 in spin
  File "/fsx/jobs/7/train.py", line 52 in <module>
"""
PY_SPY = """Process 812: python train.py
Python v3.12.3 (/usr/bin/python3.12)

Thread 812 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    main (train.py:22)
    <module> (train.py:60)
Thread 840 (idle): "Thread-1"
    wait (threading.py:359)
"""


def test_the_main_thread_is_read_innermost_first() -> None:
    assert [frame.function for frame in parse_stack(FAULTHANDLER)] == ["spin", "<module>"]
    assert [frame.function for frame in parse_stack(PY_SPY)] == ["all_reduce", "main", "<module>"]
    assert parse_stack("") == ()
    assert parse_stack("Error: Failed to suspend process") == ()


def test_the_activity_and_the_place_in_the_program_follow_from_a_stack() -> None:
    assert doing(parse_stack(FAULTHANDLER)) == "program"
    assert place(parse_stack(FAULTHANDLER)) == "train.py:31 in spin"
    assert doing(parse_stack(PY_SPY)) == "collective"
    assert (doing(()), place(())) == ("", "")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("saving checkpoint to /fsx", "checkpoint"),
        ("checkpoint written", ""),
        ("Evaluating on 200 batches", "evaluation"),
        ("evaluation done", ""),
        ("step 12 loss 3.1", ""),
        ("torch.compile: autotuning", "compile"),
    ],
)
def test_the_last_line_of_output_may_announce_a_slow_phase(line: str, expected: str) -> None:
    assert doing_by_output(["step 1", line, ""]) == expected


UNDER_LAUNCHER = """Current thread 0x00007f0b2 (most recent call first):
  File "/opt/env/lib/python3.11/site-packages/torch/nn/functional.py", line 2898 in batch_norm
  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1789 in _call_impl
  File "/fsx/jobs/7/model.py", line 3 in <module>
  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed
  File "/fsx/jobs/7/train.py", line 52 in <module>
  File "<frozen runpy>", line 88 in _run_code
  File "/opt/holdfast/lib/holdfast_runtime/launcher/zygote/__main__.py", line 133 in run_program
"""


def test_a_shown_stack_begins_at_the_program_and_has_no_path_of_its_environment() -> None:
    assert [frame.text for frame in shown_frames(parse_stack(UNDER_LAUNCHER))] == [
        "batch_norm (torch/nn/functional.py:2898)",
        "<module> (/fsx/jobs/7/model.py:3)",
        "<module> (/fsx/jobs/7/train.py:52)",
    ]


@pytest.mark.parametrize(
    ("verdict", "step_time", "has_stacks"),
    [
        ("runs", "steady: 0.3 s a step", False),
        ("runs", "", False),
        ("runs", "gradual: from 0.3 s to 1.0 s a step", True),
        ("at-fault", "steady: 0.3 s a step", True),
    ],
)
def test_ranks_of_a_healthy_job_at_its_usual_pace_are_not_listed(
    verdict: Verdict, step_time: str, has_stacks: bool
) -> None:
    found = Diagnosis(
        job="7", state="RUNNING", verdict=verdict, summary="", culprits=[], changed=[], errors=[], step_time=step_time,
        step=9, stands_since="", last_step="", waited_for=[Suspect(kind="slow", text="rank 1 computes", since_s=0.0)],
        waiting=[], stacks=[StackOf(rank=1, node="n", frames=["f (train.py:1)"])], numbers=[], reason=[], next=[],
        output=[],
    )  # fmt: skip
    console = Console(width=120)
    with console.capture() as shown:
        console.print(render_diagnosis(found))
    assert ("rank 1" in shown.get()) == has_stacks
