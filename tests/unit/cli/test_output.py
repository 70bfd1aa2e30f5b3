"""What the commands print for people."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from holdfast.cli import views
from holdfast.cli.deployed import DetectorView, FileSystemView, JobView, NodeView, StatusView, direction, with_training
from holdfast.cli.slurm import training_of
from holdfast.cli.views import EventLine
from holdfast.localcloud.processes import ProcessState
from holdfast_common import Event


def view(**changes: object) -> StatusView:
    node = NodeView(
        instance_id="i-1",
        instance_group="workers",
        instance_type="ml.p5.48xlarge",
        hostname="ip-10-1-0-11",
        address="10.1.0.11",
        status="Running",
        slurm="idle",
        message="",
    )
    values: dict[str, object] = {
        "environment": "local",
        "cloud": "embedded",
        "endpoint": "http://localhost:5710",
        "problem": "",
        "stack_name": "holdfast-local",
        "stack_status": "CREATE_COMPLETE",
        "stack_outputs": {"ClusterName": "local"},
        "cluster_name": "local",
        "cluster_status": "InService",
        "cluster_message": "",
        "orchestrator": "slurm",
        "nodes": [node],
        "jobs": [],
        "file_system": FileSystemView(
            file_system_id="fs-1", status="AVAILABLE", capacity_gib=1200, data_repositories={"/data": "s3://b/data"}
        ),
        "stand_ins": {"gpu": "cpu"},
        "processes": [],
    }
    return StatusView(**{**values, **changes})  # type: ignore[arg-type]


def printed(what: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(what)
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_the_screen_shows_of_processes_their_state_and_what_is_wrong() -> None:
    plane = ProcessState(name="hyperpod", pid=7, state="stopped", passed_s_ago={"loop": 12.0, "storage": 11.9})
    screen = printed(views.render_status(view(processes=[plane], unseen=["Slurm's nodes and jobs: [refused]"])))
    assert "control plane  stopped (pid 7)" in screen
    assert "passes" not in screen, "what is late is among the problems"
    assert "Slurm's nodes and jobs: [refused]" in screen


def test_one_screen_shows_stack_cluster_nodes_and_what_stands_in() -> None:
    screen = printed(views.render_status(view()))

    for word in (
        "holdfast-local  CREATE_COMPLETE",
        "local  InService",
        "fs-1  AVAILABLE  1200 GiB",
        "gpu: cpu",
        "idle",
    ):
        assert word in screen


def test_only_a_slurm_cluster_has_a_column_for_slurm() -> None:
    assert "Slurm" in printed(views.render_status(view()))
    assert "Slurm" not in printed(views.render_status(view(orchestrator="eks")))


def test_jobs_are_shown_only_when_there_are_some() -> None:
    job = JobView(job_id="7", name="bytelm", state="RUNNING", nodes="ip-10-1-0-11", elapsed="0:10", reason="None")

    assert "bytelm" in printed(views.render_status(view(jobs=[job])))
    assert "elapsed" not in printed(views.render_status(view()))


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": "no space left on device"},
        {"cluster_message": "no space left on device"},
    ],
    ids=["of the embedded AWS", "of the cluster"],
)
def test_a_problem_is_on_the_screen(changes: dict[str, object]) -> None:
    assert "no space left on device" in printed(views.render_status(view(**changes)))


SECOND = 1_000_000_000


def event(kind: str, at_s: float, *, source: str = "job", node: str = "", job: str = "1", **more: object) -> Event:
    return Event(time_ns=int(at_s * SECOND), source=source, kind=kind, node=node, job=job, **more)  # type: ignore[arg-type]


def test_the_summary_is_the_timeline_of_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        event("job_started", 10, detail={"step": 0, "world_size": 4, "nodes": "i-1,i-2"}),
        event("job_progress", 12, detail={"step": 10, "loss": 5.5}),
        event("checkpoint_saved", 12.1, detail={"step": 10}),
        event("fault_injected", 13, source="cli", node="i-1", job="", fault="instance-lost"),
        event("node_lost", 13.5, source="control-plane", node="i-1", job="", fault="instance-lost"),
        event("node_replaced", 15, source="control-plane", node="i-9", job="", detail={"replaces": "i-1"}),
        event("job_resumed", 28, detail={"step": 10, "nodes": "i-9,i-2"}),
        event("job_progress", 30, detail={"step": 20, "loss": 2.5}),
        event("job_finished", 30.1, detail={"step": 20, "loss": 2.5}),
    ]

    screen = printed(views.summary(view(), events))

    assert "finished after 20 steps and 20.1 s" in screen
    assert "5.50 to 2.50 nats per byte" in screen
    assert "after 0.5 s" in screen
    assert "replaced by i-9" in screen
    assert "after 2.0 s" in screen
    assert "after 15.0 s" in screen


def test_an_event_line_carries_its_facts_and_its_date() -> None:
    line = printed(EventLine(event("job_progress", 1, detail={"step": 5, "loss": 3.14159})))

    assert line.startswith("1970-01-01 00:00:01.000  job")
    assert "loss=3.142  step=5" in line


def test_data_links_have_a_direction_and_what_stays_is_said_once() -> None:
    links = {"/data": "s3://b/data", "/checkpoints": "s3://b/checkpoints", "/shared": "s3://b/shared"}
    directions = {"/data": "<-", "/checkpoints": "->", "/shared": "<->"}
    file_system = FileSystemView(
        file_system_id="fs-1", status="AVAILABLE", capacity_gib=1200, data_repositories=links, directions=directions
    )
    screen = printed(views.render_status(view(file_system=file_system)))
    for line in ("/data <- s3://b/data", "/checkpoints -> s3://b/checkpoints", "/shared <-> s3://b/shared"):
        assert line in screen
    assert screen.count("only /checkpoints, /shared is copied to S3; other folders") == 1
    assert "on_delete Delete" not in screen
    goes = replace(file_system, goes_with_stack=True)
    assert "on_delete Delete: down deletes the file system" in printed(views.render_status(view(file_system=goes)))


def test_what_the_stack_has_not_installed_yet_is_in_the_status_with_the_way_on() -> None:
    left_out = printed(views.render_status(view(stack_outputs={"NotInstalled": "CoreDNS, add-ons"})))

    assert "not installed" in left_out
    assert "CoreDNS, add-ons" in left_out
    assert "set eks.install_on_nodes: true and run holdfast up" in left_out
    assert "not installed" not in printed(views.render_status(view()))


@pytest.mark.parametrize(
    ("policies", "shown"),
    [
        ({"AutoImportPolicy"}, "<-"),
        ({"AutoExportPolicy"}, "->"),
        ({"AutoImportPolicy", "AutoExportPolicy"}, "<->"),
        (set(), "--"),
    ],
)
def test_the_direction_is_that_of_the_policies_with_events(policies: set[str], shown: str) -> None:
    assert direction({"S3": {name: {"Events": ["NEW"]} for name in policies}}) == shown


def test_a_running_job_has_its_step_and_what_does_not_come_back() -> None:
    def event(kind: str, at_s: int, **detail: str | int | float) -> Event:
        return Event(time_ns=at_s * 10**9, source="job", kind=kind, job="7", detail=detail)

    events = [
        event("job_started", 0, world_size=4),
        event("job_progress", 10, step=10, loss=3.0),
        event("job_progress", 20, step=20, loss=2.5),
    ]
    lost = event("view_committed", 21, spares=0, spare="none")
    assert training_of("7", events) == "step 20, loss 2.5"
    assert training_of("7_3", events) == "step 20, loss 2.5", "a task of an array"
    assert training_of("8", events) == ""
    assert training_of("7", [*events, lost]) == "step 20, loss 2.5; no spare until the job ends"
    assert training_of("7", [*events, lost, event("spare_ready", 40)]) == "step 20, loss 2.5"
    fewer = event("launcher_lost", 21, lost=2)
    without = event("view_committed", 22, nodes="0,1,3", spares=1)
    assert training_of("7", [*events, fewer, fewer, without]) == "step 20, loss 2.5; runs without launcher 2"
    two = [*events, fewer, event("launcher_lost", 23, lost=0), event("view_committed", 24, nodes="1,3", spares=1)]
    assert training_of("7", two) == "step 20, loss 2.5; runs without launchers 2, 0"
    assert training_of("7", [*two, event("spare_ready", 40, launcher=2)]).endswith("; runs without launcher 0")
    assert training_of("7", [*two, event("view_committed", 40, nodes="0,1,2,3", spares=1)]) == "step 20, loss 2.5"
    of_many = [replace(one, detail={**one.detail, "steps": 140}) for one in events]
    assert training_of("7", of_many, now_ns=20 * 10**9) == "step 20 of 140, loss 2.5, ends in 2 min"


def test_jobs_that_run_stand_above_those_that_wait() -> None:
    waits = JobView(job_id="8", name="b", state="PENDING", nodes="", elapsed="0:00", reason="Priority")
    runs = JobView(job_id="7", name="a", state="RUNNING", nodes="ip-1", elapsed="0:10", reason="None")
    assert [job.job_id for job in with_training([waits, runs], [])] == ["7", "8"]


def test_jobs_of_kubernetes_have_their_own_names_in_columns() -> None:
    job = JobView(
        job_id="team-a/pretraining-of-the-large-one", name="PyTorchJob", state="Running", nodes="3 of 4 pods run",
        elapsed="1:02:03", reason="pod pretraining-2: Back-off pulling image \"registry.example/training:latest\" " * 3,
    )  # fmt: skip
    lines = printed(views.render_status(view(orchestrator="eks", jobs=[job]))).splitlines()
    (head,) = [line for line in lines if line.startswith("job ")]
    assert head.split() == ["job", "kind", "state", "time", "nodes", "reason"]
    (row,) = [line for line in lines if line.startswith("team-a/")]
    more = lines[lines.index(row) + 1]
    assert more.startswith(" " * head.index("reason")), "a long reason goes on below itself"


def test_the_screen_names_detectors_that_are_lost() -> None:
    lost = DetectorView(node="i-1", host="ip-10-1-0-11", detector="nvml", part="", evidence="nvml: no driver")
    assert "lost on ip-10-1-0-11 (i-1): nvml: no driver" in printed(views.render_status(view(lost_detectors=[lost])))
