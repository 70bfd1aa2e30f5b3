"""Faults on purpose: where they are addressed to, what they do to a real process, and that they are counted."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from killing import PYTHONPATH

from holdfast_runtime.faults import Fault, InjectedError, Injector, parse_faults

REACH = """
import sys
from holdfast_runtime.faults import Injector
injector = Injector.from_environment()
injector.rank, injector.step = 1, 4
injector.point("forward")
print("alive", flush=True)
"""


def environment(fired: Path, *faults: dict[str, object]) -> dict[str, str]:
    return {"HOLDFAST_FAULTS": json.dumps(faults), "HOLDFAST_FAULTS_FIRED": str(fired)}


def start(fired: Path, fault: dict[str, object]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", REACH],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment(fired, fault)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.mark.parametrize(
    ("kind", "code"), [("SIGKILL", -signal.SIGKILL), ("SIGSEGV", -signal.SIGSEGV), ("exit", 17), ("exception", 1)]
)
def test_a_fault_ends_a_real_process_and_its_mark_outlives_it(tmp_path: Path, kind: str, code: int) -> None:
    with start(tmp_path, {"kind": kind, "phase": "forward", "rank": 1, "step": 4}) as process:
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (code, "")
    mark = json.loads((tmp_path / "0.0").read_text())
    assert mark == {"pid": process.pid, "rank": 1, "step": 4, "phase": "forward", "kind": kind}


def test_a_stopped_process_is_alive_and_does_nothing(tmp_path: Path) -> None:
    with start(tmp_path, {"kind": "SIGSTOP", "phase": "forward"}) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            process.send_signal(signal.SIGCONT)
            assert process.communicate(timeout=30)[0] == "alive\n"
        finally:
            process.kill()


@pytest.mark.parametrize("address", [{"rank": 0}, {"step": 5}, {"phase": "vote"}])
def test_a_fault_with_another_address_does_not_happen(tmp_path: Path, address: dict[str, object]) -> None:
    fault = {"kind": "exception", "phase": "forward", "rank": 1, "step": 4} | address
    injector = Injector.from_environment(environment(tmp_path, fault))
    injector.rank, injector.step = 1, 4
    injector.point("forward")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_without_rank_and_step_happens_anywhere_but_only_so_often(tmp_path: Path) -> None:
    variables = environment(tmp_path, {"kind": "exception", "phase": "update", "times": 2})
    for _ in range(2):
        with pytest.raises(InjectedError, match="phase update"):
            Injector.from_environment(variables).point("update")
    Injector.from_environment(variables).point("update")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.0", "0.1"]


def test_equal_faults_are_counted_apart_by_their_place_in_the_list(tmp_path: Path) -> None:
    faults: list[dict[str, object]] = [{"kind": "exception", "phase": phase} for phase in ("data", "vote")]
    injector = Injector.from_environment(environment(tmp_path, *faults))
    with pytest.raises(InjectedError):
        injector.point("vote")
    assert [path.name for path in tmp_path.iterdir()] == ["1.0"]


@pytest.mark.parametrize("kind", ["corrupt", "slow", "cut"])
def test_faults_of_the_link_are_told_to_the_transfer_and_do_nothing_elsewhere(tmp_path: Path, kind: str) -> None:
    injector = Injector.from_environment(environment(tmp_path, {"kind": kind, "phase": "copy-out"}))
    assert injector.link("copy-out") == kind
    assert injector.link("copy-out") is None


def test_a_fault_of_the_process_happens_on_the_link_too() -> None:
    with pytest.raises(InjectedError):
        Injector([Fault(kind="exception", phase="copy-out")]).link("copy-out")


def test_without_faults_nothing_happens_and_nothing_is_needed() -> None:
    injector = Injector.from_environment({})
    injector.point("forward")
    assert injector.link("copy-out") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "must be a JSON list"),
        ("[1]", "is no fault"),
        ('[{"kind": "SIGKILL"}]', "is no fault"),
        ('[{"kind": "SIGHUP", "phase": "data"}]', "kind of a fault must be one of SIGKILL"),
        ('[{"kind": "exit", "phase": "data", "when": 3}]', "is no fault"),
        ('[{"kind": "exit", "phase": "data", "victims": ["rank:x"]}]', "victims of a fault are self"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_faults(text)


def test_a_victim_that_only_the_launcher_knows_needs_its_socket() -> None:
    with pytest.raises(ValueError, match="HOLDFAST_STATUS"):
        Injector([Fault(kind="SIGKILL", phase="data", victims=("rank:2",))]).point("data")


def test_a_fault_of_what_goes_on_beside_the_training_has_a_step_of_its_own() -> None:
    injector = Injector((Fault(kind="exception", phase="snapshot", step=6),))
    injector.step = 7
    injector.point("snapshot")

    with pytest.raises(InjectedError):
        injector.point("snapshot", step=6)


@pytest.mark.parametrize(("step", "happens"), [(5, False), (6, True), (8, True), (9, False)])
def test_a_fault_may_happen_in_steps_that_a_job_goes_back_to(step: int, happens: bool) -> None:
    fault = Fault(kind="exception", phase="fetch", step=8, back=2)

    assert fault.matches(phase="fetch", rank=0, step=step) is happens
