"""A real API server that asks for access as one of a local EKS cluster does: who gets in, and what for."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from eks_lab import ACCOUNT, PODS, REGION, EksLab
from kubernetes_pki import Pki
from tokens import signed_token

from holdfast.localcloud.home import Keys
from holdfast.localcloud.kubernetes.access import (
    Access,
    AccessServer,
    ApiServerSide,
    Certificates,
    PodIdentity,
    PodIdentityError,
    pod_webhook,
)
from holdfast.localcloud.kubernetes.older_server import COMPLETIONS_LABEL, Indexes

pytestmark = pytest.mark.kubernetes
PODS_OF_DEV = "/api/v1/namespaces/dev/pods"


class Cluster:
    """The API server of `lab`, the access server beside it, and the embedded AWS behind that."""

    def __init__(self, directory: Path, binaries: Any) -> None:
        self.lab = EksLab(directory / "home")
        self.pki = Pki(directory / "pki")
        listener = socket.create_server(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        certificate, key = self.pki.sign("access")
        access = Access(settings=self.lab.settings(), eks=self.lab.client("eks"))
        self.server = AccessServer(
            access=access,
            indexes=Indexes(pods=lambda namespace: self.pods(namespace)),
            listener=listener,
            certificates=Certificates(
                authority=self.pki.authority, certificate=certificate, key=key, client_name="kube-apiserver"
            ),
        )
        self.server.start()
        certificate, key = self.pki.sign("kube-apiserver")
        side = ApiServerSide(
            address=address, authority=self.pki.authority, certificate=certificate, key=key, directory=directory
        )
        for name, content in side.documents().items():
            (directory / name).write_text(content)
        self.api = ApiServer(binaries=binaries, directory=directory, pki=self.pki, flags=side.flags())
        webhook = pod_webhook(address=address, authority_pem=self.pki.authority.read_bytes())
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        assert self.api.request("POST", path, webhook)[0] == 201
        for name in ("dev", "prod"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            assert self.api.request("POST", "/api/v1/namespaces", body)[0] == 201
        self.account("dev", "default")

    def stop(self) -> None:
        self.api.stop()
        self.server.stop()
        self.lab.stop()

    def account(self, namespace: str, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        assert self.api.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", body)[0] == 201

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        return list(self.api.request("GET", f"/api/v1/namespaces/{namespace}/pods")[1]["items"])

    def token(self, keys: Keys | None = None) -> str:
        return signed_token(keys or self.lab.aws.keys, endpoint=self.lab.aws.endpoint, cluster="lab")

    def pod(self, name: str, account: str = "default") -> dict[str, Any]:
        spec = {
            "serviceAccountName": account,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "x"}],
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), request.getfixturevalue("binaries"))
    yield made
    made.stop()


def test_a_role_with_the_view_policy_reads_and_changes_nothing(cluster: Cluster) -> None:
    role = cluster.lab.role("viewer")
    cluster.lab.admit(role, "AmazonEKSViewPolicy", namespaces=("dev",))
    token = cluster.token(cluster.lab.session(role))
    assert cluster.api.request("POST", PODS_OF_DEV, cluster.pod("seen"))[0] == 201

    assert cluster.api.request("GET", f"{PODS_OF_DEV}/seen", token=token)[0] == 200
    status, told = cluster.api.request("DELETE", f"{PODS_OF_DEV}/seen", token=token)
    assert status == 403
    user = f"arn:aws:sts::{ACCOUNT}:assumed-role/viewer/mary"
    why = f'User "{user}" cannot delete resource "pods" in API group "" in the namespace "dev"'
    assert told["message"] == f'pods "seen" is forbidden: {why}'
    assert cluster.api.request("GET", "/api/v1/namespaces/prod/pods", token=token)[0] == 403
    assert cluster.api.request("GET", "/api/v1/nodes", token=token)[0] == 403


def test_who_has_no_entry_is_unauthorized(cluster: Cluster) -> None:
    token = cluster.token(cluster.lab.session(cluster.lab.role("stranger")))
    assert cluster.api.request("GET", PODS_OF_DEV, token=token)[0] == 401
    assert cluster.api.request("GET", PODS_OF_DEV, token="k8s-aws-v1.x")[0] == 401
    assert cluster.api.request("GET", PODS_OF_DEV, token="x" * 5000)[0] == 401


def test_groups_of_an_entry_are_bound_by_rbac(cluster: Cluster) -> None:
    role = cluster.lab.role("grouped")
    cluster.lab.admit(role, kubernetesGroups=["readers"])
    token = cluster.token(cluster.lab.session(role))
    before = cluster.api.request("GET", "/api/v1/namespaces/prod/pods", token=token)[0]
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "readers"}}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    binding = {
        **rbac,
        "kind": "RoleBinding",
        "subjects": [{"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"},
    }
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/prod"
    assert cluster.api.request("POST", f"{path}/roles", {**rbac, "kind": "Role", "rules": [rule]})[0] == 201
    assert cluster.api.request("POST", f"{path}/rolebindings", binding)[0] == 201
    status = before
    for _ in range(100):
        status = cluster.api.request("GET", "/api/v1/namespaces/prod/pods", token=token)[0]
        if status == 200:
            break
        time.sleep(0.1)
    assert (before, status) == (403, 200)


def test_an_administrator_who_impersonates_has_no_policies(cluster: Cluster) -> None:
    role = cluster.lab.role("admin")
    cluster.lab.admit(role, "AmazonEKSClusterAdminPolicy")
    token = cluster.token(cluster.lab.session(role))
    extra = {"Impersonate-User": "somebody", "Impersonate-Extra-canonicalarn": role}

    assert cluster.api.request("GET", "/api/v1/nodes", token=token)[0] == 200
    assert cluster.api.request("GET", "/metrics", token=token)[0] == 200
    assert cluster.api.request("GET", "/api/v1/nodes", token=token, **extra)[0] == 403


def test_what_is_taken_away_is_gone_within_seconds(cluster: Cluster) -> None:
    role = cluster.lab.role("leaving")
    cluster.lab.admit(role, "AmazonEKSViewPolicy")
    token = cluster.token(cluster.lab.session(role))
    assert cluster.api.request("GET", PODS_OF_DEV, token=token)[0] == 200
    cluster.lab.client("eks").delete_access_entry(clusterName="lab", principalArn=role)
    began, status = time.monotonic(), 200
    while time.monotonic() < began + 30 and status != 401:
        time.sleep(0.2)
        status = cluster.api.request("GET", PODS_OF_DEV, token=token)[0]
    assert status == 401


def test_a_pod_gets_the_credentials_of_its_accounts_role(cluster: Cluster) -> None:
    cluster.account("dev", "trainer")
    role = cluster.lab.role("trainer", trust=PODS)
    cluster.lab.client("eks").create_pod_identity_association(
        clusterName="lab", namespace="dev", serviceAccount="trainer", roleArn=role
    )
    status, pod = cluster.api.request("POST", PODS_OF_DEV, cluster.pod("trainer-0", "trainer"))
    assert status == 201
    env = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    assert env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] == "http://169.254.170.23/v1/credentials"
    assert env["AWS_ENDPOINT_URL"] == "http://10.1.0.1:5710"
    source = pod["spec"]["volumes"][0]["projected"]
    assert source["defaultMode"] == 420
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": [source["sources"][0]["serviceAccountToken"]["audience"]],
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "trainer-0", "uid": pod["metadata"]["uid"]},
        },
    }
    path = "/api/v1/namespaces/dev/serviceaccounts/trainer/token"
    token = cluster.api.request("POST", path, asked)[1]["status"]["token"]
    plain = {**asked, "spec": {**asked["spec"], "audiences": []}}
    other = cluster.api.request("POST", path, plain)[1]["status"]["token"]

    def reviewed(given: str) -> Mapping[str, Any]:
        spec = {"token": given, "audiences": ["pods.eks.amazonaws.com"]}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        told: Mapping[str, Any] = cluster.api.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)[1]
        return told["status"]

    identity = PodIdentity(cluster_name="lab", region=REGION, client=cluster.lab.client, review=reviewed)
    made = identity.credentials(token)
    sts = cluster.lab.client(
        "sts",
        aws_access_key_id=made["AccessKeyId"],
        aws_secret_access_key=made["SecretAccessKey"],
        aws_session_token=made["Token"],
    )
    assert ":assumed-role/trainer/eks-lab-trainer-0-" in sts.get_caller_identity()["Arn"]
    with pytest.raises(PodIdentityError, match="not valid"):
        identity.credentials(other)
    assert cluster.api.request("DELETE", f"{PODS_OF_DEV}/trainer-0?gracePeriodSeconds=0")[0] == 200
    assert refused_within(30, identity, token)


def refused_within(seconds: float, identity: PodIdentity, token: str) -> bool:
    """The API server keeps a token that was good for ten seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            identity.credentials(token)
        except PodIdentityError as error:
            return error.code == "InvalidTokenException"
        time.sleep(0.5)
    return False


