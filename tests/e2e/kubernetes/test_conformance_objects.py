"""What operators and clients take for granted of the Kubernetes API: objects, watches, patches, owners, rights.

Each behaviour is a row of docs/reference/kubernetes-api.md, with its source; everything is asked by plain HTTPS.
"""

import itertools
import threading
from typing import Any

import pytest
from kubernetes_http import APPLY, JSON_PATCH, STRATEGIC, Api, Refused
from kubernetes_things import deployment, pods_path
from local_eks import LocalEks, eventually_true

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes]


def maps(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def test_a_watch_from_a_list_sees_every_change_in_order(api: Api, namespace: str) -> None:
    since = api.get(maps(namespace))["metadata"]["resourceVersion"]
    seen: list[tuple[str, str]] = []
    begun = threading.Event()

    def watch() -> None:
        events = api.watch(maps(namespace), within_s=20, resourceVersion=since, fieldSelector="metadata.name!=other")
        for event in events:
            begun.set()
            if event["object"]["metadata"]["name"] == "watched":
                seen.append((event["type"], event["object"]["data"].get("a")))
                if event["type"] == "DELETED":
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    api.post(maps(namespace), config_map("watched"))
    for value in "23":
        api.patch(maps(namespace, "watched"), {"data": {"a": value}})
    api.delete(maps(namespace, "watched"))
    watcher.join(30)

    assert begun.is_set()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("MODIFIED", "3"), ("DELETED", "3")]


def test_a_watch_ends_when_it_was_asked_to(api: Api, namespace: str) -> None:
    since = api.get(maps(namespace))["metadata"]["resourceVersion"]
    events = list(api.watch(maps(namespace), within_s=1, resourceVersion=since, labelSelector="app=nobody"))

    assert [event for event in events if event["type"] != "BOOKMARK"] == []


def test_a_finalizer_holds_what_was_deleted(api: Api, namespace: str) -> None:
    api.post(maps(namespace), config_map("held", finalizers=["holdfast.dev/test"]))
    api.delete(maps(namespace, "held"))
    held = api.get(maps(namespace, "held"))
    with pytest.raises(Refused) as late:
        api.patch(maps(namespace, "held"), {"metadata": {"finalizers": ["holdfast.dev/test", "holdfast.dev/more"]}})
    api.patch(maps(namespace, "held"), {"metadata": {"finalizers": None}})

    assert held["metadata"]["deletionTimestamp"]
    assert late.value.code == 422  # no finalizer is added to what is being deleted
    assert api.find(maps(namespace, "held")) is None


def test_two_writers_do_not_overwrite_each_other(api: Api, namespace: str) -> None:
    first = api.post(maps(namespace), config_map("shared"))
    api.put(maps(namespace, "shared"), {**first, "data": {"a": "2"}})
    with pytest.raises(Refused) as second:
        api.put(maps(namespace, "shared"), {**first, "data": {"a": "3"}})
    with pytest.raises(Refused) as again:
        api.post(maps(namespace), config_map("shared"))

    assert (second.value.code, second.value.reason) == (409, "Conflict")
    assert (again.value.code, again.value.reason) == (409, "AlreadyExists")
    assert api.get(maps(namespace, "shared"))["data"] == {"a": "2"}


def test_names_are_generated(api: Api, namespace: str) -> None:
    made = [api.post(maps(namespace), {"metadata": {"generateName": "some-"}})["metadata"]["name"] for _ in range(2)]

    assert made[0] != made[1]
    assert all(name.startswith("some-") and len(name) == len("some-") + 5 for name in made)


