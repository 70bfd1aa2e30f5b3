"""The lifecycle runner: order, parallelism, deadlines, and what is told when a step fails."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast_lifecycle import Context, LifecycleError, Result, Runner, Step, StepError, plan


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(
        root=tmp_path,
        bundle=tmp_path,
        cluster_name="local",
        instance_group="workers",
        instance_id="i-1",
        address="10.1.0.12",
        role="Compute",
        controller_address="10.1.0.4",
        users=(),
        fsx_mount_path="/fsx",
        events_path="/events.jsonl",
    )


def a_step(
    name: str,
    *,
    check: Callable[[Context], bool] = lambda context: False,
    apply: Callable[[Context], None] = lambda context: None,
    verify: Callable[[Context], str] = lambda context: "",
    timeout_s: float = 20,
    needs: tuple[str, ...] = (),
    roles: tuple[str, ...] = ("Compute",),
) -> Step:
    work = SimpleNamespace(check=check, apply=apply, verify=verify)
    return Step(name=name, load=lambda: work, timeout_s=timeout_s, needs=needs, roles=roles)


def run(context: Context, *steps: Step) -> dict[str, Result]:
    reported: list[Result] = []
    results = Runner(context=context, report=reported.append).run(plan(steps, role=context.role, hook=context.hook))
    assert sorted(reported) == sorted(results)
    return {result.step: result for result in results}


def test_a_satisfied_step_is_not_applied(context: Context) -> None:
    def fail(context: Context) -> None:
        raise AssertionError("applied")

    result = run(context, a_step("one", check=lambda context: True, apply=fail))["one"]
    assert (result.outcome, result.succeeded) == ("satisfied", True)


def test_apply_runs_once_and_the_second_run_finds_it_satisfied(context: Context) -> None:
    made = context.path("/made")
    step = a_step("one", check=lambda c: made.exists(), apply=lambda c: made.touch(exist_ok=False))
    assert run(context, step)["one"].outcome == "done"
    assert run(context, step)["one"].outcome == "satisfied"


def test_independent_steps_run_at_the_same_time(context: Context) -> None:
    def meet(own: str, other: str) -> Callable[[Context], None]:
        def apply(context: Context) -> None:
            context.path(own).touch()
            while not context.path(other).exists():
                time.sleep(0.005)

        return apply

    results = run(context, a_step("a", apply=meet("a", "b")), a_step("b", apply=meet("b", "a")))
    assert all(result.succeeded for result in results.values())


def test_a_step_starts_after_those_it_needs(context: Context) -> None:
    def note(name: str) -> Callable[[Context], None]:
        def apply(context: Context) -> None:
            with context.path("/order").open("a") as file:
                file.write(name)

        return apply

    run(
        context,
        a_step("c", apply=note("c"), needs=("b",)),
        a_step("b", apply=note("b"), needs=("a",)),
        a_step("a", apply=note("a")),
    )
    assert context.path("/order").read_text() == "abc"


def test_a_step_over_its_time_is_killed_with_its_programs(context: Context) -> None:
    def hang(context: Context) -> None:
        import subprocess

        child = subprocess.Popen(["sleep", "60"])
        context.path("/pid").write_text(str(child.pid))
        child.wait()

    began = time.monotonic()
    result = run(context, a_step("hang", apply=hang, timeout_s=0.5))["hang"]
    assert time.monotonic() - began < 5
    assert result.expected == "the step ends within 0.5 s"
    assert "still running after 0.5 s and was killed" in result.seen
    pid = int(context.path("/pid").read_text())
    assert _is_gone(pid)


def _is_gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def test_a_failed_step_stops_what_needs_it_and_nothing_else(context: Context) -> None:
    def refuse(context: Context) -> str:
        raise StepError(expected="a mount", seen="none", action="mount it")

    results = run(
        context, a_step("a", verify=refuse), a_step("b", needs=("a",)), a_step("c"), a_step("d", needs=("b",))
    )
    assert (results["a"].expected, results["a"].seen, results["a"].action) == ("a mount", "none", "mount it")
    assert [results[name].outcome for name in "abcd"] == ["failed", "not started", "done", "not started"]
    assert results["b"].seen == "it needs 'a'"


def test_a_bug_in_a_step_is_reported_with_its_place(context: Context) -> None:
    def divide(context: Context) -> None:
        1 / 0  # noqa: B018

    result = run(context, a_step("bug", apply=divide))["bug"]
    assert result.seen.startswith("ZeroDivisionError: division by zero (at ")
    assert "test_runner.py" in result.seen


def test_a_step_whose_process_is_killed_is_a_failure(context: Context) -> None:
    result = run(context, a_step("dies", apply=lambda context: os.kill(os.getpid(), 9)))["dies"]
    assert (result.outcome, result.seen) == ("failed", "its process was killed")


def test_the_plan_of_a_role_leaves_out_other_roles() -> None:
    steps = [a_step("a", roles=("Controller",)), a_step("b", needs=("a",))]
    assert [step.name for step in plan(steps, role="Compute", hook="OnCreate")] == ["b"]


def test_only_one_step_can_be_chosen() -> None:
    steps = [a_step("a"), a_step("b", needs=("a",))]
    assert [step.name for step in plan(steps, role="Compute", hook="OnCreate", only="b")] == ["b"]


@pytest.mark.parametrize(
    ("steps", "only", "message"),
    [
        ([("a", ("b",)), ("b", ("a",))], "", "steps need each other in a circle: a -> b -> a"),
        ([("a", ("z",))], "", "step 'a' needs unknown z; known: a"),
        ([("a", ()), ("a", ())], "", "step names must be unique, got a, a"),
        ([("a", ())], "z", "unknown step 'z'; known: a"),
    ],
)
def test_rejects_an_impossible_plan(steps: list[tuple[str, tuple[str, ...]]], only: str, message: str) -> None:
    with pytest.raises(LifecycleError, match=message):
        plan([a_step(name, needs=needs) for name, needs in steps], role="Compute", hook="OnCreate", only=only)
