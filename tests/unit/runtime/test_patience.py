"""A job that cannot go on ends, and one that can does not: the rules alone, over every order of what may happen."""

import random
from itertools import product

import pytest

from holdfast_runtime.patience import (
    Error,
    Ledger,
    Pace,
    Where,
    begun,
    budget,
    failed,
    judged,
    moved,
    noted,
    paused,
    silence_s,
)


def error(step: int = 5, *, generation: int, process: str = "a", where: Where = "step") -> Error:
    return Error(step=step, generation=generation, process=process, what="ValueError: no", where=where)


def verdicts(*errors: Error, world_size: int = 4) -> list[str]:
    """What each is answered, one after the other."""
    ledger, found = Ledger(budget=10), []
    for item in errors:
        ledger = noted(ledger, item)
        found.append(judged(ledger, item, world_size=world_size))
    return found


def test_a_step_that_raised_is_tried_again_then_by_another_process_and_then_the_job_ends() -> None:
    assert verdicts(error(generation=1), error(generation=2), error(generation=3, process="b")) == [
        "again",
        "replace",
        "end",
    ]


def test_a_step_that_raises_in_two_processes_is_tried_again_once() -> None:
    first = [error(generation=1, process=name) for name in "ab"]
    assert verdicts(*first, error(generation=2)) == ["again", "again", "end"]


def test_the_only_process_is_not_replaced() -> None:
    assert verdicts(error(generation=1), error(generation=2), world_size=1) == ["again", "end"]


def test_what_was_raised_after_the_update_replaces_its_process_and_a_second_one_ends_the_job() -> None:
    after = [error(generation=1, process=name, where="after") for name in "ab"]
    assert verdicts(*after) == ["replace", "end"]


def test_a_collective_outside_of_steps_that_was_left_counts_once_a_generation_and_ends_the_job_in_the_second() -> None:
    first = [error(generation=1, process=name, where="outside") for name in "abc"]
    assert verdicts(*first) == ["replace"] * 3
    assert verdicts(*first, error(generation=2, process="d", where="outside")) == ["replace"] * 3 + ["end"]


def test_what_is_raised_in_a_recovery_is_tried_again_and_then_ends_the_job() -> None:
    assert verdicts(error(generation=1, where="recovery"), error(generation=2, where="recovery")) == ["again", "end"]


def test_errors_of_other_steps_do_not_count() -> None:
    errors = [error(step, generation=step, process=process) for step in range(20) for process in "ab"]
    assert set(verdicts(*errors)) == {"again"}


def test_an_error_that_is_told_twice_is_one() -> None:
    assert verdicts(error(generation=1), error(generation=1)) == ["again", "again"]


def test_a_finished_step_gives_the_whole_budget_back() -> None:
    ledger = Ledger(budget=2)
    for step in (0, 0, 0, 1, 1, 1):
        ledger, spent = begun(ledger, step=step)
        assert not spent
    assert begun(ledger, step=1)[1] == "idle"
    assert begun(ledger, step=0)[1] == "idle"
    assert begun(ledger, step=2)[1] == ""


def end_of(every: int, *, steps: int = 1000, nodes: int = 1) -> int | None:
    """In which step a job ends whose program fails after each so many steps; None when it does not."""
    ledger, _ = begun(Ledger(budget=budget(nodes)), step=0)
    for generation, step in enumerate(range(0, steps, every)):
        item = error(step, generation=generation, process=str(generation), where="after")
        ledger = noted(ledger, item)
        assert judged(ledger, item, world_size=4) == "replace"
        ledger, spent = begun(ledger, step=step + 1)
        if spent:
            assert spent == "failing"
            return step
    return None


def test_a_program_that_fails_at_every_step_after_its_update_ends_by_a_budget_of_its_own() -> None:
    assert (end_of(1), end_of(2), end_of(4)) == (22, 44, 88)
    assert end_of(1, nodes=32) == 84


def test_a_program_that_fails_now_and_then_and_trains_on_is_let_go_on() -> None:
    assert end_of(5) is None


def test_many_errors_of_one_generation_count_once() -> None:
    ledger = Ledger(budget=2)
    for rank in range(20):
        ledger = noted(ledger, error(3, generation=1, process=str(rank)))
    assert failed(ledger, generation=1, step=3) == ledger
    assert begun(ledger, step=4)[1] == ""


def test_each_node_adds_to_the_budget() -> None:
    assert (budget(1), budget(32)) == (22, 84)


