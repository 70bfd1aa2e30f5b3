"""
The token with which a principal of AWS logs in to a cluster of EKS: what ``aws eks get-token`` prints. Pure.

It is a signed question to STS, "who am I", that EKS asks in the caller's place. Source: kubernetes-sigs/
aws-iam-authenticator, README, "API Authorization from Outside a Cluster"; aws-cli, customizations/eks/get_token.py;
query signing as in the AWS general reference, "Add the signature to the query string". Read on 2026-11-23.
"""

import base64
import datetime
import hashlib
import hmac
from urllib.parse import quote, urlsplit

from holdfast.localcloud.home import Keys

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
SIGNATURE_LASTS_S = 60
TOKEN_LASTS = datetime.timedelta(minutes=14)
"""One minute less than EKS takes it, as the AWS CLI tells kubectl."""


def token(keys: Keys, *, cluster: str, region: str, sts_endpoint: str, now: datetime.datetime) -> str:
    """
    A token for one cluster.

    Args:
        cluster: Its name.
        sts_endpoint: Such as https://sts.us-west-2.amazonaws.com.
        now: Timezone aware.
    """
    parts = urlsplit(sts_endpoint)
    stamp = now.astimezone(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/sts/aws4_request"
    signed = {"host": parts.netloc, CLUSTER_HEADER: cluster}
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{keys.access_key_id}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(SIGNATURE_LASTS_S),
        "X-Amz-SignedHeaders": ";".join(sorted(signed)),
    }
    if keys.session_token:
        query["X-Amz-Security-Token"] = keys.session_token
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
    canonical = [
        "GET",
        "/",
        asked,
        *(f"{name}:{signed[name]}" for name in sorted(signed)),
        "",
        query["X-Amz-SignedHeaders"],
        hashlib.sha256(b"").hexdigest(),
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hexdigest()
    url = f"{parts.scheme}://{parts.netloc}/?{asked}&X-Amz-Signature={signature}"
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
