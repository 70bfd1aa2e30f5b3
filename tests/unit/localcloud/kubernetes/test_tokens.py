"""Tokens of `aws eks get-token`: which of them STS may be asked about at all."""

import base64
import datetime

import pytest
from tokens import encoded, plain_url

from holdfast.localcloud.kubernetes.access import StsError, TokenError, identity_in, presigned_request

HOSTS = ("localhost:1", "127.0.0.1:1")
NOW = datetime.datetime(2026, 1, 1, 0, 5, tzinfo=datetime.UTC)


def judged(token: str, now: datetime.datetime = NOW) -> str:
    with pytest.raises(TokenError) as refused:
        presigned_request(token, hosts=HOSTS, now=now)
    return str(refused.value)


def test_a_token_is_the_request_that_was_signed() -> None:
    url = plain_url()
    found = presigned_request(encoded(url), hosts=HOSTS, now=NOW)

    assert (found.host, "http://localhost:1" + found.target, found.access_key_id) == ("localhost:1", url, "AKIAX")
    assert found.expires_at == datetime.datetime(2026, 1, 1, 0, 15, tzinfo=datetime.UTC)


def test_a_token_holds_for_fifteen_minutes_whatever_its_expires_says() -> None:
    def at(minute: int) -> datetime.datetime:
        return NOW.replace(minute=0) + datetime.timedelta(minutes=minute)

    assert presigned_request(encoded(plain_url()), hosts=HOSTS, now=at(15))
    assert "expired" in judged(encoded(plain_url()), at(16))
    assert "future" in judged(encoded(plain_url()), at(-16))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"Action": "AssumeRole"}, "unexpected action"),
        ({"X-Amz-SignedHeaders": "host"}, "did not sign the x-k8s-aws-id header"),
        ({"X-Amz-SignedHeaders": "host;x-k8s-aws-id-2"}, "did not sign the x-k8s-aws-id header"),
        ({"X-Amz-Expires": "901"}, "invalid X-Amz-Expires"),
        ({"X-Amz-Expires": "-1"}, "invalid X-Amz-Expires"),
        ({"X-Amz-Expires": "9" * 5000}, "token is too large"),
        ({"X-Amz-Expires": "\u0664"}, "invalid X-Amz-Expires"),
        ({"X-Amz-Date": "tomorrow"}, "error parsing X-Amz-Date"),
        ({"X-Amz-Date": ""}, "X-Amz-Date parameter must be present"),
        ({"RoleArn": "arn:aws:iam::1:role/a"}, "non-whitelisted query parameter 'RoleArn'"),
        ({"action": "GetCallerIdentity"}, "duplicate query parameter"),
    ],
)
def test_rejects_a_request_that_is_another_one(changes: dict[str, str], words: str) -> None:
    assert words in judged(encoded(plain_url(**changes)))


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("http://evil.example:1/?", "unexpected hostname"),
        ("http://localhost:1@evil.example/?", "unexpected hostname"),
        ("http://evil@localhost:1/?", "unexpected hostname"),
        ("http://localhost:2/?", "unexpected hostname"),
        ("http://LOCALHOST:1/?", "unexpected hostname"),
        ("https://sts.us-west-2.amazonaws.com/?", "unexpected hostname"),
        ("http://localhost:1/_holdfast/health?", "unexpected path"),
        ("http://localhost:1//?", "unexpected path"),
        ("http://localhost:1?", "unexpected path"),
        ("file://localhost:1/?", "unexpected scheme"),
        ("http://[localhost:1/?", "not a URL"),
    ],
)
def test_rejects_a_request_to_another_place(start: str, words: str) -> None:
    query = plain_url().partition("?")[2]
    assert words in judged(encoded(start + query))


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "missing expected"),
        ("k8s-aws-v2.aHR0cA", "missing expected"),
        ("k8s-aws-v1.", "unexpected scheme"),
        ("k8s-aws-v1.%%%", "not base64"),
        ("k8s-aws-v1.aHR0cA==", "without padding"),
        ("k8s-aws-v1." + "A" * 5000, "too large"),
        ("k8s-aws-v1." + base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("="), "not base64 of a URL"),
        (encoded(plain_url() + "\r\nX-Evil: 1"), "not base64 of a URL"),
        (encoded(plain_url() + " HTTP/1.1"), "not base64 of a URL"),
        (encoded(plain_url() + "&novalue"), "malformed query"),
        (encoded(plain_url() + "#part"), "unexpected path"),
    ],
)
def test_rejects_what_is_no_token(token: str, words: str) -> None:
    assert words in judged(token)


def answer(arn: str, user: str) -> bytes:
    inside = f"<Arn>{arn}</Arn><UserId>{user}</UserId><Account>123456789012</Account>"
    return f'<A xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><B>{inside}</B></A>'.encode()


def test_a_session_is_known_by_its_role() -> None:
    arn = "arn:aws:sts::123456789012:assumed-role/team/mary@example.com"
    found = identity_in(answer(arn, "AROAX:mary@example.com"), access_key_id="ASIAX")

    assert found.canonical_arn == "arn:aws:iam::123456789012:role/team"
    assert (found.principal_id, found.session_name, found.access_key_id) == ("AROAX", "mary@example.com", "ASIAX")


def test_the_root_user_is_known_by_itself() -> None:
    found = identity_in(answer("arn:aws:iam::123456789012:root", "123456789012"), access_key_id="AKIAX")
    assert (found.canonical_arn, found.session_name) == ("arn:aws:iam::123456789012:root", "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"<Error><Code>AccessDenied</Code></Error>",
        answer("arn:aws:sts::123456789012:assumed-role/team/mary", "AROAX"),
        answer("arn:aws:sts::123456789012:user/moto", "AKIAX"),
        answer("arn:aws:s3:::bucket", "X"),
    ],
)
def test_rejects_an_answer_that_names_nobody(body: bytes) -> None:
    with pytest.raises(StsError):
        identity_in(body, access_key_id="AKIAX")
