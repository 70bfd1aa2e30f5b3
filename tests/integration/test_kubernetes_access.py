"""Who is let in to a local EKS cluster: tokens against the embedded AWS's STS, and its access entries and policies."""

import base64
import contextlib
import datetime
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eks_lab import ACCOUNT, PODS, EksLab
from kubernetes_pki import Pki
from tokens import encoded, signed_token

from holdfast.localcloud.home import Keys
from holdfast.localcloud.kubernetes.access import Access, AccessServer, Certificates
from holdfast.localcloud.kubernetes.older_server import Indexes

ROOT = f"arn:aws:iam::{ACCOUNT}:root"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksLab]:
    made = EksLab(tmp_path_factory.mktemp("access"))
    made.admit(ROOT, "AmazonEKSClusterAdminPolicy")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def access(lab: EksLab) -> Access:
    return Access(settings=lab.settings(), eks=lab.client("eks"))


def token(lab: EksLab, keys: Keys | None = None, **how: Any) -> str:
    return signed_token(keys or lab.aws.keys, endpoint=lab.aws.endpoint, cluster=how.pop("cluster", "lab"), **how)


def review(access: Access, given: str) -> dict[str, Any]:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": given}}
    answer = access.authenticate(asked)
    assert (answer["apiVersion"], answer["kind"]) == (asked["apiVersion"], asked["kind"])
    status: dict[str, Any] = answer["status"]
    return status


def may(access: Access, user: dict[str, Any], verb: str, resource: str, **more: str) -> bool:
    attributes = {"verb": verb, "resource": resource, **more}
    spec = {
        "resourceAttributes": attributes,
        "user": user["username"],
        **{k: user[k] for k in ("uid", "groups", "extra")},
    }
    allowed: bool = access.authorize({"apiVersion": "authorization.k8s.io/v1", "spec": spec})["status"]["allowed"]
    return allowed


# -- tokens


def test_the_owner_of_a_home_is_the_accounts_root_user(lab: EksLab, access: Access) -> None:
    told = lab.client("sts").get_caller_identity()
    user = review(access, token(lab))["user"]

    assert (told["Arn"], told["UserId"]) == (ROOT, ACCOUNT)
    assert user["username"] == ROOT
    assert user["uid"] == f"aws-iam-authenticator:{ACCOUNT}:{ACCOUNT}"
    assert may(access, user, "delete", "nodes")