def test_dependents_go_with_their_owner(api: Api, namespace: str) -> None:
    owner = api.post(maps(namespace), config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    api.post(maps(namespace), config_map("dependent", ownerReferences=[reference]))
    api.post(maps(namespace), config_map("orphan", ownerReferences=[{**reference, "uid": "0-of-nobody"}]))
    api.delete(maps(namespace, "owner"))

    eventually_true(lambda: api.find(maps(namespace, "dependent")) is None, "the dependent's end")
    eventually_true(lambda: api.find(maps(namespace, "orphan")) is None, "the end of one whose owner never was")


def test_an_owner_waits_for_its_dependents_when_it_is_deleted_in_the_foreground(api: Api, namespace: str) -> None:
    owner = api.post(maps(namespace), config_map("owner"))
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    reference = {**owned, "blockOwnerDeletion": True}
    api.post(maps(namespace), config_map("dependent", ownerReferences=[reference], finalizers=["holdfast.dev/test"]))
    api.delete(maps(namespace, "owner"), {"propagationPolicy": "Foreground"})
    eventually_true(
        lambda: api.get(maps(namespace, "dependent"))["metadata"].get("deletionTimestamp"), "the dependent's deletion"
    )
    waiting = api.get(maps(namespace, "owner"))["metadata"]
    api.patch(maps(namespace, "dependent"), {"metadata": {"finalizers": None}})

    assert waiting["finalizers"] == ["foregroundDeletion"]
    eventually_true(lambda: api.find(maps(namespace, "owner")) is None, "the owner's end")


def test_dependents_are_left_when_that_is_asked_for(api: Api, local_eks: LocalEks, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    sets = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    api.post(path, deployment("web", image=local_eks.image, replicas=0))
    eventually_true(lambda: api.get(sets)["items"], "a replica set")
    api.delete(f"{path}/web", {"propagationPolicy": "Orphan"})
    eventually_true(lambda: api.find(f"{path}/web") is None, "the deployment's end")

    [left] = api.get(sets)["items"]
    assert "ownerReferences" not in left["metadata"]


def test_appliers_own_fields_and_collide_over_them(api: Api, namespace: str) -> None:
    path = maps(namespace, "applied")
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
    api.patch(path, {**head, "data": {"a": "1", "b": "1"}}, kind=APPLY, fieldManager="one")
    api.patch(path, {**head, "data": {"c": "2"}}, kind=APPLY, fieldManager="two")
    with pytest.raises(Refused) as collision:
        api.patch(path, {**head, "data": {"a": "2", "c": "2"}}, kind=APPLY, fieldManager="two")
    api.patch(path, {**head, "data": {"a": "2", "c": "2"}}, kind=APPLY, fieldManager="two", force="true")
    after = api.patch(path, {**head, "data": {"b": "1"}}, kind=APPLY, fieldManager="one")

    assert (collision.value.code, collision.value.reason) == (409, "Conflict")
    assert 'conflict with "one": .data.a' in str(collision.value)
    assert after["data"] == {"a": "2", "b": "1", "c": "2"}
    gone = api.patch(path, {**head, "data": {"a": "2"}}, kind=APPLY, fieldManager="two")
    assert gone["data"] == {"a": "2", "b": "1"}  # what its only owner no longer names is removed
    assert {(one["manager"], one["operation"]) for one in gone["metadata"]["managedFields"]} == {
        ("one", "Apply"),
        ("two", "Apply"),
    }


def test_patches_of_each_kind_do_what_they_say(api: Api, local_eks: LocalEks, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(path, deployment("web", image=local_eks.image, replicas=0))
    beside = {"spec": {"template": {"spec": {"containers": [{"name": "beside", "image": "x"}]}}}}
    merged = api.patch(f"{path}/web", beside, kind=STRATEGIC)
    replaced = api.patch(f"{path}/web", beside)
    operations = [
        {"op": "test", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/replicas", "value": 1},
    ]
    stepped = api.patch(f"{path}/web", operations, kind=JSON_PATCH)
    with pytest.raises(Refused) as failed:
        api.patch(f"{path}/web", operations, kind=JSON_PATCH)

    def names(thing: Any) -> list[str]:
        return [one["name"] for one in thing["spec"]["template"]["spec"]["containers"]]

    assert sorted(names(merged)) == ["beside", "main"]  # lists of containers are merged by name
    assert names(replaced) == ["beside"]  # a merge patch knows no keys of lists
    assert stepped["spec"]["replicas"] == 1
    assert failed.value.code == 422


def test_lists_are_chosen_by_labels_and_fields(api: Api, namespace: str) -> None:
    for name, colour in (("one", "red"), ("two", "blue"), ("three", "green")):
        api.post(maps(namespace), config_map(name, labels={"colour": colour}))

    def chosen(**query: str) -> set[str]:
        return {one["metadata"]["name"] for one in api.get(maps(namespace), **query)["items"]} & {"one", "two", "three"}

    assert chosen(labelSelector="colour=red") == {"one"}
    assert chosen(labelSelector="colour in (red,blue)") == {"one", "two"}
    assert chosen(labelSelector="colour notin (red)") == {"two", "three"}
    assert chosen(labelSelector="colour") == {"one", "two", "three"}
    assert chosen(labelSelector="!colour") == set()
    assert chosen(fieldSelector="metadata.name=two") == {"two"}
    with pytest.raises(Refused) as unknown:
        chosen(fieldSelector="data.a=1")
    assert unknown.value.code == 400


def test_long_lists_come_in_parts(api: Api, namespace: str) -> None:
    for number in range(5):
        api.post(maps(namespace), config_map(f"part-{number}", labels={"part": "yes"}))
    parts, go_on = [], dict[str, str]()
    for _ in itertools.count():
        part = api.get(maps(namespace), limit="2", labelSelector="part", **go_on)
        parts.append([one["metadata"]["name"] for one in part["items"]])
        if not part["metadata"].get("continue"):
            break
        go_on = {"continue": part["metadata"]["continue"]}

    assert parts == [["part-0", "part-1"], ["part-2", "part-3"], ["part-4"]]


def test_a_dry_run_changes_nothing(api: Api, namespace: str) -> None:
    made = api.post(maps(namespace), config_map("dry"), dryRun="All")

    assert made["metadata"]["uid"]
    assert api.find(maps(namespace, "dry")) is None


def test_a_lease_has_one_holder(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    taken = api.post(path, {"metadata": {"name": "leader"}, "spec": spec})
    renewed = api.put(f"{path}/leader", {**taken, "spec": {**spec, "renewTime": "2026-01-01T00:00:05.000000Z"}})
    with pytest.raises(Refused) as late:
        api.put(f"{path}/leader", {**taken, "spec": {**spec, "holderIdentity": "two"}})

    assert late.value.code == 409
    assert api.get(f"{path}/leader")["spec"] == renewed["spec"]


def test_events_are_written_and_found_by_what_they_are_about(api: Api, namespace: str) -> None:
    about = {"kind": "ConfigMap", "namespace": namespace, "name": "thing", "apiVersion": "v1"}
    api.post(
        f"/api/v1/namespaces/{namespace}/events",
        {"metadata": {"name": "told"}, "involvedObject": about, "reason": "Told", "message": "m", "type": "Normal"},
    )
    found = api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector="involvedObject.name=thing,reason=Told")
    newer = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")

    assert [one["message"] for one in found["items"]] == ["m"]
    assert "told" in [one["metadata"]["name"] for one in newer["items"]]


def test_a_namespace_takes_everything_with_it(api: Api, local_eks: LocalEks) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": "test-short-lived"}})
    api.post(maps("test-short-lived"), config_map("inside"))
    api.delete("/api/v1/namespaces/test-short-lived")
    with pytest.raises(Refused) as late:
        api.post(maps("test-short-lived"), config_map("late"))

    assert late.value.code in (403, 404)
    eventually_true(lambda: api.find("/api/v1/namespaces/test-short-lived") is None, "the namespace's end")


def test_rights_are_what_roles_say(api: Api, namespace: str) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    api.post(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    api.post(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        },
    )
    asked = api.post(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/reader/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
    )
    reader = Api(url=api.url, authority=api.authority, token=lambda: str(asked["status"]["token"]))

    def may(verb: str, resource: str) -> bool:
        attributes = {"namespace": namespace, "verb": verb, "resource": resource}
        review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
        return bool(reader.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)["status"]["allowed"])

    eventually_true(lambda: may("list", "pods"), "the binding")
    assert reader.get(pods_path(namespace))["kind"] == "PodList"
    assert not may("delete", "pods")
    with pytest.raises(Refused) as refused:
        reader.get(maps(namespace))
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")


def test_a_token_says_whose_it_is_and_for_whom(api: Api, namespace: str) -> None:
    spec = {"audiences": ["holdfast.test"], "expirationSeconds": 600}
    asked = api.post(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )["status"]

    def review(*audiences: str) -> Any:
        body = {"kind": "TokenReview", "spec": {"token": asked["token"], "audiences": list(audiences)}}
        return api.post("/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]

    known = review("holdfast.test")
    assert known["authenticated"]
    assert known["user"]["username"] == f"system:serviceaccount:{namespace}:default"
    assert known["audiences"] == ["holdfast.test"]
    assert not review("somebody.else").get("authenticated")
