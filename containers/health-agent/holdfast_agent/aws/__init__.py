"""AWS API client on the standard library: signature version 4, instance credentials, bounded calls."""

from holdfast_agent.aws.credentials import Credentials, CredentialSource
from holdfast_agent.aws.errors import AwsError
from holdfast_agent.aws.http import exchange
from holdfast_agent.aws.service import LOGS, SAGEMAKER, Api
from holdfast_agent.aws.settings import Settings
from holdfast_agent.aws.signing import Request, signed_headers

__all__ = [
    "LOGS",
    "SAGEMAKER",
    "Api",
    "AwsError",
    "CredentialSource",
    "Credentials",
    "Request",
    "Settings",
    "exchange",
    "signed_headers",
]
