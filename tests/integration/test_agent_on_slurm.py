"""Marks and requests on a real Slurm: reports, orders, HyperPod's states and reasons, and what people wrote there."""

from collections.abc import Iterator, Sequence

import pytest
from slurm_lab import SlurmLab
from waiting import eventually

from holdfast.localcloud.nodes import Node
from holdfast_agent.remedies import Decider, RefusedError, RemedySettings, SlurmMarks
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes
from holdfast_common import Remedy, When
from holdfast_common.decisions import NodeState, Order, Report, Stage

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


REPORT = Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, evidence="Xid 79: a|b, 'c' %d=e", tasks=("1_2",))


class Worker:
    """One worker: the marks of its agent, and those of the controller's decider."""

    def __init__(self, lab: SlurmLab, node: Node) -> None:
        self.lab, self.host = lab, node.spec.hostname
        self.agent = SlurmMarks(program=OnNode(node), host=self.host)
        self.decider = SlurmMarks(program=OnNode(lab.controller))

    def state(self) -> NodeState:
        return next(node for node in self.decider.look() if node.name == self.host)

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


def test_a_report_and_an_order_are_read_by_all_and_leave_what_people_wrote(workers: list[Worker]) -> None:
    one, other = workers
    one.update("Comment=rack 7, be careful")
    one.update("Extra=row 3")
    order = Order(Stage.ASKED, "replace", 1763.0, "i1", ("stalled",), ("1_2",))
    one.agent.report(REPORT)
    one.decider.write(one.state(), order)
    assert (one.state().report, one.state().order) == (REPORT, order)
    assert (one.agent.own().report, one.agent.own().order) == (REPORT, order)
    assert (other.state().report, other.state().order) == (None, None)
    one.agent.report(None)
    one.decider.write(one.state(), None)
    assert (one.slurm().comment, one.slurm().extra) == ("rack 7, be careful", "row 3")
    one.update("Comment=")
    one.update("Extra=")
    one.agent.report(REPORT)
    one.agent.report(None)
    assert one.slurm().extra in ("", "(null)")


def test_a_reason_of_others_and_a_request_are_seen_as_theirs(workers: list[Worker]) -> None:
    one, other = workers
    one.update("State=DRAIN", "Reason=new cables")
    other.update("State=DRAIN", "Reason=Action:Replace")
    assert (one.state().request, "new cables" in one.state().foreign) == ("", True)
    assert (other.state().request, "not ours" in other.state().foreign) == ("replace", True)
    for worker in workers:
        worker.update("State=RESUME")
        eventually(lambda worker=worker: worker.slurm().base == "IDLE" and worker.state() == NodeState(worker.host))


def test_a_person_lets_a_node_go_by_its_comment(workers: list[Worker]) -> None:
    one = workers[0]
    one.decider.write(one.state(), Order(Stage.REFUSED, "replace", 1.0, "i1", ("breaker",)))
    one.update("Comment=holdfast-remedy:allow")
    assert one.state().order == Order(Stage.ALLOW)
    one.decider.write(one.state(), None)
    assert one.slurm().comment in ("", "(null)")


def test_a_task_of_several_nodes_or_of_another_one_is_not_requeued(lab: SlurmLab, workers: list[Worker]) -> None:
    one, other = workers
    for width in (["-N2", "--wrap", "srun sleep 300"], ["-w", other.host, "--wrap", "sleep 300"]):
        submitted = lab.run("sbatch", "--parsable", *width)
        assert submitted.returncode == 0, submitted.stderr
        job = submitted.stdout.strip()
        eventually(lambda job=job: lab.run("squeue", "-h", "-j", job, "-o", "%t").stdout.strip() == "R")
        with pytest.raises(RefusedError, match=f"not on {one.host} alone"):
            one.decider.requeue(one.state(), job)
        assert lab.run("scancel", job).returncode == 0
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
    worker.decider.requeue(worker.state(), array)
    assert [line.split()[2] for line in running().values()] != [name], "the other task goes on"
    eventually(lambda: lab.run("squeue", "-h", "-r", "-j", name, "-o", "%t").stdout.strip() == "PD")
    assert len(running()) == 1
    assert lab.run("scancel", array).returncode == 0
    eventually(lambda: not lab.run("squeue", "-h").stdout.strip())


def test_a_busy_node_fails_its_jobs_go_on_and_hyperpod_takes_it_when_they_have_ended(
    lab: SlurmLab, workers: list[Worker]
) -> None:
    """
    Of two deciders, each killed after each of its passes. The last test: the worker is another instance afterwards.
    """
    one = workers[0]
    before = {node.spec.instance_id for node in lab.fleet.nodes()}
    submitted = lab.run("sbatch", "--parsable", "--requeue", "-w", one.host, "--wrap", "sleep 300")
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()
    eventually(lambda: lab.run("squeue", "-h", "-j", job, "-o", "%t").stdout.strip() == "R")
    told: list[Happening] = []

    def decide() -> None:
        settings = RemedySettings(mode="act", way="slurm", share=0.1)
        for _ in range(2):
            Decider(settings=settings, marks=one.decider, report=told.append).look()

    report = Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW)
    one.agent.report(report)
    decide()
    order = one.agent.own().order
    assert order is not None
    assert (order.stage, one.slurm().reason) == (Stage.GO, ""), "ranks leave first"
    one.agent.report(Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, has_left=True))
    decide()
    asked = one.slurm()
    assert (asked.reason, "FAIL" in asked.flags or "FAIL" in asked.state) == ("Action:Replace", True)
    decide()
    assert len(told) == 1, "requested once"
    with pytest.raises(RefusedError, match="other jobs on this node"):
        one.decider.force(one.state(), "replace")
    assert lab.run("squeue", "-h", "-j", job, "-o", "%t").stdout.strip() == "R"
    assert {node.spec.instance_id for node in lab.fleet.nodes()} == before
    one.agent.report(Report("i1", "gpu-lost", Remedy.REPLACE, When.NOW, has_left=True, tasks=(job,)))
    decide()
    taken = eventually(lambda: {node.spec.instance_id for node in lab.fleet.nodes()} - before)
    assert len(taken) == 1
    eventually(lambda: one.slurm().base == "IDLE" and not one.slurm().flags)
    order = one.state().order
    assert order is not None
    assert (order.stage, order.tasks) == (Stage.ASKED, (job,)), "the breaker counts a node that was replaced"
    lab.run("scancel", job)
