"""
What STS needs beside moto: who the owner of a home is, and that sessions keep their tags.

The owner's keys are those of the account's root user (AWS STS API reference, GetCallerIdentity, for the answer); moto
names a user that there is not. A program of the owner's that stands for a service of AWS, as the control plane of a
local EKS cluster does for EKS, says so in a header: it can then assume only roles that trust the service.
"""

import re
import uuid
from collections.abc import Mapping

from werkzeug.wrappers import Response

from holdfast.localcloud.aws.common import root_of
from holdfast.localcloud.aws.guard import remember_tags

SERVICE_HEADER = "X-Holdfast-Service"
NEW_KEY = re.compile(r"<AccessKeyId>(ASIA[A-Z0-9]+)</AccessKeyId>")
NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


def owner_identity(account: str) -> Response:
    """The answer to GetCallerIdentity for the owner of an account."""
    result = f"<Arn>{root_of(account)}</Arn><UserId>{account}</UserId><Account>{account}</Account>"
    body = (
        f'<GetCallerIdentityResponse xmlns="{NAMESPACE}"><GetCallerIdentityResult>{result}</GetCallerIdentityResult>'
        f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    )
    return Response(body, content_type="text/xml")


def keep_tags(answer: Response, *, given: Mapping[str, str], inherited: Mapping[str, str]) -> None:
    """
    Give the session that an answer to AssumeRole brings its tags.

    Args:
        inherited: The tags of the session that asked. All are handed on: those of EKS are transitive (EKS user guide,
            pod-id-abac), and others are not told apart.
    """
    found = NEW_KEY.search(answer.get_data(as_text=True)) if answer.status_code == 200 else None
    if found is not None:
        remember_tags(found[1], {**given, **inherited})
