"""How the agent speaks with AWS without an SDK: signatures, credentials, and calls that fail."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_agent.aws import (
    LOGS,
    SAGEMAKER,
    Api,
    AwsError,
    Credentials,
    CredentialSource,
    Request,
    Settings,
    signed_headers,
)

KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-west-2"}
Handle = Callable[[str, str, dict[str, str], bytes], tuple[int, dict[str, str], bytes]]


class Server:
    """Answers as a function says; keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.handle: Handle = lambda *_: (200, {}, b"{}")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append((self.command, self.path, headers, body))
                status, more, content = outer.handle(self.command, self.path, headers, body)
                self.send_response_only(status)
                for name, value in {"Content-Length": str(len(content)), **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def api(server: Server, **more: Any) -> Api:
    settings = Settings(variables={**KEYS, "AWS_ENDPOINT_URL": server.url})
    return Api(LOGS, settings=settings, sleep=lambda _: None, **more)


@given(
    body=st.binary(max_size=200),
    token=st.sampled_from(["", "session/token+x=="]),
    path=st.sampled_from(["/", "/x/y-_.~"]),
    value=st.text(alphabet="ab  .=/", min_size=1, max_size=12).filter(lambda text: text.strip() == text),
)
def test_a_signature_is_botocores(body: bytes, token: str, path: str, value: str) -> None:
    stamp = "20261123T151500Z"
    url = "https://logs.us-west-2.amazonaws.com" + path
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Logs_20140328." + value}
    theirs = botocore.awsrequest.AWSRequest(method="POST", url=url, data=body, headers=dict(headers))
    theirs.context["timestamp"] = stamp
    auth = botocore.auth.SigV4Auth(
        botocore.credentials.Credentials("AKID", "secret", token or None), "logs", "us-west-2"
    )
    theirs.headers["X-Amz-Date"] = stamp
    if token:
        theirs.headers["X-Amz-Security-Token"] = token
    wanted = auth.signature(auth.string_to_sign(theirs, auth.canonical_request(theirs)), theirs)

    ours = signed_headers(
        Request(method="POST", url="https://logs.us-west-2.amazonaws.com" + path, body=body, headers=headers),
        access_key="AKID",
        secret_key="secret",
        token=token,
        region="us-west-2",
        service="logs",
        stamp=stamp,
    )

    assert ours["Authorization"].endswith(f"Signature={wanted}")


@pytest.mark.parametrize(
    ("variables", "region", "address"),
    [
        ({}, "us-west-2", "https://logs.us-west-2.amazonaws.com"),
        ({}, "cn-north-1", "https://logs.cn-north-1.amazonaws.com.cn"),
        ({"AWS_ENDPOINT_URL": "http://one:1/"}, "us-west-2", "http://one:1"),
        ({"AWS_ENDPOINT_URL": "http://one:1", "AWS_ENDPOINT_URL_CLOUDWATCH_LOGS": "http://two:2"}, "x", "http://two:2"),
        (
            {"AWS_ENDPOINT_URL": "http://one:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            "us-west-2",
            "https://logs.us-west-2.amazonaws.com",
        ),
    ],
)
def test_an_endpoint_is_the_services_own_variable_that_of_all_or_awss(
    variables: dict[str, str], region: str, address: str
) -> None:
    found = Settings(variables=variables)
    assert found.endpoint(service_id="CLOUDWATCH_LOGS", host_prefix="logs", region=region) == address


def test_a_nodes_file_stands_in_for_an_empty_environment(tmp_path: Any) -> None:
    (tmp_path / "aws").write_text("AWS_ENDPOINT_URL=http://front:1\nAWS_REGION=eu-west-1\n# nothing\n")
    read = Settings.read(file=tmp_path / "aws", environment={"AWS_REGION": "us-east-1"})
    assert (read.region, read.get("AWS_ENDPOINT_URL")) == ("us-east-1", "http://front:1")


def test_a_call_is_signed_and_answered(server: Server) -> None:
    server.handle = lambda *_: (200, {}, b'{"answer": 1}')
    assert api(server).call("PutLogEvents", logGroupName="g") == {"answer": 1}
    method, _, headers, body = server.asked[0]
    assert (method, headers["x-amz-target"]) == ("POST", "Logs_20140328.PutLogEvents")
    assert "Credential=AKID/" in headers["authorization"]
    assert json.loads(body) == {"logGroupName": "g"}


def test_a_refusal_has_its_name_and_is_not_tried_again(server: Server) -> None:
    said = b'{"__type": "com.amazonaws#ResourceNotFoundException", "message": "no such group"}'
    server.handle = lambda *_: (400, {}, said)
    with pytest.raises(AwsError, match="no such group") as caught:
        api(server).call("PutLogEvents")
    assert (caught.value.code, caught.value.status, len(server.asked)) == ("ResourceNotFoundException", 400, 1)


@pytest.mark.parametrize(("status", "code"), [(400, "ThrottlingException"), (500, "InternalFailure"), (503, "")])
def test_what_may_pass_is_tried_a_few_times(server: Server, status: int, code: str) -> None:
    answers = [(status, {}, json.dumps({"__type": code}).encode())] * 2 + [(200, {}, b"{}")]
    server.handle = lambda *_: answers[len(server.asked) - 1]
    assert api(server).call("ListClusterNodes") == {}
    assert len(server.asked) == 3


def test_a_service_that_stays_away_ends_the_call(server: Server) -> None:
    server.handle = lambda *_: (503, {}, b"")
    with pytest.raises(AwsError):
        api(server, attempts=3).call("ListClusterNodes")
    assert len(server.asked) == 3


def test_nobody_there_is_unreachable() -> None:
    settings = Settings(variables={**KEYS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
    with pytest.raises(AwsError) as caught:
        Api(LOGS, settings=settings, attempts=1).call("PutLogEvents")
    assert (caught.value.code, caught.value.status) == ("Unreachable", 0)


def test_a_name_that_is_not_known_is_unreachable() -> None:
    settings = Settings(variables={**KEYS, "AWS_ENDPOINT_URL": "http://nowhere.invalid"})
    with pytest.raises(AwsError) as caught:
        Api(LOGS, settings=settings, attempts=1).call("PutLogEvents")
    assert caught.value.code == "Unreachable"


def test_an_answer_that_trickles_is_given_up(server: Server) -> None:
    stop = threading.Event()

    def trickle(*_: Any) -> tuple[int, dict[str, str], bytes]:
        stop.wait(5)
        return 200, {}, b"{}"

    server.handle = trickle
    began = time.monotonic()
    with pytest.raises(AwsError, match="Unreachable"):
        api(server, timeout_s=0.2, attempts=1).call("PutLogEvents")
    took_s = time.monotonic() - began
    stop.set()
    assert took_s < 3


def test_a_clock_that_is_an_hour_off_is_corrected_by_awss(server: Server) -> None:
    def answer(_: str, __: str, headers: dict[str, str], ___: bytes) -> tuple[int, dict[str, str], bytes]:
        signed = time.mktime(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(signed - time.time()) > 300:
            return (
                400,
                {"Date": formatdate(time.time())},
                b'{"__type": "InvalidSignatureException", "message": "expired"}',
            )
        return 200, {}, b"{}"

    server.handle = answer
    made = api(server, clock=lambda: time.time() + 3600)
    assert made.call("PutLogEvents") == {}
    assert made.now_s() == pytest.approx(time.time(), abs=30)
    assert len(server.asked) == 2


def test_a_wrong_key_is_no_wrong_clock(server: Server) -> None:
    said = b'{"__type": "InvalidSignatureException", "message": "wrong key"}'
    server.handle = lambda *_: (400, {"Date": formatdate(time.time())}, said)
    with pytest.raises(AwsError, match="wrong key"):
        api(server).call("PutLogEvents")
    assert len(server.asked) == 1


class Metadata:
    """Of an instance with a role, as ``Server.handle``."""

    def __init__(self) -> None:
        self.ends = "2099-01-01T00:00:00Z"
        self.given = 0

    def __call__(self, method: str, path: str, headers: dict[str, str], _: bytes) -> tuple[int, dict[str, str], bytes]:
        if path == "/latest/api/token":
            return (200, {}, b"token-1") if method == "PUT" else (405, {}, b"")
        if headers.get("x-aws-ec2-metadata-token") != "token-1":
            return 401, {}, b""
        if path == "/latest/meta-data/placement/region":
            return 200, {}, b"eu-west-1"
        if path == "/latest/meta-data/iam/security-credentials/":
            return 200, {}, b"node-role"
        if path == "/latest/meta-data/iam/security-credentials/node-role":
            self.given += 1
            said = {"Code": "Success", "AccessKeyId": f"ASIA{self.given}", "SecretAccessKey": "s", "Token": "t"}
            return 200, {}, json.dumps({**said, "Expiration": self.ends}).encode()
        return 404, {}, b""


def test_the_instances_role_gives_credentials_with_a_token_of_version_2(server: Server) -> None:
    server.handle = metadata = Metadata()
    source = CredentialSource(settings=Settings(), metadata=server.url)
    assert source.get() == Credentials(access_key="ASIA1", secret_key="s", token="t", ends_s=4070908800.0)
    assert source.get().access_key == "ASIA1"
    assert metadata.given == 1
    assert source.region() == "eu-west-1"


def test_credentials_that_end_soon_are_asked_for_again_and_kept_where_nobody_answers(server: Server) -> None:
    server.handle = metadata = Metadata()
    now = [4070908800.0 - 4000]
    source = CredentialSource(settings=Settings(), metadata=server.url, clock=lambda: now[0])
    assert source.get().access_key == "ASIA1"
    now[0] += 3800
    assert source.get().access_key == "ASIA2"
    server.handle = lambda *_: (404, {}, b"")
    assert source.get().access_key == "ASIA2"
    now[0] += 300
    with pytest.raises(AwsError, match="NoCredentials"):
        source.get()
    assert metadata.given == 2


def test_a_containers_credentials_come_with_the_token_of_its_file(server: Server, tmp_path: Any) -> None:
    (tmp_path / "token").write_text("abc\n")
    said = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}
    server.handle = lambda *_: (200, {}, json.dumps(said).encode())
    variables = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert CredentialSource(settings=Settings(variables=variables)).get().access_key == "ASIA"
    assert server.asked[0][2]["authorization"] == "abc"


def test_a_containers_credentials_are_not_asked_for_in_the_clear_elsewhere() -> None:
    settings = Settings(variables={"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/keys"})
    with pytest.raises(AwsError, match="allowed without TLS"):
        CredentialSource(settings=settings).get()


def test_expired_credentials_are_looked_for_again(server: Server) -> None:
    metadata = Metadata()

    def handle(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        if "x-amz-target" not in headers:
            return metadata(method, path, headers, body)
        if "ASIA1/" in headers["authorization"]:
            return 400, {}, b'{"__type": "ExpiredTokenException"}'
        return 200, {}, b"{}"

    server.handle = handle
    settings = Settings(variables={"AWS_ENDPOINT_URL": server.url})
    source = CredentialSource(settings=settings, metadata=server.url)
    assert Api(SAGEMAKER, settings=settings, credentials=source, sleep=lambda _: None).call("ListClusterNodes") == {}
    assert metadata.given == 2
