"""
Principal of a request, for operations that record it: the creator of an EKS cluster is its administrator.

The host sets it around each operation; stacks set it in their threads; own clients send it in a header.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

PRINCIPAL_HEADER = "X-Holdfast-Principal"
_principal: ContextVar[str] = ContextVar("principal", default="")


@contextlib.contextmanager
def acting_for(principal: str) -> Iterator[None]:
    """Run operations of this thread for a principal, by its ARN; "" for none."""
    token = _principal.set(principal)
    try:
        yield
    finally:
        _principal.reset(token)


def named_principal() -> str:
    """Return the ARN of this thread's principal, or ""."""
    return _principal.get()


def principal_of(account: str) -> str:
    """Return the ARN of this thread's principal. Default: the account's root user."""
    return _principal.get() or root_of(account)


def root_of(account: str) -> str:
    return f"arn:aws:iam::{account}:root"
