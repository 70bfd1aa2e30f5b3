"""Pod Identity: what is added to pods, which requests the agent takes, and whose a token is."""

import base64
import json
from typing import Any

import pytest

from holdfast.localcloud.kubernetes.access import Additions, Pod, patch_of, pod_of, refusal_of_request, session_name

WITH_ROLE = Additions(region="us-west-2", endpoint="http://10.1.0.1:5710", pod_identity=True)
WITHOUT = Additions(region="us-west-2", endpoint="http://10.1.0.1:5710", pod_identity=False)
MOUNT = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "x"}], **spec}}


def patched(given: dict[str, Any], additions: Additions) -> dict[str, Any]:
    """The pod after its patch, by the few operations that there are."""
    result: dict[str, Any] = json.loads(json.dumps(given))
    for step in patch_of(given, additions):
        assert step["op"] == "add"
        *way, last = [part.replace("~1", "/") for part in step["path"].split("/")[1:]]
        place: Any = result
        for part in way:
            place = place[part]
        if isinstance(place, list):
            place.insert(int(last), step["value"])
        else:
            place[last] = step["value"]
    return result


def env(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container.get("env", [])}


def test_a_pod_whose_account_has_a_role_gets_what_eks_adds() -> None:
    found = patched(pod(), WITH_ROLE)

    assert env(found["spec"]["containers"][0]) == {
        "AWS_STS_REGIONAL_ENDPOINTS": "regional",
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_REGION": "us-west-2",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{MOUNT}/eks-pod-identity-token",
        "AWS_ENDPOINT_URL": "http://10.1.0.1:5710",
    }
    mount = {"name": "eks-pod-identity-token", "readOnly": True, "mountPath": MOUNT}
    assert found["spec"]["containers"][0]["volumeMounts"] == [mount]
    token = {"audience": "pods.eks.amazonaws.com", "expirationSeconds": 86400, "path": "eks-pod-identity-token"}
    source = {"name": "eks-pod-identity-token", "projected": {"sources": [{"serviceAccountToken": token}]}}
    assert found["spec"]["volumes"] == [source]
    assert found["metadata"]["labels"] == {"eks.amazonaws.com/pod-identity": "enabled"}


def test_a_pod_without_a_role_is_told_of_the_embedded_aws_and_nothing_else() -> None:
    found = patched(pod(), WITHOUT)
    assert env(found["spec"]["containers"][0]) == {"AWS_ENDPOINT_URL": "http://10.1.0.1:5710"}
    assert found.keys() == pod().keys()
    assert "volumes" not in found["spec"]


def test_what_a_container_sets_itself_stays() -> None:
    own = {
        "name": "main",
        "env": [{"name": "AWS_REGION", "value": "eu-west-1"}, {"name": "AWS_ENDPOINT_URL", "value": "http://x"}],
    }
    found = env(patched(pod(containers=[own]), WITH_ROLE)["spec"]["containers"][0])

    assert (found["AWS_REGION"], found["AWS_ENDPOINT_URL"]) == ("eu-west-1", "http://x")
    assert "AWS_DEFAULT_REGION" not in found
    assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" in found


def test_init_containers_get_it_and_volumes_stay() -> None:
    given = pod(initContainers=[{"name": "init"}], volumes=[{"name": "data", "emptyDir": {}}])
    found = patched(given, WITH_ROLE)["spec"]

    assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" in env(found["initContainers"][0])
    assert [each["name"] for each in found["volumes"]] == ["eks-pod-identity-token", "data"]


