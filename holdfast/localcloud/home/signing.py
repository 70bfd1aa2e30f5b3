"""
Signature Version 4 of requests that no AWS client sends.

Source: AWS general reference, "Create a signed AWS API request".
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from holdfast.localcloud.home.keys import Keys


def signed_headers(
    keys: Keys, *, method: str, url: str, region: str, service: str, body: bytes = b""
) -> Mapping[str, str]:
    """Return the headers that sign a request to ``url``, in lower case; others may be sent unsigned beside them."""
    from botocore.auth import SigV4Auth  # late, for start-up's sake
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest(method=method, url=url, data=body)
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token or None)
    SigV4Auth(credentials, service, region).add_auth(request)
    return {"host": urlsplit(url).netloc, **{name.lower(): value for name, value in request.headers.items()}}
