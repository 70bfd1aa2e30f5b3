"""At any width nothing is cut and no word is torn apart."""

import io

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.deployed import FileSystemView, JobRow, JobView, NodeView, StatusView
from holdfast.cli.terminal import UncutConsole
from holdfast.cli.views import EventLine, render_status
from holdfast.cli.views.layout import Column, Facts, Fitted
from holdfast_common import Event


def printed(what: object, *, width: int, terminal: bool = False) -> str:
    file = io.StringIO()
    UncutConsole(file=file, width=width, force_terminal=terminal, color_system=None, markup=False).print(what)
    return file.getvalue()


def long_view() -> StatusView:
    node = NodeView(
        instance_id="i-0123456789abcdef0",
        instance_group="workers-of-the-second-team",
        instance_type="ml.p6-b200.48xlarge",
        hostname="ip-10-101-200-111",
        address="10.101.200.111",
        status="DeepHealthCheckInProgress",
        slurm="allocated+drain",
        message="the lifecycle script on_create.sh ended with exit code 7: no such kernel module",
    )
    job = JobView(
        job_id="4294967", name="pretraining-of-the-large-one", state="PENDING", nodes="ip-10-101-200-[111-118]",
        elapsed="10-11:12:13", reason="ReqNodeNotAvail",
    )  # fmt: skip
    ended = JobRow(
        job_id="4294966_17", name="pretraining-of-the-large-one", user="trainer", state="OUT_OF_MEMORY", exit_code=125,
        submitted="2026-11-22T10:00:00Z", started="2026-11-22T10:00:00Z", ended="2026-11-22T18:25:12Z",
        elapsed="10-11:12:13", nodes="ip-10-101-200-[111-118]", why="ran out of memory", last_lines=["killed " * 30],
    )  # fmt: skip
    return StatusView(
        environment="production", cloud="aws", endpoint="sagemaker.ap-northeast-1", problem="", stack_outputs={},
        stack_name="holdfast-production-of-the-second-team", stack_status="UPDATE_ROLLBACK_IN_PROGRESS",
        cluster_name="production", cluster_status="SystemUpdating", cluster_message="word " * 40, orchestrator="slurm",
        nodes=[node], jobs=[job], ended=[ended], stand_ins={}, unseen=["the stack: AccessDeniedException"],
        file_system=FileSystemView(
            file_system_id="fs-0123456789abcdef0", status="AVAILABLE", capacity_gib=120000,
            data_repositories={"/checkpoints": f"s3://{'bucket' * 8}/checkpoints"},
        ),
    )  # fmt: skip


def words(view: StatusView) -> set[str]:
    found = [*view.nodes, *view.jobs, *view.ended]
    texts = [str(value) for one in found for name, value in vars(one).items() if name not in ("address", "last_lines")]
    texts += [view.stack_name, view.stack_status, *view.file_system.data_repositories.values(), *view.unseen]
    hidden = {"submitted", "started", "125"}
    return {word for text in texts for word in text.split()} - hidden - {one.submitted for one in view.ended}


def test_status_at_80_columns_has_every_word_whole() -> None:
    shown = printed(render_status(long_view()), width=80).replace("2026-11-22 18:25:12", "2026-11-22T18:25:12Z")
    missing = {word for word in words(long_view()) if word not in shown.split()}
    assert missing == set()
    assert "…" not in shown
    assert max(len(line) for line in shown.splitlines() if "s3://" not in line) <= 80


@given(
    cells=st.lists(
        st.lists(st.text("abc123 .-", min_size=1, max_size=60), min_size=3, max_size=3), min_size=1, max_size=4
    ),
    width=st.integers(10, 120),
)
def test_a_table_keeps_every_word_at_any_width(cells: list[list[str]], width: int) -> None:
    shown = printed(Fitted([Column("one"), Column("two", "right"), Column("three")], cells), width=width)
    assert {word for row in cells for cell in row for word in cell.split()} <= set(shown.split())


@given(value=st.text("abc123 .-", max_size=200), width=st.integers(10, 120))
def test_facts_keep_every_word_at_any_width(value: str, width: int) -> None:
    assert set(value.split()) <= set(printed(Facts([("name", value)]), width=width).split())


def test_an_event_is_one_line_in_a_pipe_and_breaks_between_words_on_a_narrow_terminal() -> None:
    event = Event(
        time_ns=1, source="control-plane", node="i-0123456789abcdef0", kind="node_lost", evidence="word " * 40
    )
    assert printed(EventLine(event), width=80).count("\n") == 1
    narrow = printed(EventLine(event), width=80, terminal=True)
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert narrow.split().count("word") == 40
