"""Collectors: text of a controller, a node and the API server in, evidence out."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.collectors import (
    by_reason,
    changes_of_drivers,
    changes_of_events,
    changes_of_jobs,
    failure_in,
    interval_s,
    parse_controller,
    pending_pod,
    probed,
)
from holdfast.cli.diagnosis import parse_probe, ranks_of, side_by_side
from holdfast.cli.kubernetes import PodRecord
from holdfast.cli.slurm import JobRecord
from holdfast_common import Event, kinds

NOW_S = 1_800_000_000
NODES = """NodeName=ip-1 Arch=x86_64 State=ALLOCATED Partitions=dev BootTime=1799990000 Reason=
NodeName=ip-2 Arch=x86_64 State=IDLE+DRAIN Partitions=dev BootTime=1799990000 Reason=bad dimm [root@1799999000]
NodeName=ip-9 Arch=x86_64 State=DOWN Partitions=other BootTime=1799990000 Reason=old [root@1799999000]
"""


def controller(job: str, *, hosts: str = "", queue: str = "") -> str:
    return f"{job}\n===nodes\n{NODES}===hosts\n{hosts}===files\n   StdOut=/fsx/x.out\n===queue\n{queue}"


def test_a_pending_job_has_drained_nodes_of_its_partition_and_the_jobs_that_hold_the_others() -> None:
    job = f"JobId=7 JobState=PENDING Reason=Resources Partition=dev NumNodes=2-2 StartTime={NOW_S + 600} Command=x"
    found = parse_controller(controller(job, queue=f"5|1|dev|{NOW_S + 3600}\n6|1|other|N/A\n"), job="7", now_s=NOW_S)

    assert found is not None
    assert found.pending is not None
    assert found.files == [("/fsx/x.out", "")]
    assert [(one.node, one.reason, one.by) for one in found.pending.drained] == [("ip-2", "bad dimm", "root")]
    assert (found.pending.usable, found.pending.requested, found.pending.starts_s) == (1, 2, 600)
    assert [(one.job, one.ends_s) for one in found.pending.holders] == [("5", 3600)]


def test_a_reason_of_slurm_with_underscores_is_put_into_words() -> None:
    reason = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"
    job = f"JobId=7 JobName=x JobState=PENDING Reason={reason} Partition=dev NumNodes=2 Command=x"
    found = parse_controller(controller(job), job="7", now_s=NOW_S)

    assert found is not None
    assert found.pending is not None
    assert found.pending.words.startswith("required nodes are down, drained or reserved; ip-2")
    assert found.pending.name.startswith("Nodes required for job are DOWN")


def test_an_array_is_one_job_of_the_nodes_of_its_tasks() -> None:
    jobs = "\n".join(f"JobId=7{n} ArrayJobId=70 JobState={state} Reason=Resources Partition=dev Command=x"
                     for n, state in enumerate(("COMPLETED", "RUNNING", "RUNNING", "PENDING")))  # fmt: skip
    queue = "71|1|dev|N/A\n5|1|dev|N/A\n"
    found = parse_controller(controller(jobs, hosts="ip-1\nip-2\n", queue=queue), job="70", now_s=NOW_S)

    assert found is not None
    assert (found.state, found.numbers, found.nodes) == ("RUNNING", ["71", "72"], ["ip-1", "ip-2"])
    assert [one.node for one in found.drained] == ["ip-2"]
    assert found.pending is None
    assert found.late is not None, "its last task waits"
    assert [one.job for one in found.late.holders] == ["5"], "and not for the others"


def test_a_job_that_the_controller_does_not_have_is_none() -> None:
    assert parse_controller(controller(""), job="7", now_s=NOW_S) is None


@pytest.fixture
def child() -> Iterator[int]:
    """Process of rank 2 of job 4711."""
    program = "import time; print('up', flush=True); time.sleep(60)"
    variables = {**os.environ, "SLURM_JOB_ID": "4711", "RANK": "2", "WORLD_SIZE": "3"}
    with subprocess.Popen([sys.executable, "-c", program], env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_node_reports_processes_of_the_job_with_their_state(child: int) -> None:
    os.kill(child, signal.SIGSTOP)
    found = parse_probe("ip-1", json.dumps(probed(["4711"])))
    (rank,) = ranks_of(found)

    assert (rank.rank, rank.node, rank.process.pid) == (2, "ip-1", child)
    assert rank.process.is_stopped
    assert {"swap_used_mib", "load_per_core", "disk_used_percent"} <= found.measured().keys()


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        (None, "py-spy is not installed on this node"),
        ("echo 'Permission Denied: try as root' >&2; exit 1", "py-spy was refused: Permission Denied: try as root"),
        ("exec sleep 60", "py-spy did not end within 0.3 s"),
        ("echo 'Thread 1 (idle): \"MainThread\"'; echo '    main (train.py:3)'", ""),
    ],
)
def test_py_spy_that_is_missing_refused_or_hangs_is_one_line(
    child: int, script: str | None, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.collectors.probe.STACKS_S", 0.3 if "did not end" in missing else 30.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if script is not None:
        (tmp_path / "py-spy").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "py-spy").chmod(0o755)
    (rank,) = ranks_of(parse_probe("ip-1", json.dumps(probed(["4711"]))))

    assert (rank.process.pid, rank.no_stack) == (child, missing)
    assert [frame.text for frame in rank.stack] == ([] if missing else ["main (train.py:3)"])


def test_a_launchers_processes_are_the_ranks_and_their_children_the_workers() -> None:
    def process(pid: int, parent: int, name: str = "python3") -> dict[str, object]:
        return {"pid": pid, "parent": parent, "name": name, "command": "x", "states": "SSS", "waits_in": "do_poll",
                "variables": {"SLURM_PROCID": "0"}, "cpu": 0.0, "moved": 0}  # fmt: skip

    status = {"processes": [
        {"role": "rank", "rank": 1, "pid": 20, "step": 8, "phase": "other", "silent_s": 4.0},
        {"role": "spare", "rank": -1, "pid": 21, "step": 0, "phase": "start", "silent_s": 4.0},
    ]}  # fmt: skip
    text = json.dumps({
        "processes": [process(10, 1), process(20, 10), process(21, 10), process(30, 20, "pt_data_worker")],
        "launchers": [{"pid": 10, "path": "/tmp/x.sock", "status": status}],
        "stacks": {"20": {"missing": "the rank did not answer its launcher", "asked": "1"}},
    })  # fmt: skip
    (rank,) = ranks_of(parse_probe("ip-1", text))

    assert (rank.rank, rank.phase, rank.step, rank.silent_s, rank.asked) == (1, "other", 8, 4.0, True)
    assert [one.pid for one in rank.workers] == [30]


@pytest.mark.parametrize("text", ["", "Traceback", "[]"])
def test_a_node_that_prints_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        parse_probe("ip-1", text)


def test_numbers_of_a_node_stand_beside_those_of_another() -> None:
    numbers = {
        "a": {"DCGM_FI_DEV_GPU_TEMP": [60.0, 93.0], "swap_used_mib": [0.0]},
        "b": {"DCGM_FI_DEV_GPU_TEMP": [61.0, 60.0]},
    }

    assert side_by_side("a", "b", numbers) == [
        "GPU temperature: 93 °C on a, 61 °C on b (!)",
        "swap in use: 0 MiB on a, unknown on b",
    ]
    assert side_by_side("a", "", numbers) == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("OSError: [Errno 28] No space left on device", "OSError: [Errno 28] No space left on device"),
        ("slurmstepd: error: pyxis: failed to import docker image", None),
        ("step 4 loss 2.0", ""),
    ],
)
def test_a_line_of_output_that_names_an_error_is_found(line: str, text: str | None) -> None:
    found = failure_in(["step 1", line])

    assert (found.text if found else "") == (line if text is None else text)


TORCHRUN = [
    "Traceback (most recent call last):",
    '  File "/opt/env/bin/torchrun", line 10, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
]


def test_torchruns_own_traceback_hides_no_cause() -> None:
    native = "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 699052 vs 4."
    program = ["Traceback (most recent call last):", '  File "train.py", line 3, in main', "ValueError: bad shape"]

    for lines, text in ((TORCHRUN, TORCHRUN[-1]), ([native, *TORCHRUN], native.strip()),
                        ([*TORCHRUN, *program], "ValueError: bad shape")):  # fmt: skip
        found = failure_in(lines)
        assert found is not None
        assert found.text == text


@pytest.mark.parametrize(("written_s", "interval"), [(100.0, None), (101.0, None), (130.0, 10.0)])
def test_lines_that_all_came_with_the_job_s_start_have_no_interval(written_s: float, interval: float | None) -> None:
    assert interval_s(3, began_s=100.0, written_s=written_s) == interval
    assert interval_s(3, began_s=0.0, written_s=written_s) is None


def test_a_pod_without_its_image_has_the_reason_and_the_warning() -> None:
    pod = PodRecord(
        name="x-0", namespace="team", phase="Pending", node="n", containers=("c",), why="ImagePullBackOff: Back-off"
    )
    one = pending_pod(pod, [{"type": "Warning", "reason": "Failed", "message": "manifest unknown"}], is_local=False)

    assert (one.name, one.place, one.fix) == ("ImagePullBackOff", "pod x-0", "")
    assert one.words == "ImagePullBackOff: Back-off (manifest unknown)"


def test_pods_that_wait_for_the_same_are_one_line_and_a_missing_image_has_its_command() -> None:
    def pod(name: str, why: str) -> PodRecord:
        return PodRecord(name=name, namespace="team", phase="Pending", node="", containers=("c",), why=why)

    full = [pod(f"x-{index}", "Unschedulable: 6 Insufficient nvidia.com/gpu") for index in range(3)]
    image = pod("x-3", 'ErrImagePull: Failed to pull image "a/b:1": not found')

    found = by_reason([pending_pod(one, [], is_local=True) for one in (*full, image)])

    assert [one.place for one in found] == ["pods x-0, x-1, x-2", "pod x-3"]
    assert "holdfast images add docker://a/b:1 a/b:1" in found[1].fix


def test_changes_are_those_of_the_job_and_of_nodes_since_it_began() -> None:
    def event(at_s: int, kind: str, **values: object) -> Event:
        return Event(**{"time_ns": at_s * 10**9, "source": "control-plane", "kind": kind, **values})  # type: ignore[arg-type]

    events = [
        event(5, kinds.NODE_REPLACED, node="i-0", detail={"replaces": "i-9"}),
        event(15, kinds.NODE_REPLACED, node="i-1", detail={"replaces": "i-2", "host": "ip-1"}),
        event(16, kinds.JOB_RESUMED, source="job", job="8", detail={"step": 1}),
        *(event(17, kinds.LAUNCHER_LOST, source="job", job="7", detail={"lost": 2}, evidence=why) for why in "aab"),
        event(17, kinds.JOB_RESUMED, source="job", job="7", detail={"step": 40}),
        event(50, kinds.LAUNCHER_LOST, source="job", job="7", detail={"lost": 2}, evidence="a"),
    ]

    assert [one.text for one in changes_of_events(events, job="7", since_s=10)] == [
        "node ip-1 replaces i-2",
        "the launcher of node 2 was lost: a",
        "the launcher of node 2 was lost: b",
        "the job resumed at step 40",
        "the launcher of node 2 was lost: a",
    ]


def record(number: str, submit_line: str, **values: object) -> JobRecord:
    given = {
        "job_id": number, "number": number, "name": "train", "user": "ubuntu", "state": "COMPLETED", "by": "",
        "exit_code": 0, "exit_signal": 0, "submitted_s": 1, "started_s": int(number), "ended_s": 2, "elapsed_s": 1,
        "nodes": "ip-[1-2]", "work_dir": "/fsx", "submit_line": submit_line, **values,
    }  # fmt: skip
    return JobRecord(**given)  # type: ignore[arg-type]


def test_another_command_or_other_nodes_than_in_the_previous_job_of_the_name_are_changes() -> None:
    before = [record("5", "sbatch --parsable train.sbatch --lr 1"), record("6", "sbatch other.sbatch", name="other")]
    same = record("9", "sbatch train.sbatch --lr 1", state="RUNNING", ended_s=None)
    other = record("9", "sbatch train.sbatch --lr 2", state="RUNNING", ended_s=None, nodes="ip-[1,3]")

    assert changes_of_jobs([*before, same], same, started_s=9) == []
    (change,) = changes_of_jobs([*before, other], other, started_s=9)
    assert change.text == (
        "since the previous job of this name (5, COMPLETED): "
        "command 'train.sbatch --lr 2' in place of 'train.sbatch --lr 1'; nodes ip-[1,3] in place of ip-[1-2]"
    )
    assert changes_of_jobs(before, None, started_s=9) == []


def test_nodes_with_different_drivers_are_a_change() -> None:
    assert changes_of_drivers({"a": "550", "b": "550", "c": ""}, at_s=1.0) == []
    (change,) = changes_of_drivers({"a": "550", "b": "560"}, at_s=1.0)
    assert change.text == "drivers differ: a: 550; b: 560"
