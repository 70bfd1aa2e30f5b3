"""``holdfast-run`` with real processes: what ends, what is started again, what is told, and what is left behind."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import PATIENT, PYTHONPATH, QUICK, Job, run_job
from plain_launchers import PLAIN, Launchers, alive
from ports import free_ports
from waiting import eventually


@pytest.fixture
def launchers(tmp_path: Path) -> Iterator[Launchers]:
    found = Launchers(tmp_path)
    yield found
    found.close()


def test_a_script_that_says_nothing_is_started_again_as_a_whole_on_another_port(launchers: Launchers) -> None:
    launcher = launchers.plain("die-once", "--nproc-per-node", "3")

    out, said = launcher.communicate(timeout=30)

    assert launcher.returncode == 0, said
    assert set(out.splitlines()) == {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}
    first, second = (
        {port for _, port, attempt, _ in launchers.started() if attempt == number} for number in ("0", "1")
    )
    assert len(first) == len(second) == 1
    assert first != second
    assert "rank 1 of node 0 is lost: it was killed by SIGKILL" in said


@pytest.mark.e2e
def test_three_launchers_start_all_ranks_again_when_one_dies(launchers: Launchers) -> None:
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))

    started = [launchers.plain("die-once", "--peers", peers, "--node-rank", str(node)) for node in range(3)]
    said = [launcher.communicate(timeout=40) for launcher in started]

    assert [launcher.returncode for launcher in started] == [0, 0, 0], said
    assert set("".join(out for out, _ in said).splitlines()) == {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}


def test_a_script_that_always_fails_ends_the_job_after_the_allowed_restarts(launchers: Launchers) -> None:
    launcher = launchers.plain("die", "--max-restarts", "2")

    _, said = launcher.communicate(timeout=30)

    assert launcher.returncode == 1
    assert len(launchers.started()) == 3
    assert "it ended with exit code 3; --max-restarts allows 2 without progress in between" in said


def test_why_a_job_ended_is_in_the_kubelets_file_for_shells_that_swallow_the_exit_code(
    launchers: Launchers, tmp_path: Path
) -> None:
    launcher = launchers.plain("die", "--max-restarts", "0", "--metrics-file", str(tmp_path / "last"))

    _, said = launcher.communicate(timeout=30)

    assert said.strip().endswith(last := (tmp_path / "last").read_text().strip())
    assert last.startswith("the job ends: rank ")


def test_an_error_in_the_code_of_a_script_ends_the_job_in_its_first_generation(launchers: Launchers) -> None:
    launcher = launchers.plain("misspelled", "--nproc-per-node", "2")

    _, said = launcher.communicate(timeout=30)

    assert launcher.returncode == 1
    assert {attempt for _, _, attempt, _ in launchers.started()} == {"0"}
    line = next(number for number, text in enumerate(PLAIN.splitlines(), 1) if "batch_sise" in text)
    assert f"NameError: name 'batch_sise' is not defined (plain.py:{line}), before Run: trying again" in said
    assert "Traceback (most recent call last)" in said


def test_a_wrong_argument_of_a_script_ends_the_job_in_its_first_generation(launchers: Launchers) -> None:
    launcher = launchers.plain("unknown-option", "--nproc-per-node", "2")

    _, said = launcher.communicate(timeout=30)

    assert launcher.returncode == 1
    assert {attempt for _, _, attempt, _ in launchers.started()} == {"0"}
    assert "exit code 2, as of a wrong argument, before Run: trying again does not help" in said
    assert "unrecognized arguments: --learning-rat=0.1" in said


def test_an_error_that_a_lost_peer_may_have_caused_is_no_error_in_the_code(launchers: Launchers) -> None:
    launcher = launchers.plain("alone", "--nproc-per-node", "2")

    out, said = launcher.communicate(timeout=30)

    assert launcher.returncode == 0, said
    assert set(out.splitlines()) == {"rank 0 of 2", "rank 1 of 2"}


def test_sigterm_reaches_the_ranks_and_is_the_exit_code(launchers: Launchers) -> None:
    launcher = launchers.plain("wait", "--nproc-per-node", "2")
    eventually(lambda: len(launchers.started()) == 2)

    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=20)

    assert launcher.returncode == 128 + signal.SIGTERM
    assert not any(alive(int(pid)) for *_, pid in launchers.started())


def test_nothing_outlives_a_launcher_that_is_killed(launchers: Launchers) -> None:
    launcher = launchers.plain("wait", "--nproc-per-node", "2")
    eventually(lambda: len(launchers.started()) == 2)
    pids = [int(pid) for *_, pid in launchers.started()]
    assert all(alive(pid) for pid in pids)

    launcher.kill()

    eventually(lambda: not any(alive(pid) for pid in pids))


def test_status_and_metrics_say_who_is_there(launchers: Launchers) -> None:
    (port,) = free_ports(1)
    launchers.plain("wait", "--nproc-per-node", "2", "--metrics-port", str(port))
    eventually(lambda: len(launchers.started()) == 2)
    ask = [sys.executable, "-m", "holdfast_runtime.launcher", "status", "--socket", str(launchers.folder / "0.sock")]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}

    told = json.loads(subprocess.check_output([*ask, "--json"], env=environment, text=True))
    text = subprocess.check_output(ask, env=environment, text=True)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        metrics = answer.read().decode()

    assert (told["generation"], told["world_size"], told["nodes"]) == (1, 2, [0])
    assert {(process["rank"], process["role"]) for process in told["processes"]} == {(0, "rank"), (1, "rank")}
    assert {process["pid"] for process in told["processes"]} == {int(pid) for *_, pid in launchers.started()}
    assert "rank 1" in text
    assert 'holdfast_generation{node="0"} 1' in metrics
    assert 'holdfast_local_ranks{node="0"} 2' in metrics
    assert all(line.startswith("#") or len(line.split()) == 2 for line in metrics.splitlines())


def test_a_launcher_that_does_not_know_the_token_is_not_let_in_and_both_sides_say_so(
    launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    monkeypatch.setenv("HOLDFAST_TOKEN", "ours")
    one = launchers.plain("wait", "--peers", peers, "--node-rank", "0")
    monkeypatch.setenv("HOLDFAST_TOKEN", "another")
    other = launchers.plain("wait", "--peers", peers, "--node-rank", "1")
    assert one.stderr is not None
    assert other.stderr is not None

    here = next(line for line in one.stderr if "token" in line)
    there = next(line for line in other.stderr if "token" in line)

    for said in (here, there):  # each is called by the other, and calls it
        assert "refused" in said
        assert "its run token differs; all launchers of a run need the same HOLDFAST_TOKEN" in said
    assert (one.poll(), other.poll()) == (None, None)
    assert launchers.started() == []


def test_launchers_without_a_token_hand_one_out_that_other_users_cannot_read(
    launchers: Launchers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    monkeypatch.delenv("HOLDFAST_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    program = ("/bin/sh", "-c", "echo token $HOLDFAST_TOKEN")
    started = [
        launchers.start("--peers", peers, "--node-rank", node, "--rdzv-id", "17", "--no-python", program=program)
        for node in ("0", "1")
    ]

    said = [launcher.communicate(timeout=60) for launcher in started]

    assert [launcher.returncode for launcher in started] == [0, 0], said
    (kept,) = (tmp_path / ".holdfast/run-tokens").iterdir()
    assert {out for out, _ in said} == {f"token {kept.read_text()}\n"}
    assert [path.stat().st_mode & 0o077 for path in (kept, kept.parent)] == [0, 0]


def test_a_program_that_is_not_python_is_run_too(launchers: Launchers) -> None:
    launcher = launchers.start("--nproc-per-node", "2", "--no-python", program=("/bin/sh", "-c", "echo rank $RANK"))

    out, said = launcher.communicate(timeout=20)

    assert launcher.returncode == 0, said
    assert sorted(out.splitlines()) == ["rank 0", "rank 1"]


def test_children_of_a_rank_that_is_killed_end_with_it(launchers: Launchers, tmp_path: Path) -> None:
    first, child = tmp_path / "first", tmp_path / "child"
    script = f"[ -e {first} ] && exit 0; touch {first}; sleep 300 & echo $! > {child}; kill -9 $$"
    launcher = launchers.start("--no-python", program=("/bin/sh", "-c", script))

    launcher.communicate(timeout=20)

    assert launcher.returncode == 0
    pid = int(child.read_text())
    try:
        eventually(lambda: not alive(pid))
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_rank_that_saves_for_too_long_after_sigterm_is_killed_with_a_line(
    launchers: Launchers, tmp_path: Path
) -> None:
    script = f"trap 'sleep 9' TERM; touch {tmp_path}/ready; while true; do sleep 0.05; done"
    launcher = launchers.start("--no-python", program=("/bin/sh", "-c", script))
    eventually((tmp_path / "ready").exists)

    launcher.send_signal(signal.SIGTERM)
    _, said = launcher.communicate(timeout=20)

    assert launcher.returncode == 128 + signal.SIGTERM
    assert "rank 0 has not ended 5 s after SIGTERM and is killed" in said


@pytest.mark.e2e
def test_a_rank_that_hangs_is_replaced_after_the_progress_deadline(tmp_path: Path) -> None:
    fault = {"kind": "SIGSTOP", "phase": "forward", "rank": 1, "step": 3}

    outcome = run_job(tmp_path, Job(steps=6, ranks=2, faults=(fault,)))

    assert outcome.fired == {0: 1}
    assert outcome.finished, outcome.text[-2000:]
    assert "made no progress for" in outcome.text
    assert "has not left within 1.2 s and is killed" in outcome.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nproc-per-node", "0"], "--nproc-per-node is 0; allowed: 1 or more"),
        (["--nnodes", "2"], "give --rdzv-endpoint HOST:PORT or --peers"),
        (["--peers", "here"], "address is 'here'; allowed: HOST:PORT"),
        (["--deadlines", "leave=1,ready=0.5"], "deadlines must be positive and grow in the order"),
        (["--deadlines", "lunch=1"], "--deadlines names lunch; allowed: beat"),
        (["--spare-nodes", "1"], "--spare-nodes is 1; allowed: 0 to 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_ends_with_one_message(launchers: Launchers, options: list[str], said: str) -> None:
    launcher = launchers.plain("wait", *options)

    _, errors = launcher.communicate(timeout=20)

    assert launcher.returncode == 2
    assert said in errors
    assert "Traceback" not in errors


def test_modules_that_are_not_there_are_named_before_a_rank_starts(launchers: Launchers) -> None:
    launcher = launchers.plain("wait", "--preload", "no_such_module")

    _, errors = launcher.communicate(timeout=60)

    assert launcher.returncode == 2
    assert "has no no_such_module; run: " in errors
    assert launchers.started() == []


@pytest.mark.parametrize("speaks", [True, False])
def test_a_launcher_that_is_stopped_is_ended_by_its_processes_so_that_its_end_is_seen(
    launchers: Launchers, speaks: bool
) -> None:
    if speaks:
        launchers.script.write_text(SAYS_AND_WAITS)
    launcher = launchers.plain("wait", "--nproc-per-node", "2", "--deadlines", f"{QUICK},frozen=0.5")
    eventually(lambda: len(launchers.started()) == 2)

    launcher.send_signal(signal.SIGSTOP)
    _, errors = launcher.communicate(timeout=60)

    assert launcher.returncode == -signal.SIGKILL
    assert "has been stopped for 0.5 s, as by SIGSTOP; it is killed, so that its end is seen" in errors
    eventually(lambda: not any(alive(int(pid)) for *_, pid in launchers.started()))


def test_a_rank_that_is_stopped_is_killed_and_started_again(launchers: Launchers) -> None:
    launcher = launchers.plain("wait", "--nproc-per-node", "2", "--deadlines", f"{QUICK},frozen=0.5")
    eventually(lambda: len(launchers.started()) == 2)

    os.kill(int(launchers.started()[0][3]), signal.SIGSTOP)
    eventually(lambda: len(launchers.started()) == 4)
    launcher.kill()
    _, errors = launcher.communicate(timeout=60)

    assert "has been stopped for 0.5 s, as by SIGSTOP; it is killed" in errors


def test_the_loss_of_the_process_that_forks_is_noticed_and_the_next_loss_of_a_rank_goes_on(
    launchers: Launchers,
) -> None:
    launcher = launchers.plain("wait", "--nproc-per-node", "2")
    eventually(lambda: len(launchers.started()) == 2)
    ranks = {int(pid) for *_, pid in launchers.started()}

    for pid in children(launcher.pid) - ranks:
        os.kill(pid, signal.SIGKILL)
    os.kill(min(ranks), signal.SIGKILL)
    eventually(lambda: len(launchers.started()) == 4)
    launcher.kill()
    _, errors = launcher.communicate(timeout=60)

    assert "the process that forks was killed by SIGKILL; restarting it" in errors


def children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


SAYS_AND_WAITS = """
import os, sys
from holdfast_runtime.control import ControlClient, Ready
client = ControlClient.from_environment()
client.send(Ready(committed_step=0, state="none", port=1))
with open(os.path.join(sys.argv[1], "started"), "a") as file:
    file.write(f"{os.environ['RANK']} 0 0 {os.getpid()}" + chr(10))
