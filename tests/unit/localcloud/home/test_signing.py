"""Signatures of requests without an AWS client are those that the embedded AWS accepts."""

import pytest
from werkzeug.datastructures import Headers

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.guard import signed, verify
from holdfast.localcloud.home import Keys, signed_headers

KEYS = Keys(access_key_id="AKIDEXAMPLE", secret_access_key="secret/+key", session_token="FQ+/=token")
TARGETS = [
    "/",
    "/?empty=&flag&a=1",
    "/?tag=2&tag=1&tag=",
    "/clusters/a%20b/role%2Fteam?arn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Bb",
    "/clusters/%C3%BC?name=%E2%82%AC~",
]


def check(target: str, *, changed: str = "", keys: Keys = KEYS) -> None:
    """Verify the signature of one target for ``changed``. Raises: ServiceError."""
    url = f"http://127.0.0.1:5710{target}"
    made = Headers(signed_headers(KEYS, method="POST", url=url, region="us-west-2", service="eks", body=b"{}"))
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in made.items()}
    environ |= {"REQUEST_METHOD": "POST", "RAW_URI": changed or target}
    verify(environ, signed(made, {}), keys, b"{}")


@pytest.mark.parametrize("target", TARGETS)
def test_a_signed_target_is_accepted_as_it_was_sent(target: str) -> None:
    check(target)


@pytest.mark.parametrize(
    ("target", "changed"),
    [("/?a=&b=1", "/?b=1"), ("/?a=1&a=2", "/?a=1"), ("/a%2Fb", "/a/b"), ("/?a=%2B", "/?a=+")],
)
def test_a_changed_target_is_refused(target: str, changed: str) -> None:
    with pytest.raises(ServiceError, match="does not match the signature"):
        check(target, changed=changed)


def test_other_keys_are_refused() -> None:
    other = Keys(access_key_id="AKIDEXAMPLE", secret_access_key="other", session_token=KEYS.session_token)
    with pytest.raises(ServiceError, match="does not match the signature"):
        check("/", keys=other)
