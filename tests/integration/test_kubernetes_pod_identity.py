"""Pod Identity: SDKs in pods get real credentials of the embedded AWS, of roles that trust the service."""

import base64
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from eks_lab import ACCOUNT, PODS, REGION, EksLab

from holdfast.localcloud.kubernetes.access import PodIdentity, PodIdentityAgent, PodIdentityError
from holdfast_common import KubernetesError


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksLab]:
    made = EksLab(tmp_path_factory.mktemp("pods"))
    yield made
    made.stop()


def token(account: str, namespace: str = "ns", pod: str = "trainer-0") -> str:
    """As a service account's looks; the reviewer of these tests believes what it says."""
    parts = ({"alg": "none"}, {"sub": account, "ns": namespace, "pod": pod})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".x"


def reviewed(given: str) -> Mapping[str, Any]:
    text = given.split(".")[1]
    said = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    extra = {
        "authentication.kubernetes.io/pod-name": [said["pod"]],
        "authentication.kubernetes.io/pod-uid": [f"uid-{said['pod']}"],
    }
    user = {"username": f"system:serviceaccount:{said['ns']}:{said['sub']}", "extra": extra}
    return {"authenticated": True, "audiences": ["pods.eks.amazonaws.com"], "user": user}


@pytest.fixture(scope="module")
def identity(lab: EksLab) -> PodIdentity:
    return PodIdentity(cluster_name="lab", region=REGION, client=lab.client, review=reviewed)


def associate(lab: EksLab, account: str, role: str, **more: Any) -> None:
    where = {"clusterName": "lab", "namespace": "ns", "serviceAccount": account}
    lab.client("eks").create_pod_identity_association(**where, roleArn=role, **more)


def conditional(**tags: str) -> dict[str, Any]:
    statement = dict(PODS["Statement"][0])
    statement["Condition"] = {"StringEquals": {f"aws:RequestTag/{k.replace('_', '-')}": v for k, v in tags.items()}}
    return {"Version": "2012-10-17", "Statement": [statement]}


def as_client(lab: EksLab, made: Mapping[str, str], service: str) -> Any:
    return lab.client(
        service,
        aws_access_key_id=made["AccessKeyId"],
        aws_secret_access_key=made["SecretAccessKey"],
        aws_session_token=made["Token"],
    )


def refused(identity: PodIdentity, given: str) -> str:
    with pytest.raises(PodIdentityError) as caught:
        identity.credentials(given)
    return f"{caught.value.code} {caught.value.status} {caught.value.message}"


def test_a_pod_has_the_rights_of_its_role_and_no_others(lab: EksLab, identity: PodIdentity) -> None:
    associate(lab, "lister", lab.role("lister", trust=PODS, actions=("s3:ListAllMyBuckets",)))
    made = identity.credentials(token("lister"))
    arn = as_client(lab, made, "sts").get_caller_identity()["Arn"]

    assert made.keys() == {"AccessKeyId", "SecretAccessKey", "Token", "AccountId", "Expiration"}
    assert made["AccountId"] == ACCOUNT
    assert arn.startswith(f"arn:aws:sts::{ACCOUNT}:assumed-role/lister/eks-lab-trainer-0-")
    assert as_client(lab, made, "s3").list_buckets()["Buckets"] == []
    with pytest.raises(ClientError, match="AccessDenied"):
        as_client(lab, made, "s3").create_bucket(Bucket="x")


def test_a_pod_that_asks_again_gets_the_same_session(lab: EksLab, identity: PodIdentity) -> None:
    associate(lab, "again", lab.role("again", trust=PODS))
    first, second = identity.credentials(token("again")), identity.credentials(token("again"))
    other = identity.credentials(token("again", pod="trainer-1"))

    assert first == second
    assert other["AccessKeyId"] != first["AccessKeyId"]