client.receive_view(deadline_s=60)
client.receive(deadline_s=60)
"""


SAYS_AND_ENDS = """
import os
from holdfast_runtime.control import ControlClient, Finished, Ready, Stop
client = ControlClient.from_environment()
client.send(Ready(committed_step=0, state="none", port=1))
view = client.receive_view(deadline_s=60)
if not isinstance(view, Stop):
    client.send(Finished(committed_step=0))
os._exit(0)
"""


def test_a_rank_that_ends_right_after_it_has_finished_is_not_called_lost(launchers: Launchers, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(SAYS_AND_ENDS)

    launcher = launchers.start("--nproc-per-node", "8", program=(str(script),))
    _, said = launcher.communicate(timeout=60)

    assert launcher.returncode == 0
    assert "is lost" not in said


SAVES_AFTER_THE_OTHER = """
import os, sys, time
from holdfast_runtime.control import ControlClient, Finished, Ready
folder, way = sys.argv[1:]
client = ControlClient.from_environment()
client.send(Ready(committed_step=0, state="none", port=1))
view = client.receive_view(deadline_s=60)
client.send(Finished(committed_step=0))
other = folder + "/other-"
if view.rank:
    with open(folder + f"/part-{view.rank}", "w") as file:
        file.write(str(os.getpid()))
    os.rename(folder + f"/part-{view.rank}", other + str(view.rank))
    os._exit(0)
