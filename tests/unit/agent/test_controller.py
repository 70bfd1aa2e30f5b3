"""What the controller's agent tells of nodes, from one look to the next, and that nothing is told twice."""

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from holdfast_agent.aws import AwsError
from holdfast_agent.controller import ClusterPoller, ControllerWatch, HmaRecord, Instance, Observation, Watcher
from holdfast_agent.signals import Happening
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes
from holdfast_common import kinds


def instance(name: str, status: str = "Running", **more: str) -> Instance:
    return Instance(instance_id=name, group=more.pop("group", "workers"), status=status, host=f"ip-{name}", **more)


class Story:
    """Looks one after the other, ten seconds apart."""

    def __init__(self) -> None:
        self.watcher, self.now_s = Watcher(), 0.0

    def look(self, *instances: Instance, nodes: tuple[SlurmNode, ...] = (), **more: Any) -> list[Happening]:
        self.now_s += 10
        seen = Observation(
            boot_s=self.now_s, instances=instances, nodes=nodes, **{"has_control_plane_events": False, **more}
        )
        # As after a restart of the agent: what it knew is all it needs.
        kept = json.loads(json.dumps(self.watcher.snapshot()))
        self.watcher = Watcher()
        self.watcher.restore(kept)
        return list(self.watcher.look(seen))


def told(happenings: list[Happening]) -> list[tuple[str, str | None]]:
    return [(one.kind, one.node) for one in happenings]


def test_the_first_look_only_shows_what_there_is() -> None:
    assert Story().look(instance("a"), instance("b", "Failure"), instance("c", "Pending")) == []


def test_an_instance_that_fails_is_lost_and_its_successor_replaces_it() -> None:
    story = Story()
    story.look(instance("a"), instance("b"))
    lost = story.look(instance("a", "Failure", message="hardware"), instance("b"))
    assert told(lost) == [(kinds.NODE_LOST, "a")]
    assert (lost[0].fault, lost[0].evidence) == ("instance-lost", "hardware")
    assert story.look(instance("b")) == []
    replacing = story.look(instance("b"), instance("c", "Pending"))
    assert told(replacing) == [(kinds.NODE_REPLACING, "a")]
    assert replacing[0].detail["replacement"] == "c"
    replaced = story.look(instance("b"), instance("c"))
    assert told(replaced) == [(kinds.NODE_REPLACED, "c")]
    assert (replaced[0].detail["replaces"], replaced[0].duration_s) == ("a", 30.0)
    assert story.look(instance("b"), instance("c")) == []


def test_an_instance_that_is_swapped_between_two_looks_is_told_with_all_that_happened() -> None:
    story = Story()
    story.look(instance("a"))
    assert told(story.look(instance("b"))) == [
        (kinds.NODE_LOST, "a"),
        (kinds.NODE_REPLACING, "a"),
        (kinds.NODE_REPLACED, "b"),
    ]


def test_a_replacement_that_was_asked_for_is_no_loss() -> None:
    story = Story()
    story.look(instance("a"))
    story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE", reason="Action:Replace"),))
    assert told(story.look(instance("b", "Pending"))) == [(kinds.NODE_REPLACING, "a")]


BOOTS = {"before": "2026-11-01T10:00:00", "after": "2026-11-01T11:00:00"}


def silent(boot: str = "before") -> tuple[SlurmNode, ...]:
    return (SlurmNode(name="ip-a", base="DOWN", flags=frozenset({"NOT_RESPONDING"}), boot_time=BOOTS[boot]),)


def test_a_node_whose_software_is_updated_is_not_lost_and_not_rebooted() -> None:
    story = Story()
    story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE", boot_time=BOOTS["before"]),))
    assert story.look(instance("a", "SystemUpdating"), nodes=silent()) == []
    assert story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE", boot_time=BOOTS["after"]),)) == []
    assert told(story.look(instance("a"), nodes=silent("after"))) == [(kinds.NODE_LOST, "a")]


def test_a_node_that_moves_to_another_group_or_cluster_is_not_lost() -> None:
    story = Story()
    story.look(instance("a"), instance("b"))
    assert story.look(instance("a", "DetachInProgress"), instance("b", "DetachInProgress"), nodes=silent()) == []
    assert story.look(instance("a", "AttachInProgress", group="others")) == []
    assert story.look(instance("a", group="others")) == []
    assert story.look(instance("a", group="others"), instance("new", "Pending")) == [], "b has no successor"


def test_a_node_that_is_attached_replaces_nobody() -> None:
    story = Story()
    story.look(instance("a"), instance("b"))
    story.look(instance("b"))
    assert story.look(instance("b"), instance("c", "AttachInProgress")) == []


def test_a_group_that_shrinks_or_grows_loses_nobody() -> None:
    story = Story()
    story.look(instance("a"), instance("b"))
    assert story.look(instance("a")) == []
    assert story.look(instance("a"), instance("x", group="others")) == []


