"""What happens while the recovery from a loss is at work, or has just ended, costs no deadline."""

import json
from pathlib import Path

import pytest
from killing import Job, run_job

PATIENT = (
    "beat=0.3,heartbeat=20,leave=30,ready=40,minority=45,view=200,connect=210,transfer=220,progress=190,start=400,"
    "stop=5"
)
"""``leave`` is the default: it is what a rank that misses the order to leave would cost."""
READY_S = 40
MOMENTS = ("ready", "view", "connect", "confirm", "vote", "update")
"""When the second is lost: in the recovery from the first, then in the step that is done again after it."""
SPACING = 4
FIRST = 3
SHAPES = {
    "one node": {"ranks": 28, "spares": 4},
    "nodes": {"nodes": 12, "ranks": 2, "spares": 1},
    "nodes that are lost whole": {"nodes": 26, "ranks": 1, "spares": 1, "spare_nodes": 2},
}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]


def pairs(*, ranks: int, victim: str) -> tuple[dict[str, object], ...]:
    """Two losses at each moment, of ranks that are far from each other."""
    found: list[dict[str, object]] = []
    for number, moment in enumerate(MOMENTS):
        step, one, other = FIRST + SPACING * number, number % ranks, (number + ranks // 2) % ranks
        for phase, rank in (("bucket:1", one), (moment, other)):
            found.append({"kind": "SIGKILL", "phase": phase, "rank": rank, "step": step, "victims": [victim]})
    return tuple(found)


@pytest.mark.parametrize("shape", SHAPES)
def test_two_losses_right_after_each_other_cost_no_deadline(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = SHAPES[shape]
    ranks = (size.get("nodes", 1) - size.get("spare_nodes", 0)) * size["ranks"]
    faults = pairs(ranks=ranks, victim="launcher" if "spare_nodes" in size else "self")

    outcome = run_job(
        tmp_path,
        Job(
            steps=FIRST + SPACING * len(MOMENTS) + 3,
            faults=faults,
            deadlines=PATIENT,
            arguments=("--max-restarts", "40"),
            timeout_s=1200.0,
            restart_launchers=False,
            **size,  # type: ignore[arg-type]
        ),
    )

    with capsys.disabled():
        print(f"\n{shape}: seconds from the first of two losses to the end of the step: {seconds(tmp_path)}")
    lost = len(faults) if "spare_nodes" in size else 0
    assert sorted(outcome.codes) == [-9] * lost + [0] * (len(outcome.codes) - lost), outcome.text[-3000:]
    assert set(outcome.fired) == set(range(len(faults))), "what did not happen was not tested"
    assert [line for line in outcome.text.splitlines() if "has not left within" in line] == []
    assert "has not taken its place" not in outcome.text


def test_launchers_that_are_back_before_all_others_have_left_cost_no_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others come out of a computation of ``pause_s``; meanwhile the two are replaced, which takes less."""
    pause_s, lost = 1.5, (0, 2)
    faults = [{"kind": "SIGKILL", "phase": "data", "rank": rank, "step": 3, "victims": ["launcher"]} for rank in lost]

    outcome = run_job(
        tmp_path,
        Job(steps=6, nodes=5, ranks=1, spares=1, pause_s=pause_s, faults=tuple(faults), deadlines=PATIENT),
    )

    took_s = ends(tmp_path)[5] - max(path.stat().st_mtime for path in (tmp_path / "fired").iterdir())
    with capsys.disabled():
        print(f"\nlaunchers that are replaced: {took_s:.2f} s from their loss to the end of the third step after it")
    assert outcome.finished, outcome.text[-3000:]
    assert set(outcome.fired) == {0, 1}
    assert took_s < READY_S, outcome.text[-3000:]


def seconds(folder: Path) -> list[float]:
    """How long each pair held up the job."""
    fired = {int(path.stem): path.stat().st_mtime for path in (folder / "fired").iterdir()}
    done = ends(folder)
    return [
        round(done.get(FIRST + SPACING * number, float("inf")) - fired.get(2 * number, 0.0), 2)
        for number in range(len(MOMENTS))
    ]


def ends(folder: Path) -> dict[int, float]:
    """When the last rank had done each step."""
    done: dict[int, float] = {}
    for path in folder.glob("rank*.jsonl"):
        for line in path.read_text().splitlines():
            if line.endswith("}"):
                value = json.loads(line)
                done[value["step"]] = max(done.get(value["step"], 0.0), value["time_s"])
    return done
