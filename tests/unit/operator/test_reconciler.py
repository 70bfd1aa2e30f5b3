"""The driver against an API server in memory: each write once, and none on an answer that is old or missing."""

from collections.abc import Iterator
from typing import Any

import pytest
from memory_api import MemoryApi, MemoryCache
from operated_jobs import POD_SPEC

from holdfast_common import KubernetesError
from holdfast_operator.driver import Logs, Reconciler
from holdfast_operator.jobs import Progress

JOBS, PODS = "/apis/holdfast.dev/v1alpha1/namespaces/team/holdfastjobs", "/api/v1/namespaces/team/pods"
HEALTH = "sagemaker.amazonaws.com/node-health-status"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


class Launchers:
    found: Progress | None = None

    def of(self, _key: object) -> Progress | None:
        return self.found


class World:
    """A cluster of six nodes, the driver, and a scheduler and kubelets that a test plays."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.cache = MemoryCache(self.api)
        self.progress = Launchers()
        self.now_s, self.leads = 1000.0, True
        self.lines: list[str] = []
        for number in range(6):
            node = {"metadata": {"name": f"n{number}", "labels": {}}, "status": READY}
            self.api.create("/api/v1/nodes", node)
        access: Any = self.api
        cache: Any = self.cache
        progress: Any = self.progress
        self.logs = Logs(
            access,
            cache,
            changed=lambda: None,
            may_read=lambda: self.leads,
            report=self.lines.append,
            clock=lambda: self.now_s,
            wall=lambda: self.now_s,
        )
        self.reconciler = Reconciler(
            access,
            cache=cache,
            key=b"key",
            progress=progress,
            logs=self.logs,
            may_write=lambda: self.leads,
            report=self.lines.append,
            clock=lambda: self.now_s,
        )

    def create(self, name: str = "night", **spec: Any) -> None:
        base = {"nodes": {"size": 3, "spares": 1}, "template": {"spec": POD_SPEC}}
        body = {"metadata": {"name": name, "namespace": "team", "generation": 1}, "spec": {**base, **spec}}
        self.api.create(JOBS, body)

    def passes(self, count: int = 4) -> None:
        for _ in range(count):
            for job in self.cache.jobs():
                self.reconciler.reconcile(job)
            for pod in self.cache.pods():
                self.reconciler.release(pod)

    def pod(self, index: int, name: str = "night") -> dict[str, Any]:
        return self.api.objects[f"{PODS}/{name}-{index}"]

    def pods(self) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self.api.objects if path.startswith(f"{PODS}/"))

    def run(self, index: int, *, node: str = "") -> None:
        pod = self.pod(index)
        pod["spec"]["nodeName"] = node or f"n{index}"
        state = {"running": {"startedAt": "1970-01-01T00:10:00Z"}}
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "train", "state": state}]}
        self.api.touched(f"{PODS}/night-{index}")

    def started(self, **spec: Any) -> "World":
        """A job whose pods all run."""
        self.create(**spec)
        self.passes()
        for index in range(4):
            self.run(index)
        self.passes()
        return self

    def status(self, name: str = "night") -> dict[str, Any]:
        found: dict[str, Any] = self.api.objects[f"{JOBS}/{name}"]["status"]
        return found


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.logs.close()


def test_a_job_gets_service_secret_and_pods_and_then_nothing_is_written_any_more(world: World) -> None:
    world.started()
    assert world.pods() == ["night-0", "night-1", "night-2", "night-3"]
    assert {"/api/v1/namespaces/team/services/night", "/api/v1/namespaces/team/secrets/night-run"} <= (
        world.api.objects.keys()
    )
    assert world.status()["state"] == "Running"
    world.api.calls.clear()
    world.passes()
    assert world.api.calls == []


def test_a_pass_on_old_news_creates_no_pod_twice_and_takes_none(world: World) -> None:
    world.started()
    world.cache.stale[f"{PODS}/night-1"] = None
    world.api.calls.clear()
    world.passes()
    assert [call for call in world.api.writes() if "/pods" in call[1]] == []


def test_a_node_that_one_answer_misses_keeps_its_pod(world: World) -> None:
    world.started()
    world.cache.stale["/api/v1/nodes/n1"] = None
    before = world.pod(1)["metadata"]["uid"]
    world.passes()
    assert world.pod(1)["metadata"]["uid"] == before


def test_a_pod_of_a_lost_node_is_replaced_and_no_other_is_touched(world: World) -> None:
    world.started()
    before = {index: world.pod(index)["metadata"]["uid"] for index in range(4)}
    del world.api.objects["/api/v1/nodes/n1"]
    world.passes()
    after = {index: world.pod(index)["metadata"]["uid"] for index in range(4)}
    assert [index for index in range(4) if before[index] != after[index]] == [1]
    assert world.status()["restarts"] == {"launchers": 0, "jobs": 0}


def test_a_labelled_node_is_left_and_the_name_comes_back_elsewhere(world: World) -> None:
    world.started()
    world.api.objects["/api/v1/nodes/n1"]["metadata"]["labels"][HEALTH] = "UnschedulablePendingReplacement"
    world.passes()
    assert "deletionTimestamp" in world.pod(1)["metadata"]
    assert "job team/night: pod night-1: delete: node n1 is UnschedulablePendingReplacement" in world.lines
    del world.api.objects[f"{PODS}/night-1"]
    world.passes()
    assert "nodeName" not in world.pod(1)["spec"]


def test_another_operator_or_none_writes_nothing(world: World) -> None:
    world.create()
    world.api.calls.clear()
    world.leads = False
    world.passes()
    assert world.api.writes() == []


def test_of_two_operators_on_the_same_news_one_charges_a_failure(world: World) -> None:
    world.started()
    end = {"exitCode": 139, "reason": "Error", "finishedAt": "1970-01-01T00:16:40Z"}
    world.pod(1)["status"] = {"phase": "Failed", "containerStatuses": [{"name": "train", "state": {"terminated": end}}]}
    job = world.cache.jobs()[0]
    twin = World()
    twin.api, twin.cache = world.api, world.cache
    for one in (world, twin):
        one.reconciler.reconcile(job)
    assert world.status()["restarts"]["launchers"] == 1


def test_a_conflict_leaves_the_decision_to_the_next_pass(world: World) -> None:
    world.create()
    with world.api.refusing(f"PATCH {JOBS}", 409):
        world.passes()
    assert world.pods() == []
    world.passes()
    assert len(world.pods()) == 4


@pytest.mark.parametrize("code", [0, 429, 500, 503])
def test_an_api_server_that_does_not_answer_is_asked_again(world: World, code: int) -> None:
    world.create()
    with world.api.refusing(f"POST {PODS}", code), pytest.raises(KubernetesError):
        world.passes()
    world.passes()
    assert len(world.pods()) == 4


def test_a_refused_pod_is_named_in_the_status_and_tried_again_later(world: World) -> None:
    world.create()
    with world.api.refusing(f"POST {PODS}", 403, "exceeded quota: gpus"):
        world.passes()
        condition = world.status()["conditions"][0]
        assert "pod night-0 was refused: exceeded quota: gpus" in condition["message"]
        tries = [call for call in world.api.calls if call == ("POST", PODS)]
        world.passes()
        assert [call for call in world.api.calls if call == ("POST", PODS)] == tries
    world.now_s += 6
    world.passes()
    assert len(world.pods()) == 4
    assert "refused" not in str(world.status()["conditions"])


def test_a_pod_of_that_name_that_is_not_the_jobs_is_left_alone(world: World) -> None:
    world.api.create(PODS, {"metadata": {"name": "night-2"}, "spec": {"containers": [{"name": "x"}]}})
    other = world.pod(2)["metadata"]["uid"]
    world.create()
    world.passes()
    assert world.pod(2)["metadata"]["uid"] == other
    assert 'pods "night-2" already exists' in str(world.status()["conditions"])


def test_secret_and_service_that_were_deleted_come_back_with_the_next_pod_and_the_same_token(world: World) -> None:
    world.started()
    secret, service = "/api/v1/namespaces/team/secrets/night-run", "/api/v1/namespaces/team/services/night"
    token = world.api.objects.pop(secret)["stringData"]
    del world.api.objects[service], world.api.objects[f"{PODS}/night-3"]
    world.passes()
    assert world.api.objects[secret]["stringData"] == token
    assert service in world.api.objects


def test_an_invalid_job_has_all_mistakes_in_its_condition_and_no_pod(world: World) -> None:
    world.create(nodes={"size": 3, "spares": 9}, oops=1)
    world.passes()
    (condition,) = world.status()["conditions"]
    assert (condition["type"], len(condition["message"].splitlines())) == ("Invalid", 2)
    assert world.pods() == []


def test_two_jobs_of_one_name_in_two_namespaces_do_not_meet(world: World) -> None:
    world.started()
    other = JOBS.replace("team", "other")
    spec = {"nodes": {"size": 2}, "template": {"spec": POD_SPEC}}
    world.api.create(other, {"metadata": {"name": "night", "namespace": "other", "generation": 1}, "spec": spec})
    world.passes()
    assert sorted(path for path in world.api.objects if "/other/pods/" in path) == [
        f"{PODS.replace('team', 'other')}/night-{index}" for index in range(2)
    ]
    assert len(world.pods()) == 4


def test_a_job_that_was_deleted_and_created_again_takes_no_pod_of_the_old_one(world: World) -> None:
    world.started()
    job = world.api.objects.pop(f"{JOBS}/night")
    world.create()
    assert world.api.objects[f"{JOBS}/night"]["metadata"]["uid"] != job["metadata"]["uid"]
    world.api.calls.clear()
    world.passes()
    assert [call for call in world.api.writes() if call[0] == "DELETE"] == []
    assert world.status()["nodes"] == 0


def test_the_step_of_the_launchers_is_in_the_status(world: World) -> None:
    world.started()
    world.progress.found = Progress(step=41, steps=200, goodput=0.985, remaining_s=4210)
    world.passes()
    status = world.status()
    assert (status["step"], status["stepsLost"], status["goodput"], status["eta"]) == (41, 0, "98.5 %", "1h10m")
    assert status["trainerStatus"] == {"progressPercentage": 20, "estimatedRemainingSeconds": 4210}


HANGS = {"name": "hang", "logPattern": "step", "expectedRecurringFrequencyInSeconds": 10}


class Writer:
    """The lines of a pod, with the times of its node, whose clock is a year off."""

    def __init__(self, world: World, index: int = 0) -> None:
        self.lines = world.api.logs.setdefault(f"{PODS}/night-{index}", [])
        self.count = 0

    def writes(self, *texts: str) -> None:
        for text in texts:
            self.count += 1
            self.lines.append(f"2031-01-01T00:00:{self.count // 4:02}.{self.count:09}Z {text}\n")


def looks(world: World, seconds: float) -> None:
    world.now_s += seconds
    world.logs.look()
    world.passes()


def test_a_job_whose_log_stops_is_restarted_as_a_whole_once_and_charged_once(world: World) -> None:
    world.started(logRules=[HANGS])
    writer, before = Writer(world), {index: world.pod(index)["metadata"]["uid"] for index in range(4)}
    for _ in range(3):
        writer.writes("step 1")
        looks(world, 9)
    assert world.status()["restarts"]["launchers"] == 0
    looks(world, 10)
    assert all("deletionTimestamp" in world.pod(index)["metadata"] for index in range(4))
    assert world.status()["stops"][-1]["what"] == "log rule hang is HANGING: no line matched for 10 s"
    del world.api.objects[f"{PODS}/night-0"]
    looks(world, 5)
    assert world.pods() == ["night-1", "night-2", "night-3"], "none is created beside pods of the run before"
    for index in (1, 2, 3):
        del world.api.objects[f"{PODS}/night-{index}"]
    looks(world, 5)
    assert not {world.pod(index)["metadata"]["uid"] for index in range(4)} & set(before.values())
    looks(world, 60)
    assert world.status()["restarts"] == {"launchers": 1, "jobs": 0}


def test_lines_are_read_once_and_in_bounds(world: World) -> None:
    world.started(logRules=[{"name": "slow", "logPattern": r"(\d+)", "metricThreshold": 5, "operator": "gt",
                             "metricEvaluationDataPoints": 3}])  # fmt: skip
    writer = Writer(world)
    writer.writes("9", "9")
    for _ in range(3):
        looks(world, 5)
    assert world.status()["restarts"]["launchers"] == 0, "two lines that were read three times"
    assert world.api.queries[-4]["sinceTime"] == "2031-01-01T00:00:00Z"
    assert (world.api.queries[-1]["tailLines"], world.api.queries[-1]["limitBytes"]) == ("10000", "1048576")
    writer.writes("9")
    looks(world, 5)
    assert world.status()["restarts"]["launchers"] == 1


def test_a_log_that_cannot_be_read_or_is_cut_is_no_hang(world: World) -> None:
    world.started(logRules=[HANGS])
    writer = Writer(world)
    writer.writes("step 1")
    looks(world, 5)
    with world.api.refusing(f"GET {PODS}/night-2/log", 500, "no route"):
        looks(world, 60)
        looks(world, 60)
    assert [line for line in world.lines if "log of" in line] == [
        "job team/night: log of pod night-2: no route; retrying"
    ]
    assert world.status()["restarts"]["launchers"] == 0
    writer.writes(*["x" * 1000] * 1100)
    looks(world, 9)
    looks(world, 9)
    assert world.status()["restarts"]["launchers"] == 0
    looks(world, 10)
    assert world.status()["restarts"]["launchers"] == 1


def test_a_bar_of_progress_is_one_line_and_no_time(world: World) -> None:
    world.started(logRules=[{"name": "oom", "logPattern": ".*out of memory", "faultOnMatch": True}])
    writer = Writer(world)
    writer.writes("\r 50% of it\r9999-12-31T00:00:00Z of it\x85 more")
    looks(world, 5)
    writer.writes("\r 60% of it: out of memory")
    looks(world, 5)
    assert world.status()["restarts"]["launchers"] == 1


def test_logs_of_a_node_that_is_not_ready_are_not_awaited(world: World) -> None:
    world.started(logRules=[HANGS])
    Writer(world).writes("step 1")
    looks(world, 5)
    world.api.objects["/api/v1/nodes/n2"]["status"] = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    world.api.calls.clear()
    looks(world, 60)
    assert ("GET", f"{PODS}/night-2/log") not in world.api.calls
    assert ("GET", f"{PODS}/night-0/log") in world.api.calls
    assert world.status()["restarts"]["launchers"] == 0


@pytest.mark.parametrize("is_rotated", [True, False])
def test_a_log_that_was_rotated_may_have_had_the_match(world: World, is_rotated: bool) -> None:
    starts = {"name": "starts", "logPattern": "epoch 0", "expectedStartCutOffInSeconds": 100}
    world.started(logRules=[starts, HANGS])
    writer = Writer(world)
    writer.writes("step 1", "x")
    looks(world, 5)
    if is_rotated:
        writer.lines.clear()
    writer.writes("y")
    looks(world, 9)
    looks(world, 9)
    assert world.status()["restarts"]["launchers"] == (0 if is_rotated else 1)
    writer.writes("step 2")
    for _ in range(20):
        looks(world, 9)
        writer.writes("step 3")
    assert world.status()["restarts"]["launchers"] == (0 if is_rotated else 1)


def test_a_second_with_more_than_a_look_reads_is_left_behind(world: World) -> None:
    world.started(logRules=[{"name": "oom", "logPattern": "out of memory", "faultOnMatch": True}])
    writer = Writer(world)
    writer.lines += [f"2031-01-01T00:00:00.{index:09}Z {'x' * 1000}\n" for index in range(1100)]
    writer.lines.append("2031-01-01T00:00:01.000000000Z out of memory\n")
    for _ in range(2):
        looks(world, 5)
        assert world.status()["restarts"]["launchers"] == 0
    looks(world, 5)
    assert world.status()["restarts"]["launchers"] == 1


def test_another_operator_takes_over_without_the_timers_of_the_first(world: World) -> None:
    starts = {"name": "starts", "logPattern": "epoch 0", "expectedStartCutOffInSeconds": 100}
    world.started(logRules=[starts])
    looks(world, 90)
    world.leads = False
    world.logs.look()
    world.leads = True
    looks(world, 1)
    looks(world, 1000)
    assert world.status()["restarts"]["launchers"] == 0, "its first line may be one that was rotated away"


def test_a_rule_that_is_off_stays_off_and_is_shown(world: World) -> None:
    evil = {"name": "evil", "logPattern": "(a+)+b", "faultOnMatch": True}
    stops = {**HANGS, "stopPattern": "finished"}
    world.started(logRules=[evil, stops])
    Writer(world).writes("step 1", "a" * 60, "finished")
    looks(world, 5)
    looks(world, 60)
    assert world.status()["stoppedLogRules"] == [
        {"name": "evil", "reason": "its patterns take too much time or memory"},
        {"name": "hang", "reason": "its stopPattern matched"},
    ]
    assert "log rule evil is off: its patterns take too much time or memory" in str(world.status()["conditions"])
    assert world.status()["restarts"]["launchers"] == 0


FINALIZER = "kueue.x-k8s.io/managed"


def test_a_failed_pod_of_a_queue_is_released_so_that_its_name_is_free_and_others_are_not(world: World) -> None:
    world.create()
    world.api.objects[f"{JOBS}/night"]["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    world.passes()
    for index in range(4):
        world.pod(index)["metadata"]["finalizers"] = [FINALIZER, "other"] if index == 2 else [FINALIZER]
        world.run(index)
    world.passes()
    before = {index: world.pod(index)["metadata"]["uid"] for index in range(4)}
    for index in (1, 2):
        end = {"exitCode": 75, "reason": "Error", "finishedAt": "1970-01-01T00:16:40Z"}
        state = [{"name": "train", "state": {"terminated": end}}]
        world.pod(index)["status"] = {"phase": "Failed", "containerStatuses": state}
    world.passes()
    assert world.pod(1)["metadata"]["uid"] != before[1]
    assert world.pod(2)["metadata"]["finalizers"] == ["other"]
    assert world.pod(0)["metadata"]["finalizers"] == [FINALIZER]


def test_a_pod_of_a_queue_on_a_node_that_is_gone_is_released(world: World) -> None:
    world.started()
    before = world.pod(1)["metadata"]["uid"]
    world.pod(1)["metadata"]["finalizers"] = [FINALIZER]
    del world.api.objects["/api/v1/nodes/n1"]
    world.passes()
    assert world.pod(1)["metadata"]["uid"] != before


def test_pods_of_a_queue_are_released_after_their_job_is_gone(world: World) -> None:
    world.started()
    for index in range(4):
        world.pod(index)["metadata"] |= {"finalizers": [FINALIZER], "deletionTimestamp": "1970-01-01T00:16:40Z"}
        world.pod(index)["status"]["phase"] = "Running" if index == 3 else "Failed"
    del world.api.objects[f"{JOBS}/night"]
    world.passes()
    assert world.pods() == ["night-3"]
    world.leads, world.pod(3)["status"]["phase"] = False, "Failed"
    world.passes()
    assert world.pods() == ["night-3"]