@pytest.mark.parametrize(("said", "seconds"), [("7200", 7200), ("1", 600), ("soon", 86400), ("-5", 86400)])
def test_annotations_skip_containers_and_set_the_tokens_life(said: str, seconds: int) -> None:
    given = pod(containers=[{"name": "main"}, {"name": "side"}])
    notes = {"eks.amazonaws.com/skip-containers": "side", "eks.amazonaws.com/token-expiration": said}
    given["metadata"]["annotations"] = notes
    found = patched(given, WITH_ROLE)["spec"]

    assert found["containers"][1] == {"name": "side"}
    assert found["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == seconds


def test_nothing_is_added_twice() -> None:
    once = patched(pod(), WITH_ROLE)
    assert patched(once, WITH_ROLE) == once


def test_a_mirror_of_a_static_pod_is_left_alone() -> None:
    given = pod()
    given["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    assert patch_of(given, WITH_ROLE) == []


@pytest.mark.parametrize(
    "given", [{}, {"spec": None}, {"spec": {"containers": "x"}}, {"metadata": [], "spec": {"containers": [1]}}]
)
def test_a_pod_that_is_none_is_no_error(given: dict[str, Any]) -> None:
    assert isinstance(patch_of(given, WITHOUT), list)


def jwt(**claims: Any) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*parts, b"signature"))


@pytest.mark.parametrize(
    ("host", "token", "expected"),
    [
        ("169.254.170.23", jwt(exp=200), None),
        ("169.254.170.23:80", jwt(exp=200), None),
        ("[fd00:ec2::23]:80", jwt(), None),
        ("[fd00:ec2::23]", jwt(), None),
        ("evil.example", jwt(), ("Access Denied. Called agent through invalid address", 403)),
        ("127.0.0.1:24432", jwt(), ("Access Denied. Called agent through invalid address", 403)),
        ("", jwt(), ("Access Denied. Called agent through invalid address", 403)),
        ("169.254.170.23", "", ("Service account token cannot be empty", 400)),
        ("169.254.170.23", "a.b", ("Service account token cannot be parsed", 400)),
        ("169.254.170.23", "a.b.c", ("Service account token cannot be parsed", 400)),
        ("169.254.170.23", "x" * 20000 + ".b.c", ("Service account token cannot be parsed", 400)),
        ("169.254.170.23", jwt(exp=99), ("Service account token failed basic claim validations", 400)),
        ("169.254.170.23", jwt(nbf=101), ("Service account token failed basic claim validations", 400)),
    ],
)
def test_the_agent_refuses_as_awss_does(host: str, token: str, expected: tuple[str, int] | None) -> None:
    found = refusal_of_request(host=host, token=token, now=100.0)
    if expected is None or found is None:
        assert found == expected
    else:
        assert (found[0].startswith(expected[0]), found[1]) == (True, expected[1])


def status(**changes: Any) -> dict[str, Any]:
    extra = {"authentication.kubernetes.io/pod-name": ["a-0"], "authentication.kubernetes.io/pod-uid": ["u"]}
    user = {"username": "system:serviceaccount:ns:sa", "extra": extra}
    return {"authenticated": True, "audiences": ["pods.eks.amazonaws.com"], "user": user, **changes}


def test_a_token_of_a_pod_names_its_account() -> None:
    assert pod_of(status()) == Pod(namespace="ns", service_account="sa", name="a-0", uid="u")


@pytest.mark.parametrize(
    "changes",
    [
        {"authenticated": False},
        {"authenticated": "yes"},
        {"audiences": ["https://kubernetes.default.svc"]},
        {"audiences": None},
        {"user": {"username": "arn:aws:iam::1:root"}},
        {"user": {"username": "system:serviceaccount:ns:sa"}},
        {"user": None},
    ],
)
def test_rejects_a_token_that_is_not_a_pods(changes: dict[str, Any]) -> None:
    assert pod_of(status(**changes)) is None


def test_a_sessions_name_fits_and_names_cluster_and_pod() -> None:
    name = session_name("a-very-long-cluster-name", "a-very-long-pod-name-7d9f")
    assert len(name) <= 64
    assert name.startswith("eks-a-very-long"[:13])
    assert session_name("c", "p").startswith("eks-c-p-")
    assert name != session_name("a-very-long-cluster-name", "a-very-long-pod-name-7d9f")
