"""
Draw size and loss of an elastic job by step, from its events.

    python scripts/draw_elastic.py events.jsonl size.svg
"""

import sys
from pathlib import Path

from holdfast_common import JobTimeline, kinds, parse_events, timeline


def draw(text: str, out: Path) -> None:
    """Draw the first job in the events; raises ValueError without an elastic job with a loss."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "holdfast", "font.size": 9.0})
    from matplotlib import pyplot

    events = parse_events(text.splitlines()).events
    job = next((job for job in timeline(events).jobs if job.sizes), None)
    losses = sorted(
        {
            (int(event.detail["step"]), float(event.detail["loss"]))
            for event in events
            if event.kind == kinds.JOB_PROGRESS and {"step", "loss"} <= event.detail.keys()
        }
    )
    if job is None or not losses:
        raise ValueError("no event has the size and the loss of a job")
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(6.4, 3.6), height_ratios=[2, 1])
    above.plot(*zip(*losses, strict=True), marker=".", linewidth=1)
    above.set_ylabel("loss")
    steps, sizes = zip(*by_step(job), strict=True)
    below.step(steps, sizes, where="post")
    below.set_ylim(0, max(sizes) + 0.5)
    below.set_ylabel("ranks")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.grid(visible=True, linewidth=0.4)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out, format="svg", metadata={"Date": None})


def by_step(job: JobTimeline) -> list[tuple[int, int]]:
    return [*job.sizes, (max(job.steps, job.sizes[-1][0]), job.sizes[-1][1])]


if __name__ == "__main__":
    draw(Path(sys.argv[1]).read_text(), Path(sys.argv[2]))
