"""Values of a new repository, and their rules."""

from dataclasses import dataclass
from typing import Annotated, Any, get_args

from holdfast.catalog import Orchestrator

ORCHESTRATORS: tuple[str, ...] = get_args(Orchestrator)
LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """
    Values that differ between repositories.

    Args:
        name: The environment on AWS, and its cluster.
        account: AWS account of 12 digits. Default: a placeholder.
    """

    name: str = "production"
    account: str = "111122223333"
    region: str = "us-west-2"
    orchestrator: Orchestrator = "slurm"


def refusal(field: str, value: str) -> str:
    """Return what is wrong with an answer, by the rule of the environment file; empty if nothing is."""
    if field == "orchestrator":
        allowed = " or ".join(ORCHESTRATORS)
        return "" if value in ORCHESTRATORS else f"got --orchestrator {value!r}; allowed: {allowed}"
    if field == "name" and value == LOCAL:
        return "got --name 'local', which is the environment of this machine; allowed: another name for the one on AWS"
    from pydantic import TypeAdapter, ValidationError  # slow to load, with the model

    from holdfast.catalog.facts import hyperpod_regions
    from holdfast.config import Environment

    info = Environment.model_fields[field]
    rule: Any = Annotated[info.annotation, info]
    try:
        TypeAdapter(rule).validate_python(value)
    except ValidationError:
        allowed = next(one.text for one in info.metadata if hasattr(one, "text"))
        return f"got --{field} {value!r}; allowed: {allowed.removesuffix(', in quotes')}"
    if field == "region" and value not in (known := hyperpod_regions()):
        return f"got --region {value!r}; allowed: a region with HyperPod: {', '.join(sorted(known))}"
    return ""
