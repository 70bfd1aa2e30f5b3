"""
Token of an AWS principal for an EKS cluster, as ``aws eks get-token`` prints it.

It is a presigned GetCallerIdentity, which EKS sends to STS. Source: kubernetes-sigs/aws-iam-authenticator, README, "API
Authorization from Outside a Cluster"; aws-cli, customizations/eks/get_token.py. Read on 2026-11-23.
"""

import base64
import datetime

from holdfast.localcloud.home import Keys

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
SIGNATURE_LASTS_S = 60
TOKEN_LASTS = datetime.timedelta(minutes=14)
"""One minute less than EKS accepts it, as in the AWS CLI."""


def token(keys: Keys, *, cluster: str, region: str, sts_endpoint: str) -> str:
    """Return a token, valid from now; ``sts_endpoint``: such as https://sts.us-west-2.amazonaws.com."""
    from botocore.auth import SigV4QueryAuth  # late, for start-up's sake
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = f"{sts_endpoint}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest(method="GET", url=url, headers={CLUSTER_HEADER: cluster})
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None)
    SigV4QueryAuth(credentials, "sts", region, expires=SIGNATURE_LASTS_S).add_auth(request)
    return PREFIX + base64.urlsafe_b64encode(request.url.encode()).decode().rstrip("=")
