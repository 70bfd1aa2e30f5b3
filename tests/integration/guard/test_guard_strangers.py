"""Nobody gets into the embedded AWS without its keys: no page, no other user, no endless chunk, no slow connection."""

import gzip
import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from waiting import eventually

from holdfast.localcloud.aws import EmbeddedAws, guard, serve
from holdfast.localcloud.aws.guard import MOST_CONNECTIONS
from holdfast.localcloud.home import signed_headers

REGION = "us-west-2"
Answer = tuple[int, str, dict[str, str]]
MADE: list[Any] = []
SERVICES = ["s3", "sts", "sagemaker", "ec2", "eks", "cloudformation"]
CALLS = {"sts": "get_caller_identity", "ec2": "describe_vpcs", "s3": "list_buckets", "cloudformation": "list_stacks"}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        s3 = client(running, "s3")
        s3.create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket="scripts", Key="on_create.sh", Body=b"true")
        yield running
        while MADE:
            MADE.pop().close()


def client(aws: EmbeddedAws, service: str, **keys: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
    MADE.append(boto3.client(service, region_name=REGION, config=config, **{**aws.client_arguments, **keys}))
    return MADE[-1]


def ask(aws: EmbeddedAws, method: str, path: str, *, body: bytes = b"", service: str = "s3", **more: str) -> Answer:
    """Status, body and headers of a signed request with more headers than were signed."""
    url = f"{aws.endpoint}{path}"
    signature = signed_headers(aws.keys, method=method, url=url, region=REGION, service=service, body=body)
    headers = {**signature, **{name.replace("_", "-"): value for name, value in more.items()}}
    return plainly(aws, method, path, body=body, headers=headers)


def plainly(
    aws: EmbeddedAws, method: str, path: str, *, body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", aws.port, timeout=20)
    try:
        connection.request(method, path, body=body or None, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace"), dict(answer.getheaders())
    finally:
        connection.close()


def healthy(aws: EmbeddedAws) -> float:
    """Seconds that health takes."""
    began = time.monotonic()
    with urllib.request.urlopen(f"{aws.endpoint}/_holdfast/health", timeout=20) as answer:
        assert json.load(answer)["status"] == "ok"
    return time.monotonic() - began


# -- signatures


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    "wrong", [{"aws_access_key_id": "test"}, {"aws_secret_access_key": "test"}, {"aws_session_token": "test"}]
)
def test_no_service_answers_without_the_keys_of_the_home(aws: EmbeddedAws, service: str, wrong: dict[str, str]) -> None:
    with pytest.raises(ClientError) as caught:
        getattr(client(aws, service, **wrong), CALLS.get(service, "list_clusters"))()

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 401, 403)
    assert caught.value.response["Error"]["Code"] in (
        *("AuthFailure", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"),
        *("SignatureDoesNotMatch", "InvalidSignatureException"),
    )


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/scripts",
        "/scripts/on_create.sh",
        "/_holdfast/hyperpod/requests",
        "/_holdfast/releases",
        "/?Action=A",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "HEAD"])
def test_nothing_but_health_is_answered_without_a_signature(aws: EmbeddedAws, method: str, path: str) -> None:
    assert plainly(aws, method, path, body=b"x" if method in ("PUT", "POST") else b"")[0] == 403


