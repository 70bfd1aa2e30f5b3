"""Tokens of `aws eks get-token`, made as the AWS CLI makes them (awscli, customizations/eks/get_token.py)."""

import base64
import datetime
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import botocore.session

from holdfast.localcloud.home import Keys

REGION = "us-west-2"


def encoded(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def signed_token(
    keys: Keys,
    *,
    endpoint: str,
    cluster: str,
    expires_s: int = 60,
    method: str = "get_caller_identity",
    service: str = "sts",
    header: str = "x-k8s-aws-id",
    at: datetime.datetime | None = None,
) -> str:
    """A token, or something that is nearly one."""
    session = botocore.session.Session()
    client: Any = session.create_client(service, region_name=REGION, endpoint_url=endpoint, **keys.boto)
    client.meta.events.register("before-sign", lambda request, **_: request.headers.add_header(header, cluster))
    url = client.generate_presigned_url(method, ExpiresIn=expires_s, HttpMethod="GET")
    if at is None:
        return encoded(url)
    with mock.patch("botocore.auth.get_current_datetime", return_value=at.replace(tzinfo=None)):
        return encoded(client.generate_presigned_url(method, ExpiresIn=expires_s, HttpMethod="GET"))


def plain_url(**changes: str) -> str:
    """The URL in a good token for the host `localhost:1`, unsigned, with other parameters."""
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "AKIAX/20260101/us-west-2/sts/aws4_request",
        "X-Amz-Date": "20260101T000000Z",
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Signature": "0" * 64,
    }
    return "http://localhost:1/?" + urlencode({**query, **changes})
