"""What counts as a disagreement between Nodes, pods and instances, and what does not."""

from collections.abc import Mapping

from kubernetes_agreement import Node, Sample, disagreements

ALL = {"a": "Running", "b": "Running"}


def node(instance: str, *, ready: bool = True, uid: str = "") -> Node:
    return Node(name=f"hyperpod-{instance}", uid=uid or f"uid-{instance}", ready=ready, health="Schedulable")


def sample(
    at_s: float,
    nodes: tuple[Node, ...] = (node("a"), node("b")),
    *,
    before: Mapping[str, str] = ALL,
    after: Mapping[str, str] | None = None,
    places: Mapping[str, str] | None = None,
) -> Sample:
    return Sample(at_s=at_s, before=before, nodes=nodes, after=before if after is None else after, places=places or {})


def said(*samples: Sample, least: int = 0, most: int = 9) -> list[str]:
    return disagreements(samples, least=least, most=most)


def test_both_sides_saying_the_same_is_no_disagreement() -> None:
    assert said(sample(0), sample(1, places={"p": "hyperpod-a"})) == []


def test_a_ready_node_without_an_instance_is_one() -> None:
    assert said(sample(1, before={"a": "Running"})) == [
        "at 1.00 s the Node hyperpod-b is Ready and its instance is not listed"
    ]
    assert said(sample(1, before={**ALL, "b": "Failure"})) == [
        "at 1.00 s the Node hyperpod-b is Ready and its instance is Failure"
    ]
    assert said(sample(1, (node("a"), node("b", ready=False)), before={"a": "Running"})) == [
        "at 1.00 s the Node hyperpod-b is there and its instance is not"
    ]


def test_what_changes_between_two_questions_is_none() -> None:
    assert said(sample(1, before=ALL, after={"a": "Running"})) == []
    assert said(sample(1, (node("a"),), before=ALL, after={"a": "Running"})) == []
    assert said(sample(1, (node("a"),), before={**ALL, "b": "Pending"}, after=ALL)) == []


def test_a_running_instance_without_a_node_is_one() -> None:
    assert said(sample(1, (node("a"),))) == ["at 1.00 s the instance b is Running and has no Node"]
    assert said(sample(1, (node("a"),), before={**ALL, "b": "Pending"})) == []


def test_too_few_and_too_many_instances_are_one() -> None:
    assert said(sample(1), least=3, most=4) == ["at 1.00 s there are 2 instances, not 3 to 4"]
    assert said(sample(1), least=1, most=1) == ["at 1.00 s there are 2 instances, not 1 to 1"]


def test_a_name_is_given_once() -> None:
    assert said(sample(0), sample(1, (node("a"), node("b", uid="other")))) == [
        "at 1.00 s hyperpod-b is another Node of the same name"
    ]
    alone = sample(1, (node("a"),), before={"a": "Running"})
    assert said(sample(0), alone, sample(2)) == ["at 2.00 s the Node hyperpod-b came back"]


def test_a_pod_may_be_on_a_node_that_is_gone_until_it_is_collected() -> None:
    alone = {"nodes": (node("a"),), "before": {"a": "Running"}, "places": {"p": "hyperpod-b"}}
    there = sample(0, places={"p": "hyperpod-b"})

    assert said(there, sample(1, **alone), sample(60, **alone)) == []  # type: ignore[arg-type]
    assert said(there, sample(1, **alone), sample(200, **alone)) == [  # type: ignore[arg-type]
        "at 200.00 s p was still on hyperpod-b, which is gone"
    ]


def test_no_pod_is_placed_on_a_node_that_is_gone() -> None:
    alone = sample(1, (node("a"),), before={"a": "Running"})
    late = sample(2, (node("a"),), before={"a": "Running"}, places={"p": "hyperpod-b"})

    assert said(sample(0), alone, late) == ["at 2.00 s p was placed on hyperpod-b, which was gone"]


def test_a_node_of_another_name_is_one() -> None:
    other = Node(name="ip-10-1-0-4", uid="u", ready=True, health="")

    assert said(sample(1, (node("a"), node("b"), other))) == [
        "at 1.00 s the Node ip-10-1-0-4 has the name of no instance"
    ]
