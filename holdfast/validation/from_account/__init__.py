"""Queries of an account, added to a deployment. boto3 is loaded on demand."""

from holdfast.validation.from_account.account import facts, with_facts
from holdfast.validation.from_account.existing import existing_facts

__all__ = ["existing_facts", "facts", "with_facts"]
