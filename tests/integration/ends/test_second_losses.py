"""A second loss while the recovery from a first is at work, or has just ended, costs no deadline: many ranks."""

import json
from pathlib import Path

import pytest
from killing import Job, run_job

PATIENT = (
    "beat=0.3,heartbeat=20,leave=30,ready=40,minority=45,view=200,connect=210,transfer=220,progress=190,start=400,"
    "stop=5"
)
"""``leave`` is the default: it is what a rank that misses the order to leave would cost."""
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


def seconds(folder: Path) -> list[float]:
    """How long each pair held up the job."""
    ends: dict[int, float] = {}
    for path in folder.glob("rank*.jsonl"):
        for line in path.read_text().splitlines():
            if line.endswith("}"):
                value = json.loads(line)
                ends[value["step"]] = max(ends.get(value["step"], 0.0), value["time_s"])
    fired = {int(path.stem): path.stat().st_mtime for path in (folder / "fired").iterdir()}
    return [
        round(ends.get(FIRST + SPACING * number, float("inf")) - fired.get(2 * number, 0.0), 2)
        for number in range(len(MOMENTS))
    ]
