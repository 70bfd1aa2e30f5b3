"""The validator of a HoldfastJob, which admission and the condition Invalid have in common."""

from typing import Any

import pytest
from operated_jobs import POD_SPEC, job, manifest

from holdfast_operator.driver import answer_to
from holdfast_operator.jobs import JobError, mistakes, read_job


def found(**spec: Any) -> list[str]:
    return mistakes(manifest(**spec))


def test_a_valid_job_has_no_mistake_and_keeps_its_template() -> None:
    assert found() == []
    assert job().template == {"spec": POD_SPEC}
    assert (job().nodes.pods, job().nodes.sizes, job().recovery.job_restarts) == (4, (), 3)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ({"min": 4, "max": 3}, "spec.nodes.min: got 4 with max 3; allowed: 1 to 3"),
        ({"min": 3, "max": 5, "step": 1, "sizes": [3, 5]}, "spec.nodes: got step and sizes; allowed: one of them"),
        (
            {"max": 4, "sizes": [3, 6]},
            "spec.nodes.sizes: got 3, 6 with max 4; allowed: sizes up to max, and max itself",
        ),
        ({"size": 3, "spares": 3}, "spec.nodes.spares: got 3; allowed: 0 to 2, fewer than nodes"),
        ({"min": 3, "max": 6, "step": 2}, "spec.nodes.step: got 2, which does not lead from min 3 to max 6"),
        ({"min": 3, "max": 4, "size": 5}, "spec.nodes.size: got 5; allowed: 3, 4"),
        ({"spares": 1}, "spec.nodes: got none of size, max and sizes; allowed: at least one"),
        ({"min": 2, "max": 5}, "fewer than 3 of 5 launchers are no majority"),
        ({"size": "3"}, "spec.nodes.size: got '3'; allowed: a whole number from 1 to 8192"),
        ({"size": True}, "spec.nodes.size: got True"),
        ({"size": 0}, "spec.nodes.size: got 0"),
        (
            {"replicas": 3, "size": 3},
            "spec.nodes.replicas: unknown field; allowed: max, min, size, sizes, spares, step",
        ),
        ([], "spec.nodes: got []; allowed: an object with size or max"),
    ],
)
def test_sizes_that_cannot_be_are_refused(nodes: Any, words: str) -> None:
    assert any(words in one for one in found(nodes=nodes)), found(nodes=nodes)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"processesPerNode": "8"}, "spec.processesPerNode: got '8'; allowed: a whole number from 1 to 1024"),
        ({"suspend": "no"}, "spec.suspend: got 'no'; allowed: true, false"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished: got -1"),
        ({"recovery": {"jobRestarts": 1.5}}, "spec.recovery.jobRestarts: got 1.5"),
        ({"deadlines": {"startSeconds": 0}}, "spec.deadlines.startSeconds: got 0"),
        ({"template": None}, "spec.template: got nothing; allowed: an object with spec"),
        ({"template": {"spec": {"containers": []}}}, "spec.template.spec.containers: got []"),
        ({"template": {"spec": {**POD_SPEC, "hostname": "x"}}}, "spec.template.spec.hostname: got 'x'; leave it out"),
        ({"template": {"spec": {**POD_SPEC, "restartPolicy": "Always"}}}, "got 'Always'; allowed: Never"),
        ({"template": {"spec": {"containers": [{"name": "t"}]}}}, "containers[0].image: got nothing"),
        ({"runPolicy": {}}, "spec.runPolicy: unknown field"),
    ],
)
def test_each_mistake_names_the_field_and_what_is_allowed(spec: dict[str, Any], words: str) -> None:
    assert any(words in one for one in found(**spec)), found(**spec)


def test_an_image_may_start_its_program_itself() -> None:
    assert found(template={"spec": {"containers": [{"name": "t", "image": "i"}]}}) == []


def test_variables_of_the_operator_are_not_the_users() -> None:
    variables = [{"name": "PET_NNODES", "value": "2"}, {"name": "HOLDFAST_SUBMISSION", "value": "mine"}]
    template = {"spec": {"containers": [{"image": "i", "args": ["t"], "env": variables}]}}
    assert found(template=template) == [
        "spec.template.spec.containers[0].env: got PET_NNODES; leave it out, the operator sets it"
    ]


@pytest.mark.parametrize("name", ["Night", "1st", "a.b", "n" * 62, ""])
def test_names_of_which_no_host_name_can_be_made_are_refused(name: str) -> None:
    given = manifest()
    given["metadata"]["name"] = name
    assert [one for one in mistakes(given) if one.startswith("metadata.name")]


def test_the_longest_name_leaves_room_for_the_last_index() -> None:
    given = manifest(nodes={"size": 100})
    given["metadata"]["name"] = "n" * 60
    assert mistakes(given) == []
    given["spec"]["nodes"]["size"] = 101
    assert "at most 59 characters" in mistakes(given)[0]


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(JobError) as error:
        read_job(manifest(nodes={"size": 3, "spares": 9}, processesPerNode=0, oops=1, template={}))
    assert len(str(error.value).splitlines()) == 4


@pytest.mark.parametrize("spec", [None, [], "x", {"nodes": 3, "template": 4, "recovery": []}])
def test_anything_at_all_is_judged_without_an_exception(spec: Any) -> None:
    assert mistakes({"metadata": {"name": "x"}, "spec": spec})


def answered(review: dict[str, Any], *, refusal: str = "") -> dict[str, Any]:
    return answer_to(review, trial=lambda _: refusal)


def review(new: Any, old: Any = None) -> dict[str, Any]:
    request = {"uid": "u", "object": new, "oldObject": old}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_admission_refuses_with_the_words_of_the_validator() -> None:
    bad = manifest(nodes={"size": 3, "spares": 9}, oops=1)
    answer = answered(review(bad))["response"]
    assert (answer["uid"], answer["allowed"]) == ("u", False)
    assert answer["status"]["message"].splitlines() == mistakes(bad)
    assert answered(review(manifest()))["response"] == {"uid": "u", "allowed": True}


def test_admission_refuses_what_kubernetes_would_refuse_as_a_pod_before_the_job_exists() -> None:
    found = answered(review(manifest()), refusal="Pod night-0 is invalid")["response"]
    assert found["status"]["message"] == "spec.template: Kubernetes refuses its pod: Pod night-0 is invalid"
    assert answered(review(manifest(), manifest()), refusal="x")["response"]["allowed"], "it exists already"


def test_admission_lets_an_invalid_job_be_labelled_and_deleted() -> None:
    bad = manifest(oops=1)
    assert answered(review({**bad, "metadata": {**bad["metadata"], "labels": {"a": "b"}}}, bad))["response"]["allowed"]
    assert answered(review(None, bad))["response"]["allowed"]


@pytest.mark.parametrize(("runs", "spec", "allowed"), [
    (1, {"processesPerNode": 4}, False),
    (0, {"processesPerNode": 4}, True),
    (1, {"suspend": True}, True),
])  # fmt: skip
def test_admission_refuses_another_template_while_pods_run(runs: int, spec: dict[str, Any], allowed: bool) -> None:
    old = {**manifest(), "status": {"nodes": runs}}
    assert answered(review({**manifest(**spec), "status": {"nodes": runs}}, old))["response"]["allowed"] is allowed