@pytest.mark.e2e
@pytest.mark.skipif(not (shutil.which("kubectl") and shutil.which("aws")), reason="needs kubectl and the AWS CLI")
def test_kubectl_logs_in_by_the_aws_cli(cluster: Cluster, tmp_path: Path) -> None:
    role = cluster.lab.role("by-cli")
    cluster.lab.admit(role, "AmazonEKSViewPolicy")
    cluster.api.request("POST", PODS_OF_DEV, cluster.pod("by-cli"))
    keys = cluster.lab.session(role)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ENDPOINT_URL": cluster.lab.aws.endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": keys.access_key_id,
        "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
        "AWS_SESSION_TOKEN": keys.session_token,
        "KUBECONFIG": str(tmp_path / "config"),
    }
    login = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [
            {"name": "lab", "cluster": {"server": cluster.api.url, "certificate-authority": str(cluster.pki.authority)}}
        ],
        "users": [{"name": "lab", "user": {"exec": {**login, "args": ["eks", "get-token", "--cluster-name", "lab"]}}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))

    def kubectl(*argv: str) -> tuple[int, str]:
        done = subprocess.run(
            ["kubectl", *argv], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stdout + done.stderr

    assert kubectl("get", "pod", "by-cli", "-n", "dev", "-o", "name") == (0, "pod/by-cli\n")
    status, said = kubectl("delete", "pod", "by-cli", "-n", "dev")
    assert (status, "Error from server (Forbidden)" in said) == (1, True)
    cluster.lab.client("eks").delete_access_entry(clusterName="lab", principalArn=role)
    until = time.monotonic() + 30
    while time.monotonic() < until and "Unauthorized" not in said and "logged in" not in said:
        said = kubectl("get", "pods", "-n", "dev")[1]
        time.sleep(0.5)
    assert "logged in" in said


def test_pods_of_an_indexed_job_that_are_created_at_once_get_an_index_each(cluster: Cluster) -> None:
    pod = cluster.pod("")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "ddp", "uid": "7", "controller": True}
    pod["metadata"] = {
        "generateName": "ddp-",
        "labels": {COMPLETIONS_LABEL: "4"},
        "ownerReferences": [owner],
    }
    assert cluster.api.request("POST", f"{PODS_OF_DEV}?dryRun=All", pod)[0] == 201
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: cluster.api.request("POST", PODS_OF_DEV, pod), range(5)))

    (refused,) = [told for status, told in answers if status != 201]
    assert "each of the 4 of Job ddp has a pod" in refused["message"]
    made = sorted((told for status, told in answers if status == 201), key=lambda one: one["metadata"]["name"])
    assert [one["spec"]["hostname"] for one in made] == [f"ddp-{number}" for number in range(4)]
    for number, one in enumerate(made):
        assert one["metadata"]["name"].startswith(f"ddp-{number}-")
        assert {"name": "JOB_COMPLETION_INDEX", "value": str(number)} in one["spec"]["containers"][0]["env"]