class World:
    """A job whose processes raise at one step as a script of the test says; the launchers do what the rules say."""

    def __init__(self, ranks: int, raising: list[frozenset[int]]) -> None:
        self.processes = list(range(ranks))
        self.raising = raising
        """By attempt: the ranks that raise. What is after the last attempt is as in the last."""
        self.ledger, _ = begun(Ledger(budget=budget(1)), step=5)
        self.attempts = 0

    def run(self) -> str:
        """Until the step is finished or the job ends; how it ended."""
        while True:
            ranks = self.raising[min(self.attempts, len(self.raising) - 1)]
            self.attempts += 1
            if not ranks:
                return "finished"
            errors = [error(generation=self.attempts, process=str(self.processes[rank])) for rank in sorted(ranks)]
            for item in errors:
                self.ledger = noted(self.ledger, item)
            answers = [judged(self.ledger, item, world_size=len(self.processes)) for item in errors]
            if "end" in answers:
                return "ended"
            for rank, answer in zip(sorted(ranks), answers, strict=True):
                if answer == "replace":
                    self.processes[rank] = 100 * self.attempts + rank
            self.ledger, spent = begun(self.ledger, step=5)
            if spent:
                return "out of generations"


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_whoever_raises_the_job_ends_by_the_third_attempt_or_finishes_the_step(ranks: int) -> None:
    subsets = [frozenset(rank for rank in range(ranks) if number >> rank & 1) for number in range(2**ranks)]
    for raising in product(subsets, repeat=3):
        world = World(ranks, list(raising))

        end = world.run()

        assert world.attempts <= 3, raising
        assert end != "out of generations"
        # One try more is always made: it may have been the machine.
        if not raising[0] or not raising[1]:
            assert end == "finished", raising
        # Nobody is replaced while nobody else has the state.
        assert end == "ended" or ranks == 1 or len(set(world.processes) - set(range(ranks))) < ranks, raising


@pytest.mark.parametrize("seed", range(20))
def test_whatever_breaks_generations_the_job_makes_steps_or_ends_within_its_budget(seed: int) -> None:
    chance = random.Random(seed)
    ledger, step, idle = Ledger(budget=budget(2)), 0, 0
    for _ in range(2000):
        finishes = chance.random() < 0.1
        step, idle = (step + 1, 0) if finishes else (step, idle + 1)
        ledger, spent = begun(ledger, step=step if chance.random() < 0.9 or finishes else max(0, step - 1))
        assert (spent == "") == (ledger.idle <= ledger.budget)
        assert ledger.idle <= budget(2) + 1
        if spent:
            assert idle >= budget(2)
            return


def paced(*seconds: float) -> Pace:
    pace, now_s = moved(Pace(), step=0, now_s=0.0), 0.0
    for number, duration in enumerate(seconds):
        now_s += duration
        pace = moved(pace, step=number + 1, now_s=now_s)
    return pace


@pytest.mark.parametrize(
    ("seconds", "limit_s"),
    [
        ((), 600.0),
        ((0.5, 0.5), 120.0),
        ((20.0, 18.0), 200.0),
        ((18.0, 20.0, 1.0), 200.0),
        ((90.0,), 600.0),
        ((50.0, *[1.0] * 999), 500.0),
        ((50.0, *[1.0] * 1001), 120.0),
    ],
)
def test_silence_is_allowed_for_ten_of_the_longest_steps(seconds: tuple[float, ...], limit_s: float) -> None:
    assert silence_s(paced(*seconds), least_s=120.0, most_s=600.0) == pytest.approx(limit_s)


def test_a_recovery_is_not_the_time_of_a_step() -> None:
    pace = paused(paced(2.0, 2.0), step=2)
    pace = moved(pace, step=3, now_s=1000.0)
    assert silence_s(moved(pace, step=4, now_s=1030.0), least_s=1.0, most_s=600.0) == pytest.approx(300.0)
    assert silence_s(pace, least_s=1.0, most_s=600.0) == pytest.approx(20.0)


def test_the_first_step_of_a_generation_may_take_the_most() -> None:
    pace = paused(paced(2.0, 2.0), step=2)
    assert silence_s(pace, least_s=1.0, most_s=600.0) == 600.0
    assert silence_s(moved(pace, step=3, now_s=1000.0), least_s=1.0, most_s=600.0) == pytest.approx(20.0)


def test_a_launcher_that_hears_only_of_some_steps_divides_the_time_among_them() -> None:
    pace = moved(moved(Pace(), step=10, now_s=0.0), step=14, now_s=8.0)
    assert silence_s(pace, least_s=1.0, most_s=600.0) == pytest.approx(20.0)