def test_example_keys_that_moto_hands_out_open_nothing(aws: EmbeddedAws) -> None:
    made = client(aws, "sts").get_session_token()["Credentials"]
    keys = {"aws_access_key_id": made["AccessKeyId"], "aws_secret_access_key": made["SecretAccessKey"]}

    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        client(aws, "s3", **keys, aws_session_token=made["SessionToken"]).list_buckets()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"body": b"other"}, "SignatureDoesNotMatch"),
        ({"path": "/scripts/other"}, "SignatureDoesNotMatch"),
        ({"method": "POST"}, "SignatureDoesNotMatch"),
        ({"headers": {"x-amz-date": "20200101T000000Z"}}, "SignatureDoesNotMatch"),
        ({"headers": {"x-amz-content-sha256": "0" * 64}}, "XAmzContentSHA256Mismatch"),
    ],
)
def test_a_request_that_was_changed_on_its_way_is_refused(aws: EmbeddedAws, change: dict[str, Any], code: str) -> None:
    body = b"rm -rf"
    url = f"{aws.endpoint}/scripts/key"
    signature = signed_headers(aws.keys, method="PUT", url=url, region=REGION, service="s3", body=body)
    headers = {**signature, **change.get("headers", {})}

    method, path = change.get("method", "PUT"), change.get("path", "/scripts/key")
    status, told, _ = plainly(aws, method, path, body=change.get("body", body), headers=headers)

    assert (status in (400, 403), f"<Code>{code}</Code>" in told) == (True, True), told


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_presigned_url_opens_what_it_was_made_for_and_nothing_else(aws: EmbeddedAws, version: str) -> None:
    s3 = boto3.client("s3", region_name=REGION, config=Config(signature_version=version), **aws.client_arguments)
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "scripts", "Key": "on_create.sh"})
    short = s3.generate_presigned_url("get_object", Params={"Bucket": "scripts", "Key": "on_create.sh"}, ExpiresIn=-5)

    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"true"
    for other in (
        urllib.request.Request(url, method="DELETE"),
        urllib.request.Request(url, method="PUT", data=b"x"),
        urllib.request.Request(url.replace("on_create.sh", "other")),
        urllib.request.Request(short),
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(other)
        caught.value.close()
        assert caught.value.code in (400, 403)


# -- pages


@pytest.mark.parametrize(
    "header",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example:5710"},
        {"Host": "93.184.216.34"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:5710"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/_holdfast/health", "/scripts/on_create.sh"])
def test_what_a_page_sends_is_refused_though_it_is_signed(aws: EmbeddedAws, header: dict[str, str], path: str) -> None:
    told = ask(aws, "GET", path, **header)

    assert told[0] == 403
    assert not [name for name in told[2] if name.lower().startswith("access-control-")]


def test_a_page_is_not_told_that_it_may_ask(aws: EmbeddedAws) -> None:
    wish = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}

    status, _, headers = plainly(aws, "OPTIONS", "/scripts/on_create.sh", headers=wish)

    assert status == 403
    assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_no_answer_allows_pages_of_others_to_read_it(aws: EmbeddedAws) -> None:
    status, _, headers = ask(aws, "GET", "/scripts/on_create.sh")

    assert status == 200
    assert not [name for name in headers if name.lower().startswith("access-control-")]


@pytest.mark.parametrize(
    "path", ["/moto-api/reset", "/moto-api/data.json", "/moto-api/", "/latest/meta-data/iam/security-credentials/x"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_motos_own_plane_is_not_served_to_anybody(aws: EmbeddedAws, method: str, path: str) -> None:
    assert ask(aws, method, path)[0] == 404
    assert client(aws, "s3").list_buckets()["Buckets"]


# -- sizes and times


def exchange(aws: EmbeddedAws, text: bytes) -> bytes:
    """What comes back for bytes on a socket."""
    with socket.create_connection(("127.0.0.1", aws.port), timeout=20) as connection:
        connection.sendall(text)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


def chunked(aws: EmbeddedAws, body: bytes, **more: str) -> bytes:
    url = f"{aws.endpoint}/scripts/chunked"
    headers = signed_headers(aws.keys, method="PUT", url=url, region=REGION, service="s3", body=b"hello")
    told = {**headers, "transfer-encoding": "chunked", **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return exchange(aws, f"PUT /scripts/chunked HTTP/1.1\r\n{head}\r\n".encode() + body)


def test_a_body_in_chunks_is_taken(aws: EmbeddedAws) -> None:
    assert b" 200 " in chunked(aws, b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n").split(b"\r\n")[0]
    assert client(aws, "s3").get_object(Bucket="scripts", Key="chunked")["Body"].read() == b"hello"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"FFFFFFFFFFFFFFFF\r\nhello", 413),
        (b"F" * 200 + b"\r\nhello", 400),
        (b"-1\r\nhello\r\n0\r\n\r\n", 400),
        (b"0x5\r\nhello\r\n0\r\n\r\n", 400),
        (b"+5\r\nhello\r\n0\r\n\r\n", 400),
        (b"5_0\r\nhello\r\n0\r\n\r\n", 400),
        (b"\r\nhello\r\n0\r\n\r\n", 400),
        (b"3\r\nhello\r\n0\r\n\r\n", 400),
        (b"x" * 100_000, 400),
    ],
)
def test_the_length_of_a_chunk_is_not_believed(aws: EmbeddedAws, body: bytes, status: int) -> None:
    assert f" {status} ".encode() in chunked(aws, body).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("length", "status"), [("18446744073709551615", 413), ("99999999999", 413), ("-1", 400), ("1e3", 400), ("5;", 400)]
)
def test_the_length_of_a_body_is_not_believed(aws: EmbeddedAws, length: str, status: int) -> None:
    url = f"{aws.endpoint}/scripts/long"
    headers = signed_headers(aws.keys, method="PUT", url=url, region=REGION, service="s3")
    head = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "content-length": length}.items())

    answer = exchange(aws, f"PUT /scripts/long HTTP/1.1\r\n{head}\r\n".encode())

    assert f" {status} ".encode() in answer.split(b"\r\n")[0]