def test_an_instance_that_never_ran_failed() -> None:
    story = Story()
    story.look(instance("a"))
    story.look(instance("a"), instance("b", "Pending"))
    failed = story.look(instance("a"), instance("b", "Failure", message="lifecycle script"))
    assert [(one.kind, one.node, one.fault) for one in failed] == [(kinds.NODE_FAILED, "b", "lifecycle-failed")]


def test_a_reboot_is_seen_by_the_service_or_by_slurms_boot_time() -> None:
    story = Story()
    story.look(instance("a"))
    assert told(story.look(instance("a", "Pending"))) == [(kinds.NODE_REBOOTING, "a")]
    assert told(story.look(instance("a"))) == [(kinds.NODE_REBOOTED, "a")]
    story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE", boot_time="10:00"),))
    again = story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE", boot_time="11:00"),))
    assert told(again) == [(kinds.NODE_REBOOTING, "a"), (kinds.NODE_REBOOTED, "a")]


def test_a_node_that_slurm_does_not_hear_is_lost_once() -> None:
    story = Story()
    silent = SlurmNode(name="ip-a", base="DOWN", flags=frozenset({"NOT_RESPONDING"}))
    story.look(instance("a"))
    lost = story.look(instance("a"), nodes=(silent,))
    assert [(one.kind, one.fault) for one in lost] == [(kinds.NODE_LOST, "instance-unreachable")]
    assert story.look(instance("a"), nodes=(silent,)) == []
    story.look(instance("a"), nodes=(SlurmNode(name="ip-a", base="IDLE"),))
    assert len(story.look(instance("a"), nodes=(silent,))) == 1


def test_where_a_control_plane_tells_of_nodes_the_agent_does_not() -> None:
    story = Story()
    story.look(instance("a"), has_control_plane_events=True)
    assert story.look(instance("b"), has_control_plane_events=True) == []
    record = HmaRecord(instance_id="b", event_id="e1", text=RECORDS[0][0])
    assert told(story.look(instance("b"), has_control_plane_events=True, records=(record,))) == [(kinds.VERDICT, "b")]


def test_what_is_found_while_nobody_knows_who_tells_waits_for_the_answer() -> None:
    watcher = Watcher()
    watcher.look(Observation(boot_s=1, instances=(instance("a"),)))
    assert watcher.look(Observation(boot_s=2, instances=(instance("a", "Failure"),))) == ()
    assert told(list(watcher.look(Observation(boot_s=3, has_control_plane_events=False)))) == [(kinds.NODE_LOST, "a")]


def test_a_service_that_does_not_answer_loses_no_node() -> None:
    watcher = Watcher()
    watcher.look(Observation(boot_s=1, instances=(instance("a"),), has_control_plane_events=False))
    for second in range(2, 60):
        assert watcher.look(Observation(boot_s=second, problems=("away",), has_control_plane_events=False)) == ()
    assert watcher.look(Observation(boot_s=61, instances=(instance("a"),), has_control_plane_events=False)) == ()


_NPD = (
    "Node condition NvidiaErrorReboot is now: True, reason: XidHardwareFailure, "
    'message: \\"NVRM: Xid (PCI:0000:b9:00): 71\\"'
)
_MARK = '"HealthMonitoringAgentDetectionEvent":"HealthEvent"'
RECORDS = [
    (
        '{"level":"info","msg":"NPD caught event: %v","details: ":{"severity":"warn","reason":"XidHardwareFailure",'
        f'"message":"{_NPD}"}},{_MARK}}}',
        "reboot",
        71,
    ),
    (
        '{"level":"info","ts":"2026-07-20T22:53:17Z","msg":"DCGM Policy Violation found ","condition: ":"XID Error",'
        f'"data: ":{{"ErrNum":79}},{_MARK}}}',
        "none",
        79,
    ),
    (
        '{"Event detail":{"Action":"replace","Type":"NvidiaGPUUnhealthy",'
        f'"Reason":"NvidiaGpuXidErrorPendingReplacement","Message":"NVRM: Xid (PCI:0000:18:00): 79, gone"}},{_MARK}}}',
        "replace",
        79,
    ),
    (
        '{"msg":"NPD caught positive condition","condition details":{"type":"KernelDeadlock","status":"True"},'
        f"{_MARK}}}",
        "none",
        None,
    ),
]


@pytest.mark.parametrize(("text", "action", "code"), RECORDS)
def test_each_shape_of_hmas_records_becomes_a_verdict_once(text: str, action: str, code: int | None) -> None:
    story = Story()
    record = HmaRecord(instance_id="i-1", event_id="e1", text=text)
    (found,) = story.look(records=(record,))
    assert (found.kind, found.fault, found.node, found.action) == (kinds.VERDICT, "hma-finding", "i-1", action)
    assert found.detail.get("code") == code
    assert story.look(records=(record,)) == []


