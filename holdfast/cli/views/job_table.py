from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.cli.deployed import JobRow
from holdfast.cli.kubernetes import GOING_ON
from holdfast.cli.views.layout import Column, Fitted, coloured
from holdfast_common import slurm_answers


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