def test_a_role_may_be_for_some_accounts_only(lab: EksLab, identity: PodIdentity) -> None:
    trust = conditional(kubernetes_namespace="ns", kubernetes_service_account="right", eks_cluster_name="lab")
    role = lab.role("for-some", trust=trust)
    associate(lab, "right", role)
    associate(lab, "wrong", role)

    assert identity.credentials(token("right"))["AccessKeyId"].startswith("ASIA")
    why = (
        "AccessDeniedException 400 Unauthorized Exception! EKS does not have permissions to assume the associated role."
    )
    assert refused(identity, token("wrong")) == why


def test_a_role_must_let_its_sessions_be_tagged(lab: EksLab, identity: PodIdentity) -> None:
    statement = {**PODS["Statement"][0], "Action": "sts:AssumeRole"}
    role = lab.role("untagged", trust={"Version": "2012-10-17", "Statement": [statement]})
    associate(lab, "tagged", role)
    associate(lab, "plain", role, disableSessionTags=True)

    assert refused(identity, token("tagged")).startswith("AccessDeniedException 400")
    assert identity.credentials(token("plain"))["AccessKeyId"].startswith("ASIA")


def test_a_role_that_no_longer_trusts_the_service_is_not_assumed(lab: EksLab, identity: PodIdentity) -> None:
    associate(lab, "lost", lab.role("lost", trust=PODS))
    other = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [other]})
    lab.client("iam").update_assume_role_policy(RoleName="lost", PolicyDocument=document)

    assert refused(identity, token("lost")).startswith("AccessDeniedException 400")
    lab.client("iam").delete_role(RoleName="lost")
    assert refused(identity, token("lost")).startswith("AccessDeniedException 400")


def test_policies_can_ask_for_the_sessions_tags(lab: EksLab, identity: PodIdentity) -> None:
    role = lab.role("by-tag", trust=PODS)
    allowed = "arn:aws:ssm:*:*:parameter/${aws:PrincipalTag/kubernetes-namespace}/*"
    statement = {"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": allowed}
    rights = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    lab.client("iam").put_role_policy(RoleName="by-tag", PolicyName="a", PolicyDocument=rights)
    for name in ("/ns/a", "/other/a"):
        lab.client("ssm").put_parameter(Name=name, Value="x", Type="String")
    associate(lab, "by-tag", role)
    ssm = as_client(lab, identity.credentials(token("by-tag")), "ssm")

    assert ssm.get_parameter(Name="/ns/a")["Parameter"]["Value"] == "x"
    with pytest.raises(ClientError, match="AccessDenied"):
        ssm.get_parameter(Name="/other/a")


def test_an_associations_policy_limits_the_role(lab: EksLab, identity: PodIdentity) -> None:
    role = lab.role("limited", trust=PODS, actions=("s3:*", "ssm:*"))
    limit = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:List*", "Resource": "*"}]}
    associate(lab, "limited", role, disableSessionTags=True, policy=json.dumps(limit))
    made = identity.credentials(token("limited"))

    assert as_client(lab, made, "s3").list_buckets()["Buckets"] == []
    with pytest.raises(ClientError, match="no session policy allows"):
        as_client(lab, made, "ssm").put_parameter(Name="/a", Value="x", Type="String")


def test_a_target_role_is_assumed_by_way_of_the_first(lab: EksLab, identity: PodIdentity) -> None:
    first = lab.role("first", trust=PODS, actions=("sts:AssumeRole", "sts:TagSession"))
    condition = {"StringEquals": {"aws:RequestTag/kubernetes-service-account": "chained"}}
    principal = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    actions = ["sts:AssumeRole", "sts:TagSession"]
    statement = {"Effect": "Allow", "Principal": principal, "Action": actions, "Condition": condition}
    target = lab.role("target", trust={"Version": "2012-10-17", "Statement": [statement]})
    associate(lab, "chained", first, targetRoleArn=target)
    associate(lab, "unchained", first, targetRoleArn=target)

    made = identity.credentials(token("chained"))
    assert ":assumed-role/target/" in as_client(lab, made, "sts").get_caller_identity()["Arn"]
    assert refused(identity, token("unchained")).startswith("AccessDeniedException 400")