class Aws:
    """Answers by operation; keeps what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, []

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.asked.append((operation, parameters))
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer(parameters) if callable(answer) else answer

    def now_s(self) -> float:
        return 1000.0


class Scontrol(Program):
    def __init__(self, output: str | SlurmError) -> None:
        super().__init__()
        self.output = output

    def run(self, argv: Any) -> str:
        if isinstance(self.output, SlurmError):
            raise self.output
        return self.output


def looker(tmp_path: Path, logs: Aws, sagemaker: Aws, scontrol: str | SlurmError = "") -> ClusterPoller:
    config = tmp_path / "resource_config.json"
    config.write_text(json.dumps({"ClusterConfig": {"ClusterArn": "arn:aws:sagemaker:us-west-2:1:cluster/abc"}}))
    return ClusterPoller(
        cluster="lab", sagemaker=sagemaker, logs=logs, program=Scontrol(scontrol), resource_config=config
    )


NOTHING = AwsError("ResourceNotFoundException", "none", status=400)


def test_a_look_has_all_pages_and_asks_for_hmas_findings_only(tmp_path: Path) -> None:
    def nodes(parameters: dict[str, Any]) -> dict[str, Any]:
        number = int(parameters.get("NextToken", "0"))
        summary = {
            "InstanceId": f"i-{number}",
            "InstanceGroupName": "workers",
            "InstanceStatus": {"Status": "Running"},
            "PrivateDnsHostname": f"ip-10-1-0-{number}.us-west-2.compute.internal",
        }
        return {"ClusterNodeSummaries": [summary], **({"NextToken": str(number + 1)} if number < 2 else {})}

    event = {
        "logStreamName": "SagemakerHealthMonitoringAgent/workers/i-1",
        "eventId": "e1",
        "timestamp": 1_000_500,
        "message": RECORDS[1][0],
    }
    logs = Aws(GetLogEvents=NOTHING, FilterLogEvents={"events": [event]})
    seen = looker(tmp_path, logs, Aws(ListClusterNodes=nodes)).look(boot_s=1)
    assert seen.instances is not None
    assert [(one.instance_id, one.host) for one in seen.instances] == [
        ("i-0", "ip-10-1-0-0"),
        ("i-1", "ip-10-1-0-1"),
        ("i-2", "ip-10-1-0-2"),
    ]
    assert seen.records == (HmaRecord(instance_id="i-1", event_id="e1", text=RECORDS[1][0]),)
    assert (seen.has_control_plane_events, seen.problems) == (False, ())
    (parameters,) = [given for operation, given in logs.asked if operation == "FilterLogEvents"]
    assert parameters["logGroupName"] == "/aws/sagemaker/Clusters/lab/abc"
    assert parameters["filterPattern"] == '"HealthMonitoringAgentDetectionEvent"'


def test_whoever_does_not_answer_keeps_nobody_else_from_being_heard(tmp_path: Path) -> None:
    logs = Aws(GetLogEvents={"events": [{}]}, FilterLogEvents=AwsError("Unreachable", "away"))
    made = looker(tmp_path, logs, Aws(ListClusterNodes=AwsError("Unreachable", "away")), SlurmError("hangs"))
    seen = made.look(boot_s=1)
    assert (seen.instances, seen.nodes, seen.records, seen.has_control_plane_events) == (None, None, None, True)
    assert len(seen.problems) == 3


def test_a_look_that_hangs_keeps_no_poll_waiting_and_has_no_second_beside_it() -> None:
    release, began = threading.Event(), []

    class Hanging:
        def look(self, *, boot_s: float) -> Observation:
            began.append(boot_s)
            release.wait(30)
            return Observation(boot_s=boot_s, has_control_plane_events=False, instances=(instance("a"),))

    watch = ControllerWatch(looker=Hanging(), every_s=1)
    for second in range(50):
        assert watch.poll(boot_s=float(second)) == ()
    eventually(lambda: began == [0.0])
    release.set()
    seconds = itertools.count(100)
    eventually(lambda: watch.poll(boot_s=float(next(seconds))) == () and len(began) == 2)
    watch.close()


def test_scontrols_lines_are_read_as_slurm_22_writes_them() -> None:
    line = (
        "NodeName=ip-10-1-0-4 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 OS=Linux 6.18 #1 SMP State=x "
        "RealMemory=1 State=IDLE+FAIL ThreadsPerCore=1 BootTime=2026-11-23T10:00:00 SlurmdStartTime=None "
        "Reason=Action:Replace [root@2026-11-23T15:00:00] Comment=a rack holdfast-remedy:asked:replace:1763"
    )
    (node,) = parse_nodes(line + "\nslurm_load_node error: nothing\n")
    assert (node.name, node.state, node.reason) == ("ip-10-1-0-4", "IDLE+FAIL", "Action:Replace")
    assert (node.reason_by, node.boot_time) == ("root", "2026-11-23T10:00:00")
    assert node.comment == "a rack holdfast-remedy:asked:replace:1763"


def test_a_program_that_hangs_is_ended_and_one_that_cannot_be_has_no_second_beside_it(tmp_path: Path) -> None:
    program = Program(timeout_s=0.2)
    with pytest.raises(SlurmError, match="no answer within"):
        program.run(["sleep", "60"])
    assert program.run(["echo", "x"]) == "x\n"
    with pytest.raises(SlurmError, match="no such node"):
        program.run(["sh", "-c", "echo no such node; exit 1"])
    with pytest.raises(SlurmError, match="No such file"):
        program.run([str(tmp_path / "scontrol")])
