"""The agent's hands on a real Slurm: marks in comments, HyperPod's states and reasons, and what people wrote there."""

from collections.abc import Iterator, Sequence

import pytest
from slurm_lab import SlurmLab
from waiting import eventually

from holdfast.localcloud.nodes import Node
from holdfast_agent.remedies import Answer, Hands, RemedySettings, Request, Ruling, Stage, ruling
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes

pytestmark = [pytest.mark.root, pytest.mark.slurm]


class OnNode(Program):
    """Slurm's commands as root of a node, as the agent runs them there."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node

    def run(self, argv: Sequence[str]) -> str:
        done = self._node.run(list(argv), timeout_s=60)
        if done.returncode:
            raise SlurmError(done.stdout + done.stderr)
        return done.stdout


class Worker:
    """One worker's hands."""

    def __init__(self, lab: SlurmLab, node: Node) -> None:
        self.lab, self.host = lab, node.spec.hostname
        settings = RemedySettings(mode="act", way="slurm", host=self.host)
        self.hands = Hands(settings=settings, program=OnNode(node))

    def do(self, deed: str, remedy: str = "", subject: str = "") -> Answer:
        return self.hands.do(Request(number=1, deed=deed, remedy=remedy, subject=subject))

    def slurm(self) -> SlurmNode:
        output = self.lab.controller.run(["scontrol", "--oneliner", "show", "node", self.host], timeout_s=60).stdout
        (node,) = parse_nodes(output)
        return node

    def update(self, *fields: str) -> None:
        done = self.lab.controller.run(["scontrol", "update", f"NodeName={self.host}", *fields], timeout_s=60)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    made = SlurmLab(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def workers(lab: SlurmLab) -> list[Worker]:
    return sorted((Worker(lab, node) for node in lab.workers), key=lambda one: one.host)


def test_a_mark_is_seen_by_all_and_leaves_what_people_wrote(workers: list[Worker]) -> None:
    one, other = workers
    one.update("Comment=rack 7, be careful")
    assert one.do("claim", "replace", "gpu-lost").outcome == "done"
    view = other.do("look").view
    assert view is not None
    assert [(mark.node, mark.stage, mark.remedy) for mark in view.marks] == [(one.host, Stage.CLAIM, "replace")]
    assert (view.me, view.nodes) == (other.host, 2)
    assert one.do("clear").outcome == "done"
    assert one.slurm().comment == "rack 7, be careful"
    one.update("Comment=")
    assert one.do("claim", "replace", "gpu-lost").outcome == "done"
    assert one.do("clear").outcome == "done"
    assert one.slurm().comment in ("", "(null)")


def test_what_a_person_drained_is_left_alone(workers: list[Worker]) -> None:
    one = workers[0]
    one.update("State=DRAIN", "Reason=new cables")
    refused = one.do("claim", "reboot", "driver-hung")
    assert (refused.outcome, "new cables" in refused.why) == ("refused", True)
    assert one.slurm().reason == "new cables"
    one.update("State=RESUME")
    assert eventually(lambda: one.slurm().base == "IDLE" and not one.slurm().reason)


def test_a_node_that_hyperpods_own_agent_has_marked_counts_for_the_breaker(workers: list[Worker]) -> None:
    one, other = workers
    other.update("State=DRAIN", "Reason=Action:Replace")
    view = one.do("look").view
    assert view is not None
    assert [(mark.node, mark.stage) for mark in view.marks] == [(other.host, Stage.ASKED)]
    assert ruling(view.marks, me=one.host, nodes=2, share=0.1, now_s=view.now_s) is Ruling.OPEN
    other.update("State=RESUME")
    assert eventually(lambda: other.slurm().base == "IDLE" and not other.slurm().reason)


def test_nothing_is_asked_for_without_the_mark_of_one_that_goes(workers: list[Worker]) -> None:
    answer = workers[0].do("ask", "replace")
    assert (answer.outcome, "must be marked as going first" in answer.why) == ("refused", True)
    assert workers[0].slurm().reason == ""


def test_a_person_lets_a_node_go_by_its_comment(workers: list[Worker]) -> None:
    one = workers[0]
    assert one.do("refuse", "replace").outcome == "done"
    one.update("Comment=holdfast-remedy:allow")
    view = one.do("look").view
    assert view is not None
    assert [mark.stage for mark in view.marks] == [Stage.ALLOW]
    assert one.do("claim", "replace", "gpu-lost").outcome == "done"
    assert one.slurm().comment == "holdfast-remedy:allow", "a claim does not take it back"
    assert one.do("clear").outcome == "done"


def test_a_task_of_several_nodes_or_of_another_one_is_not_requeued(lab: SlurmLab, workers: list[Worker]) -> None:
    one, other = workers
    submitted = lab.run("sbatch", "--parsable", "-N2", "--wrap", "srun sleep 300")
    assert submitted.returncode == 0, submitted.stderr
    wide = submitted.stdout.strip()
    eventually(lambda: one.do("look").view and len(one.do("look").view.jobs) == 1)  # type: ignore[union-attr]
    refused = one.do("requeue", subject=wide)
    assert (refused.outcome, "alone" in refused.why) == ("refused", True)
    assert lab.run("scancel", wide).returncode == 0
    eventually(lambda: not lab.run("squeue", "-h").stdout.strip())
    narrow = lab.run("sbatch", "--parsable", "-w", other.host, "--wrap", "sleep 300").stdout.strip()
    eventually(lambda: other.do("look").view and other.do("look").view.jobs)  # type: ignore[union-attr]
    assert one.do("requeue", subject=narrow).outcome == "refused"
    assert lab.run("scancel", narrow).returncode == 0
    eventually(lambda: not lab.run("squeue", "-h").stdout.strip())


def test_of_an_array_one_task_is_requeued_also_the_one_that_has_the_number_of_the_array(
    lab: SlurmLab, workers: list[Worker]
) -> None:
    submitted = lab.run("sbatch", "--parsable", "--requeue", "--array=0-1", "-N1", "--exclusive", "--wrap", "sleep 300")
    assert submitted.returncode == 0, submitted.stderr
    array = submitted.stdout.strip()

    def running() -> dict[str, str]:
        lines = lab.run("squeue", "-h", "-r", "--states=R", "-o", "%A %N %i").stdout.splitlines()
        return {line.split()[0]: line for line in lines}

    eventually(lambda: len(running()) == 2)
    _, host, name = running()[array].split()
    worker = next(one for one in workers if one.host == host)
    answer = worker.do("requeue", subject=array)
    assert answer.outcome == "done", answer.why
    assert [line.split()[2] for line in running().values()] != [name], "the other task goes on"
    eventually(lambda: lab.run("squeue", "-h", "-r", "-j", name, "-o", "%t").stdout.strip() == "PD")
    assert len(running()) == 1
    assert lab.run("scancel", array).returncode == 0
    eventually(lambda: not lab.run("squeue", "-h").stdout.strip())


def test_a_busy_node_fails_its_jobs_go_on_and_hyperpod_takes_it_when_they_have_ended(
    lab: SlurmLab, workers: list[Worker]
) -> None:
    """The last test: the worker is another instance afterwards."""
    one = workers[0]
    before = {node.spec.instance_id for node in lab.fleet.nodes()}
    submitted = lab.run("sbatch", "--parsable", "--requeue", "-w", one.host, "--wrap", "sleep 300")
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()
    eventually(lambda: one.do("look").view and one.do("look").view.jobs)  # type: ignore[union-attr]
    for deed in (("claim", "replace", "gpu-lost"), ("go", "replace"), ("ask", "replace")):
        answer = one.do(*deed)
        assert answer.outcome == "done", answer.why
    asked = one.slurm()
    assert (asked.reason, "FAIL" in asked.flags or "FAIL" in asked.state) == ("Action:Replace", True)
    assert one.do("ask", "replace").outcome == "done", "once more does nothing"
    again = one.do("claim", "replace", "gpu-lost")
    assert (again.outcome, again.why) == ("in-use", "request already pending for this node: replace"), "whoever asked"
    refused = one.do("force", "replace")
    assert (refused.outcome, "other jobs on this node" in refused.why) == ("refused", True)
    assert lab.run("squeue", "-h", "-j", job, "-o", "%t").stdout.strip() == "R"
    assert {node.spec.instance_id for node in lab.fleet.nodes()} == before
    assert one.do("requeue", subject=job).outcome == "done"
    taken = eventually(lambda: {node.spec.instance_id for node in lab.fleet.nodes()} - before)
    assert len(taken) == 1
    eventually(lambda: one.slurm().base == "IDLE" and not one.slurm().flags)
    assert f":{'replace'}:" in one.slurm().comment, "the breaker counts a node that was replaced"
    lab.run("scancel", job)