def test_without_tags_a_target_role_is_told_who_asks_by_the_external_id(lab: EksLab, identity: PodIdentity) -> None:
    first = lab.role("first-plain", trust=PODS, actions=("sts:AssumeRole",))
    condition = {"StringEquals": {"sts:ExternalId": f"{REGION}/{ACCOUNT}/lab/ns/outside"}}
    principal = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", "Condition": condition}
    target = lab.role("target-plain", trust={"Version": "2012-10-17", "Statement": [statement]})
    associate(lab, "outside", first, targetRoleArn=target, disableSessionTags=True)
    associate(lab, "inside", first, targetRoleArn=target, disableSessionTags=True)

    assert identity.credentials(token("outside"))["AccessKeyId"].startswith("ASIA")
    assert refused(identity, token("inside")).startswith("AccessDeniedException 400")


def test_an_account_without_a_role_is_told_so(identity: PodIdentity) -> None:
    assert refused(identity, token("nobody")) == (
        "ResourceNotFoundException 400 No association found for ns/nobody in cluster lab"
    )


@pytest.mark.parametrize(
    "status", [{"authenticated": False}, {"authenticated": True, "user": {"username": "system:node:a"}}]
)
def test_rejects_a_token_that_the_cluster_does_not_vouch_for(lab: EksLab, status: dict[str, Any]) -> None:
    identity = PodIdentity(cluster_name="lab", region=REGION, client=lab.client, review=lambda _: status)
    assert refused(identity, token("lister")).startswith("InvalidTokenException 400")


def test_a_cluster_that_does_not_answer_is_said(lab: EksLab) -> None:
    def review(_: str) -> Mapping[str, Any]:
        raise KubernetesError(0, "connection refused")

    identity = PodIdentity(cluster_name="lab", region=REGION, client=lab.client, review=review)
    assert refused(identity, token("lister")).startswith("ServiceUnavailableException 503")


# -- the agent


@pytest.fixture(scope="module")
def agent(identity: PodIdentity) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    made = PodIdentityAgent(listener=listener, identity=identity)
    port = listener.getsockname()[1]
    made.start()
    yield f"http://127.0.0.1:{port}"
    made.stop()
    assert not made.worker.is_alive


def got(agent: str, path: str, **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(agent + path, headers={"Host": "169.254.170.23", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_the_agent_answers_what_sdks_expect(lab: EksLab, agent: str) -> None:
    associate(lab, "served", lab.role("served", trust=PODS))
    status, kind, body = got(agent, "/v1/credentials", Authorization=token("served"))

    assert (status, kind) == (200, "application/json")
    assert as_client(lab, json.loads(body), "sts").get_caller_identity()["Account"] == ACCOUNT


def test_the_agents_refusals_are_awss(lab: EksLab, agent: str) -> None:
    role = lab.role("served-never", trust=conditional(kubernetes_namespace="other"))
    associate(lab, "never", role)
    status, kind, body = got(agent, "/v1/credentials", Authorization=token("never"))

    assert (status, kind) == (400, "text/plain; charset=utf-8")
    why = (
        "(AccessDeniedException): Unauthorized Exception! EKS does not have permissions to assume the associated role."
    )
    assert body.partition("]: ")[2] == f"{why}, fault: client\n"
    assert got(agent, "/v1/credentials")[::2] == (400, "Service account token cannot be empty\n")
    assert got(agent, "/v1/credentials", Authorization="a.b.c", Host="evil.example")[0] == 403
    assert got(agent, "/latest/meta-data/", Authorization=token("served"))[0] == 404


def test_many_silent_connections_are_bounded(agent: str) -> None:
    port, before = int(agent.rpartition(":")[2]), threading.active_count()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
    try:
        silent[0].settimeout(5.0)
        assert silent[0].recv(1) == b"", "the oldest that has asked nothing makes room"
        assert threading.active_count() - before < 80, "the process has other threads, too"
    finally:
        for one in silent:
            one.close()