while not os.path.exists(other + "1") or os.path.exists("/proc/" + open(other + "1").read()):
    time.sleep(0.01)
time.sleep(600 if way == "hangs" else 1)
open(folder + "/saved", "w").close()
os._exit(way == "fails")
"""


@pytest.mark.parametrize(
    ("way", "code", "reason"),
    [
        ("saves", 0, ""),
        ("fails", 1, "it ended with exit code 1, after the last step of run.steps"),
        ("hangs", 1, "it had reported nothing for 2.5 s behind its last step, after the last step of run.steps"),
    ],
)
def test_a_rank_that_works_on_after_the_others_have_ended_decides_how_the_job_ends(
    launchers: Launchers, tmp_path: Path, way: str, code: int, reason: str
) -> None:
    script = tmp_path / "saves.py"
    script.write_text(SAVES_AFTER_THE_OTHER)
    quick = QUICK.replace("stop=5", "stop=0.3")

    launcher = launchers.start("--nproc-per-node", "2", "--deadlines", quick, program=(str(script), str(tmp_path), way))
    _, said = launcher.communicate(timeout=60)

    assert launcher.returncode == code, said
    assert (tmp_path / "saved").exists() == (way != "hangs")
    assert reason in said


@pytest.mark.e2e
def test_a_node_that_is_lost_after_the_others_have_ended_ends_the_job(launchers: Launchers, tmp_path: Path) -> None:
    script = tmp_path / "saves.py"
    script.write_text(SAVES_AFTER_THE_OTHER)
    peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    started = [
        launchers.start(
            "--peers",
            peers,
            "--node-rank",
            str(node),
            "--deadlines",
            PATIENT,
            program=(str(script), str(tmp_path), "hangs"),
        )
        for node in range(3)
    ]
    eventually(lambda: all((tmp_path / f"other-{rank}").exists() for rank in (1, 2)), within_s=120)

    started[0].kill()
    ended = [launcher.communicate(timeout=60)[1] for launcher in started[1:]]

    assert [launcher.returncode for launcher in started[1:]] == [1, 1]
    assert any("node 0 is lost, after the last step of run.steps" in said for said in ended)


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_many_launchers_end_together(launchers: Launchers, tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(SAYS_AND_ENDS)
    ports = free_ports(16)
    peers = ",".join(f"127.0.0.1:{port}" for port in ports)

    # On a machine that is full, a launcher that is not lost may be silent for longer than a second.
    patient = "heartbeat=60,leave=61,ready=62,minority=63,view=64,connect=65,transfer=66,start=240"

    started = [
        launchers.start("--peers", peers, "--node-rank", str(node), "--deadlines", patient, program=(str(script),))
        for node in range(len(ports))
    ]
    said = [launcher.communicate(timeout=250)[1] for launcher in started]

    assert [lines for launcher, lines in zip(started, said, strict=True) if launcher.returncode] == []
    assert not [line for lines in said for line in lines.splitlines() if "is lost" in line]