def test_a_request_has_one_length(aws: EmbeddedAws) -> None:
    assert b" 400 " in chunked(aws, b"5\r\nhello\r\n0\r\n\r\n", **{"content-length": "5"}).split(b"\r\n")[0]


def test_a_stranger_does_not_get_a_large_body_in(aws: EmbeddedAws) -> None:
    head = b"PUT /scripts/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"

    assert b" 403 " in exchange(aws, head + b"x" * 100_000).split(b"\r\n")[0]


def test_what_is_held_at_one_time_is_bounded(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws._front._budget, "_left", 1 << 20)

    with pytest.raises(ClientError, match="SlowDown"):
        client(aws, "s3").put_object(Bucket="scripts", Key="large", Body=b"x" * (2 << 20))
    assert client(aws, "s3").put_object(Bucket="scripts", Key="small", Body=b"x" * (1 << 20))


def test_a_small_body_does_not_become_a_large_one(aws: EmbeddedAws) -> None:
    bomb = gzip.compress(bytes(64 << 20))

    status, told, _ = ask(aws, "POST", "/", body=bomb, service="monitoring", Content_Encoding="gzip")

    assert (status, "EntityTooLarge" in told) == (413, True)


def test_slow_connections_do_not_keep_others_from_being_answered(aws: EmbeddedAws) -> None:
    slow = []
    try:
        for _ in range(MOST_CONNECTIONS + 60):
            one = socket.create_connection(("127.0.0.1", aws.port), timeout=20)
            one.sendall(b"GET /_holdfast/health HTTP/1.1\r\nX-")
            slow.append(one)
        healthy(aws)
        healthy(aws)
        assert len([one for one in threading.enumerate() if "process_request" in one.name]) <= MOST_CONNECTIONS + 2
    finally:
        for one in slow:
            one.close()


def test_health_is_answered_while_as_many_requests_as_may_be_are_in_flight(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = json.loads(ask(aws, "GET", "/_holdfast/hyperpod/watch?timeout_s=0")[1])["version"]
    monkeypatch.setattr("holdfast.localcloud.aws.guard.connections.MOST_CONNECTIONS", 12)
    wait = f"/_holdfast/hyperpod/watch?version={version}&timeout_s=60"
    told: list[int] = []
    threads = [threading.Thread(target=lambda: told.append(ask(aws, "GET", wait)[0])) for _ in range(12)]
    try:
        for thread in threads:
            thread.start()
        eventually(lambda: aws._plane._changed._waiters.__len__() == 12)  # type: ignore[attr-defined]
        healthy(aws)
        assert ask(aws, "GET", "/")[0] == 503
        assert told == []
    finally:
        aws._plane.changed()
        for thread in threads:
            thread.join()
    assert told == [200] * 12


def test_a_connection_that_says_nothing_is_ended(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.localcloud.aws.guard.connections.HEAD_S", 0.1)
    with socket.create_connection(("127.0.0.1", aws.port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")

        assert connection.recv(100) == b""


def test_lengths_are_read_in_steps() -> None:
    assert guard.STEP < guard.LARGEST < guard.LARGEST_OF_S3 < guard.ALL_TOGETHER


# -- the home


def test_what_it_keeps_is_its_owners_alone(aws: EmbeddedAws) -> None:
    kept = [path for path in (aws.home / "aws").rglob("*") if path.is_file()]

    assert kept
    assert [path for path in (aws.home, aws.home / "aws") if path.stat().st_mode & 0o077] == []


def test_a_folder_of_somebody_elses_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()

    with pytest.raises(Exception, match=r"already runs|is not empty"):
        serve(home=tmp_path)
