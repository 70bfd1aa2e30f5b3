"""A job with a health agent at each of its nodes, which asks some of them to give their ranks away."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from killing import Job, Outcome, agent_socket, run_job

from holdfast_agent.launchers import JobReport, LauncherSocket
from holdfast_common import Event, node_socket, parse_events

Wish = Callable[[Mapping[int, JobReport], int], int]
"""Which node is to give its ranks away now, by what the launchers say and how often one began; -1 for none."""


@dataclass
class Agents:
    """One for each node, all in a thread of this process, as the agent's service would drive them."""

    folder: Path
    nodes: int
    wish: Wish
    command: str = "hand-over"
    answers: list[tuple[int, node_socket.Answer]] = field(default_factory=list)
    """By node, in the order of arrival."""
    refused: dict[str, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Agents":
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sockets = [LauncherSocket(path=agent_socket(self.folder, node)) for node in range(self.nodes)]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for listening in self._sockets:
            for why, count in listening.refused.items():
                self.refused[why] = self.refused.get(why, 0) + count
            listening.close()

    def of(self, outcome: str) -> list[node_socket.Answer]:
        """The answers with an outcome."""
        return [answer for _, answer in self.answers if answer.outcome == outcome]

    def _begun(self) -> int:
        return len({answer.id for answer in self.of("begun")})

    def _run(self) -> None:
        asked, number, put_off = False, 0, dict[int, float]()
        while not self._stop.is_set():
            jobs: dict[int, JobReport] = {}
            for node, listening in enumerate(self._sockets):
                listening.poll()
                for job in listening.jobs():
                    jobs[node] = job
                for _, answer in listening.answers():
                    self.answers.append((node, answer))
                    asked = asked and answer.outcome == "begun"
                    if answer.outcome == "later" and node in jobs:
                        put_off[node] = jobs[node].received_s
            fresh = {node: job for node, job in jobs.items() if job.received_s > put_off.get(node, 0.0)}
            node = -1 if asked else self.wish(fresh, self._begun())
            if node >= 0:
                number += 1
                ranks = tuple(rank.rank for rank in jobs[node].ranks if rank.rank >= 0)
                order = node_socket.Command(id=str(number), command=self.command, reason="a test wants it", ranks=ranks)
                asked = self._sockets[node].tell(jobs[node], order)
            time.sleep(0.01)


def with_agents(folder: Path, job: Job, wish: Wish, *, times: int = 0) -> tuple[Outcome, Agents]:
    """
    Run a job, and what its agents were told.

    Args:
        times: It is killed after so many hand-overs. Default: 0, it runs to its end.
    """
    with Agents(folder, job.nodes, wish) as agents:
        outcome = run_job(folder, replace(job, until=lambda: bool(times) and len(agents.of("done")) >= times))
    return outcome, agents


def one_after_the_other(steps: Sequence[int], *, nodes: Sequence[int]) -> Wish:
    """Ask a node from each of these steps on, as soon as it has ranks and the others have spares for them."""
    wishes = list(zip(steps, nodes, strict=True))

    def wish(jobs: Mapping[int, JobReport], begun: int) -> int:
        newest = max((job.step for job in jobs.values()), default=0)
        step, chosen = wishes[begun] if begun < len(wishes) else (0, -1)
        return chosen if newest >= step and chosen in jobs and jobs[chosen].can_hand_over else -1

    return wish


def committed(folder: Path) -> dict[int, list[tuple[int, float]]]:
    """By rank: each step that was committed, as often as it was, and when."""
    found = {}
    for path in sorted(folder.glob("rank*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[int(path.stem.removeprefix("rank"))] = [(line["step"], line["time_s"]) for line in lines]
    return found


def events(folder: Path) -> tuple[Event, ...]:
    """What the launchers wrote into the event log, in the order of time."""
    parsed = parse_events((folder / "events.jsonl").read_text().splitlines())
    assert parsed.problems == ()
    return tuple(sorted(parsed.events, key=lambda event: event.time_ns))
