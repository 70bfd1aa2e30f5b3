"""What the checks of clusters have in common: how a request is refused, and how groups of both lists are told apart."""

from holdfast.localcloud.aws._errors import ServiceError

RESTRICTED = "Restricted"
"""Member that marks a group of RestrictedInstanceGroups; no shape of the API has it."""


def refuse(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
