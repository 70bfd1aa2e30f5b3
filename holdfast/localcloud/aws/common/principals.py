"""
For whom a request is made, where an operation keeps it: who creates an EKS cluster is its administrator.

The host sets it around each operation. What runs later in another thread, such as a stack, sets it again, and own
clients hand it on in a header that the host takes from them alone.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

PRINCIPAL_HEADER = "X-Holdfast-Principal"
_principal: ContextVar[str] = ContextVar("principal", default="")


@contextlib.contextmanager
def acting_for(principal: str) -> Iterator[None]:
    """Operations in this thread are done for a principal, by its ARN; "" for nobody in particular."""
    token = _principal.set(principal)
    try:
        yield
    finally:
        _principal.reset(token)


def named_principal() -> str:
    """The ARN of the principal for whom this thread acts; "" when nobody is named."""
    return _principal.get()


def principal_of(account: str) -> str:
    """The ARN of the principal for whom this thread acts. Default: the account's root user, whose keys a home has."""
    return _principal.get() or root_of(account)


def root_of(account: str) -> str:
    """The root user of an account: the owner of a home."""
    return f"arn:aws:iam::{account}:root"
