"""The AWS CLI against a local EKS: kubeconfig, tokens, and who is let in.

Sources, read 2026-11-23: the AWS CLI's reference of `eks update-kubeconfig` and `eks get-token` and its source
(awscli/customizations/eks); EKS user guide, "Grant IAM users access to Kubernetes with EKS access entries".
"""

import base64
import datetime
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_http import Api
from kubernetes_things import pod, wait_ready
from local_eks import LocalEks, Person

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.root]


def eks(person: Person, *argv: str) -> Any:
    return json.loads(person.run("aws", "eks", *argv, "--output", "json"))


def test_a_kubeconfig_is_written_and_then_updated(local_eks: LocalEks, person: Callable[[str], Person]) -> None:
    one = person(local_eks.admin_role)
    again = one.run("aws", "eks", "update-kubeconfig", "--name", local_eks.eks_cluster)
    cluster = eks(one, "describe-cluster", "--name", local_eks.eks_cluster)["cluster"]
    written = json.loads(one.kubectl("config", "view", "--raw", "-o", "json"))
    call = written["users"][0]["user"]["exec"]

    assert again == f"Updated context {cluster['arn']} in {one.home}/.kube/config\n"
    assert written["current-context"] == cluster["arn"]
    assert written["clusters"][0]["cluster"] == {
        "server": cluster["endpoint"],
        "certificate-authority-data": cluster["certificateAuthority"]["data"],
    }
    assert call["command"] == "aws"
    assert call["args"] == [
        *("--region", local_eks.region, "eks", "get-token"),
        *("--cluster-name", local_eks.eks_cluster, "--output", "json"),
    ]


def test_the_cluster_is_described_as_one_of_eks(local_eks: LocalEks, admin: Person) -> None:
    named = ("--name", local_eks.eks_cluster)
    cluster = eks(admin, "describe-cluster", *named)["cluster"]
    pem = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()

    assert cluster["status"] == "ACTIVE"
    assert cluster["name"] in eks(admin, "list-clusters")["clusters"]
    assert urllib.parse.urlsplit(cluster["endpoint"]).scheme == "https"
    assert pem.startswith("-----BEGIN CERTIFICATE-----")
    assert admin.run("aws", "eks", "wait", "cluster-active", *named) == ""


def test_entries_and_their_policies_are_listed(local_eks: LocalEks, admin: Person) -> None:
    named = ("--cluster-name", local_eks.eks_cluster)
    listed = eks(admin, "list-access-entries", *named)["accessEntries"]
    policies = {
        role: [
            policy["policyArn"].rpartition("/")[2]
            for policy in eks(admin, "list-associated-access-policies", *named, "--principal-arn", role)[
                "associatedAccessPolicies"
            ]
        ]
        for role in (local_eks.admin_role, local_eks.view_role)
    }
    missing = admin.tried("aws", "eks", "describe-access-entry", *named, "--principal-arn", local_eks.other_role)

    assert {local_eks.admin_role, local_eks.view_role} <= set(listed)
    assert local_eks.other_role not in listed
    assert policies[local_eks.admin_role] == ["AmazonEKSClusterAdminPolicy"]
    assert policies[local_eks.view_role] == ["AmazonEKSViewPolicy"]
    assert missing.returncode in (254, 255)  # of version 2 and of version 1: the service answered with an error
    assert "(ResourceNotFoundException)" in missing.stderr


def test_addons_are_listed(local_eks: LocalEks, admin: Person) -> None:
    listed = eks(admin, "list-addons", "--cluster-name", local_eks.eks_cluster)["addons"]

    assert isinstance(listed, list)
    for name in listed:
        told = eks(admin, "describe-addon", "--cluster-name", local_eks.eks_cluster, "--addon-name", name)["addon"]
        assert told["status"] in ("ACTIVE", "CREATING", "DEGRADED")


def test_a_token_is_a_signed_question_who_one_is(local_eks: LocalEks, admin: Person) -> None:
    began = datetime.datetime.now(datetime.timezone.utc)
    found = eks(admin, "get-token", "--cluster-name", local_eks.eks_cluster)
    prefix, _, body = found["status"]["token"].partition(".")
    url = urllib.parse.urlsplit(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode())
    query = dict(urllib.parse.parse_qsl(url.query))
    left = datetime.datetime.fromisoformat(found["status"]["expirationTimestamp"].replace("Z", "+00:00")) - began

    assert (found["kind"], found["apiVersion"]) == ("ExecCredential", "client.authentication.k8s.io/v1beta1")
    assert prefix == "k8s-aws-v1"
    assert query["Action"] == "GetCallerIdentity"
    assert query["X-Amz-Expires"] == "60"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert datetime.timedelta(minutes=13) < left <= datetime.timedelta(minutes=14, seconds=1)


def test_a_principal_without_an_access_entry_is_not_let_in(
    local_eks: LocalEks, person: Callable[[str], Person]
) -> None:
    done = person(local_eks.other_role).tried_kubectl("get", "nodes")

    assert done.returncode == 1
    assert done.stderr.endswith("error: You must be logged in to the server (Unauthorized)\n") or (
        "the server has asked for the client to provide credentials" in done.stderr
    )


def test_one_who_may_look_cannot_delete_and_sees_no_secrets(
    local_eks: LocalEks, viewer: Person, api: Api, namespace: str
) -> None:
    here = ("-n", namespace)
    api.post(f"/api/v1/namespaces/{namespace}/pods", pod("web", image=local_eks.image))
    wait_ready(api, namespace, "web")
    seen = viewer.kubectl("get", *here, "pods", "-o", "name")
    delete = viewer.tried_kubectl("delete", *here, "pod", "web")
    secrets = viewer.tried_kubectl("get", *here, "secrets")

    assert seen == "pod/web\n"
    for done, verb, thing in ((delete, "delete", "pods"), (secrets, "list", "secrets")):
        assert done.returncode == 1
        assert "Error from server (Forbidden)" in done.stderr
        assert f'cannot {verb} resource "{thing}" in API group "" in the namespace "{namespace}"' in done.stderr
    assert api.get(f"/api/v1/namespaces/{namespace}/pods/web")["metadata"].get("deletionTimestamp") is None


def test_a_made_up_token_is_not_let_in(local_eks: LocalEks, admin: Person) -> None:
    for token in ("k8s-aws-v1.aGVsbG8", "k8s-aws-v1.", "hello"):
        # kubectl asks the exec plug-in of its kubeconfig unless it is told of no user at all
        done = admin.tried_kubectl("--kubeconfig=/dev/null", *server_of(admin), f"--token={token}", "get", "nodes")
        assert done.returncode == 1
        assert "Unauthorized" in done.stderr or "provide credentials" in done.stderr


def server_of(person: Person) -> list[str]:
    cluster = json.loads(person.kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]["cluster"]
    (person.home / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return [f"--server={cluster['server']}", f"--certificate-authority={person.home}/ca.crt"]