def test_a_session_of_a_role_is_the_user_of_its_entry(lab: EksLab, access: Access) -> None:
    role = lab.role("viewer", path="/teams/a/")
    lab.admit(role, "AmazonEKSViewPolicy", namespaces=("dev-*",), kubernetesGroups=["viewers"])
    keys = lab.session(role, "mary@example.com")
    user = review(access, token(lab, keys))["user"]

    assert user["username"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/viewer/mary-example.com"
    assert user["groups"] == ["viewers"]
    assert user["extra"]["arn"] == [f"arn:aws:sts::{ACCOUNT}:assumed-role/viewer/mary@example.com"]
    assert user["extra"]["canonicalArn"] == [f"arn:aws:iam::{ACCOUNT}:role/viewer"]
    assert user["extra"]["sessionName"] == ["mary@example.com"]
    assert user["extra"]["accessKeyId"] == [keys.access_key_id]
    assert user["uid"] == f"aws-iam-authenticator:{ACCOUNT}:{user['extra']['principalId'][0]}"
    assert may(access, user, "get", "pods", namespace="dev-1")
    assert not may(access, user, "delete", "pods", namespace="dev-1")
    assert not may(access, user, "get", "pods", namespace="prod")
    assert not may(access, user, "get", "pods")


def test_a_user_name_of_the_teams_own_is_filled_in(lab: EksLab, access: Access) -> None:
    role = lab.role("named")
    lab.admit(role, username="{{AccountID}}:{{SessionNameRaw}}")
    assert review(access, token(lab, lab.session(role, "a@b")))["user"]["username"] == f"{ACCOUNT}:a@b"


def test_a_principal_without_an_entry_is_not_let_in(lab: EksLab, access: Access) -> None:
    role = lab.role("stranger")
    status = review(access, token(lab, lab.session(role)))

    assert status["authenticated"] is False
    assert "no access entry of lab" in status["error"]


def test_an_entry_counts_a_moment_after_it_is_made_and_no_longer_after_it_is_gone(lab: EksLab, access: Access) -> None:
    role, where = lab.role("coming"), {"clusterName": "lab"}
    keys = lab.session(role)
    other = Access(settings=lab.settings(), eks=lab.client("eks"))
    before = review(other, token(lab, keys))["authenticated"]
    lab.admit(role, "AmazonEKSViewPolicy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.localcloud.kubernetes.access.entries.FRESH_S", 0.0)
        other = Access(settings=lab.settings(), eks=lab.client("eks"))
        user = review(other, token(lab, keys))["user"]
        during = may(other, user, "get", "pods", namespace="a")
        lab.client("eks").delete_access_entry(principalArn=role, **where)
        after = may(other, user, "get", "pods", namespace="a")

    assert (before, during, after) == (False, True, False)


def test_a_token_holds_for_fifteen_minutes(lab: EksLab, access: Access) -> None:
    """The AWS CLI signs for 60 seconds and tells kubectl that the token lasts 14 minutes."""
    now = datetime.datetime.now(datetime.UTC)
    at = [now - datetime.timedelta(minutes=minutes) for minutes in (14, 16)]
    found = [review(access, token(lab, at=moment))["authenticated"] for moment in at]
    assert found == [True, False]


def test_a_token_for_another_cluster_is_refused_by_its_signature(lab: EksLab, access: Access) -> None:
    status = review(access, token(lab, cluster="other"))
    assert status["authenticated"] is False
    assert "SignatureDoesNotMatch" in status["error"]


@pytest.mark.parametrize("part", ["X-Amz-Signature=", "X-Amz-Date=20", "X-Amz-Credential=A", "Version=2011"])
def test_a_token_that_was_changed_is_refused(lab: EksLab, access: Access, part: str) -> None:
    text = token(lab).removeprefix("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    place = url.index(part) + len(part)
    changed = url[:place] + ("0" if url[place] != "0" else "1") + url[place + 1 :]
    assert review(access, encoded(changed))["authenticated"] is False


@pytest.mark.parametrize(
    "how",
    [
        {"header": "x-other-id"},
        {"expires_s": 3600},
        {"service": "s3", "method": "list_buckets"},
        {"method": "get_session_token"},
    ],
)
def test_another_request_is_no_token(lab: EksLab, access: Access, how: dict[str, Any]) -> None:
    assert review(access, token(lab, **how))["authenticated"] is False


def test_a_token_with_unknown_or_foreign_keys_is_refused(lab: EksLab, access: Access) -> None:
    stranger = Keys(access_key_id="AKIAXXXXXXXXXXXXXXXX", secret_access_key="x" * 40)
    assert "InvalidClientTokenId" in review(access, token(lab, stranger))["error"]


def test_the_request_goes_nowhere_else_whatever_host_is_signed(lab: EksLab) -> None:
    """A server of somebody else's is never asked, and a redirect of the right one is not followed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.2)
        port = other.getsockname()[1]
        access = Access(settings=lab.settings(), eks=lab.client("eks"))
        given = signed_token(lab.aws.keys, endpoint=f"http://localhost:{port}", cluster="lab")
        status = review(access, given)
        with pytest.raises(TimeoutError):
            other.accept()
    assert "unexpected hostname" in status["error"]


def test_nobody_is_let_in_while_the_embedded_aws_does_not_answer(lab: EksLab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = lab.settings()
    gone = type(settings)(**{**settings.__dict__, "endpoint": f"http://127.0.0.1:{port}"})
    status = review(Access(settings=gone, eks=lab.client("eks")), token(lab))
    assert (status["authenticated"], "STS does not answer" in status["error"]) == (False, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"uid": ""},
        {"uid": "someone"},
        {"extra": {}},
        {"extra": {"canonicalArn": []}},
        {"extra": {"canonicalArn": [ROOT, "x"]}},
        {"extra": {"canonicalArn": "x"}},
        {"extra": None},
    ],
)
def test_who_is_impersonated_has_no_policies(lab: EksLab, access: Access, changes: dict[str, Any]) -> None:
    user = review(access, token(lab))["user"]
    assert may(access, user, "get", "pods", namespace="a")
    assert not may(access, {**user, **changes}, "get", "pods", namespace="a")


# -- the server


@pytest.fixture(scope="module")
def served(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Pki]]:
    pki = Pki(tmp_path_factory.mktemp("pki"))
    certificate, key = pki.sign("access")
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    certificates = Certificates(authority=pki.authority, certificate=certificate, key=key, client_name="kube-apiserver")
    server = AccessServer(
        access=access, indexes=Indexes(pods=lambda _: []), listener=listener, certificates=certificates
    )
    server.start()
    yield port, pki
    server.stop()
    assert not server.worker.is_alive


def asked(port: int, authority: Path, client: tuple[Path, Path] | None, path: str, body: bytes) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=authority)
    if client is not None:
        context.load_cert_chain(*client)
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_the_api_server_is_answered(lab: EksLab, served: tuple[int, Pki]) -> None:
    port, pki = served
    client = pki.sign("kube-apiserver")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token(lab)}}
    status, answer = asked(port, pki.authority, client, "/authenticate", json.dumps(body).encode())

    assert (status, answer["status"]["user"]["username"]) == (200, ROOT)
    assert asked(port, pki.authority, client, "/authorize", b"{}")[1]["status"] == {"allowed": False}
    assert asked(port, pki.authority, client, "/pods", b"{}")[1]["response"] == {"uid": "", "allowed": True}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/elsewhere", b"{}", 404),
        ("/authorize", b"[]", 400),
        ("/authorize", b"{", 400),
        ("/authorize", b"[" * 9999, 400),
    ],
)
def test_what_is_no_review_is_refused(served: tuple[int, Pki], path: str, body: bytes, expected: int) -> None:
    port, pki = served
    assert asked(port, pki.authority, pki.sign("kube-apiserver"), path, body)[0] == expected


def test_another_certificate_of_the_cluster_is_told_nothing(served: tuple[int, Pki]) -> None:
    port, pki = served
    assert asked(port, pki.authority, pki.sign("kubelet"), "/authorize", b"{}")[0] == 403


def test_nobody_without_a_certificate_of_the_cluster_is_heard(served: tuple[int, Pki], tmp_path: Path) -> None:
    port, pki = served
    stranger = Pki(tmp_path).sign("kube-apiserver")
    for client in (None, stranger):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            asked(port, pki.authority, client, "/authorize", b"{}")


def test_a_review_without_end_and_silence_keep_nobody_else_waiting(lab: EksLab, served: tuple[int, Pki]) -> None:
    port, pki = served
    client = pki.sign("kube-apiserver")
    context = ssl.create_default_context(cafile=pki.authority)
    context.load_cert_chain(*client)
    silent = socket.create_connection(("127.0.0.1", port))
    with contextlib.closing(silent):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
        with contextlib.closing(connection):
            connection.putrequest("POST", "/authorize")
            connection.putheader("Content-Length", str(1 << 40))
            connection.endheaders()
            assert connection.getresponse().status == 413
        assert asked(port, pki.authority, client, "/authorize", b"{}")[0] == 200


def test_a_pod_is_patched_when_its_account_has_a_role(lab: EksLab, access: Access) -> None:
    lab.client("eks").create_pod_identity_association(
        clusterName="lab", namespace="ns", serviceAccount="trainer", roleArn=lab.role("of-pods", trust=PODS)
    )

    def patch(account: str) -> list[str]:
        pod = {"metadata": {"name": "a"}, "spec": {"serviceAccountName": account, "containers": [{"name": "c"}]}}
        request = {"uid": "7", "namespace": "ns", "object": pod}
        response = access.admit({"apiVersion": "admission.k8s.io/v1", "request": request})["response"]
        assert (response["uid"], response["allowed"], response["patchType"]) == ("7", True, "JSONPatch")
        return [step["path"] for step in json.loads(base64.b64decode(response["patch"]))]

    assert patch("trainer") == ["/spec/containers", "/spec/volumes", "/metadata/labels"]
    assert patch("default") == ["/spec/containers"]
