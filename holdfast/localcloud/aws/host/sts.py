"""
STS beyond moto: the owner's identity, and tags of sessions.

The owner has the keys of the account's root user (AWS STS API reference, GetCallerIdentity). A program of the owner
that stands for a service of AWS says so in a header: it can then assume only roles that trust the service.
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
    result = f"<Arn>{root_of(account)}</Arn><UserId>{account}</UserId><Account>{account}</Account>"
    body = (
        f'<GetCallerIdentityResponse xmlns="{NAMESPACE}"><GetCallerIdentityResult>{result}</GetCallerIdentityResult>'
        f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
    )
    return Response(body, content_type="text/xml")


def keep_tags(answer: Response, *, given: Mapping[str, str], inherited: Mapping[str, str]) -> None:
    """
    Record the tags of an AssumeRole answer's session.

    Args:
        inherited: Tags of the calling session. All are passed on: those of EKS are transitive (EKS user guide,
            pod-id-abac).
    """
    found = NEW_KEY.search(answer.get_data(as_text=True)) if answer.status_code == 200 else None
    if found is not None:
        remember_tags(found[1], {**given, **inherited})
