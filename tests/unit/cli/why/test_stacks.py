import pytest

from holdfast.cli.diagnosis import doing, doing_by_output, parse_stack, place

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
