from collections.abc import Iterable
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.deployed import JobRow
from holdfast.cli.kubernetes import GOING_ON
from holdfast.cli.views.layout import Column, Fitted, coloured
from holdfast_common import slurm_answers


def folded(found: list[JobRow]) -> list[JobRow]:
    """Ended tasks of an array as one row for each state and reason, such as ``28_[0-6]``; lines of output stay."""
    groups: dict[tuple[str, ...], list[JobRow]] = {}
    for one in found:
        number, _, task = one.job_id.partition("_")
        alone = not task.isdecimal() or one.state in slurm_answers.WAITING or bool(one.last_lines)
        groups.setdefault((one.job_id,) if alone else (number, one.state, one.why), []).append(one)
    return [_as_one(rows) for rows in groups.values()]


def _as_one(rows: list[JobRow]) -> JobRow:
    if len(rows) == 1:
        return rows[0]
    tasks = _ranges(sorted(int(one.job_id.partition("_")[2]) for one in rows))
    return replace(
        rows[0],
        job_id=f"{rows[0].job_id.partition('_')[0]}_[{tasks}]",
        ended=max(one.ended for one in rows),
        elapsed=_common(one.elapsed for one in rows),
        nodes=_common(one.nodes for one in rows),
    )


def _common(values: Iterable[str]) -> str:
    known = {*values}
    return known.pop() if len(known) == 1 else ""


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def job_history(found: list[JobRow]) -> RenderableType:
    columns = [Column("job"), Column("name"), Column("user"), Column("state"), Column("ended"), Column("time"),
               Column("nodes"), Column("why")]  # fmt: skip
    goes_on = {*slurm_answers.WAITING, *GOING_ON}
    table = Fitted(
        columns,
        [
            [one.job_id, one.name, one.user, coloured(one.state), one.ended.replace("T", " ").rstrip("Z"),
             one.elapsed, one.nodes, Text(one.why, style="red" if one.state not in goes_on else "")]
            for one in found
        ],
    )  # fmt: skip
    parts: list[RenderableType] = [table]
    for one in found:
        if one.last_lines:
            parts.append(Text(f"\njob {one.job_id} last lines:", style="bold"))
            parts += [Text(f"  {line}") for line in one.last_lines]
        if one.hint:
            parts.append(Text(f"  hint: {one.hint}", style="yellow"))
    return Group(*parts)


def as_dict(row: JobRow) -> dict[str, object]:
    return {**vars(row)}
