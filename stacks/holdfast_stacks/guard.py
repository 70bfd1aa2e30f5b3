"""Guarantee G9 at synthesis: a file that would replace what holds data or nodes is refused before anything is built."""

from dataclasses import dataclass

from holdfast.config import Environment
from holdfast.importing import deployed_environment
from holdfast.updates import guard


@dataclass(frozen=True, kw_only=True)
class GuardReport:
    """One line a problem: ``errors`` forbid the deployment, ``notes`` say what was not checked or is of no use."""

    errors: tuple[str, ...]
    notes: tuple[str, ...]


def check_changes(environment: Environment, *, endpoint: str | None) -> GuardReport:
    """
    Compare an environment with what is deployed under its name.

    Args:
        endpoint: That of the embedded AWS, where an environment of cloud embedded is looked for; None: nowhere else.
    """
    if environment.cloud == "embedded" and endpoint is None:
        problems = guard(environment, None)
        notes: tuple[str, ...] = ("changes are not checked: no embedded AWS to ask",)
    else:
        found = deployed_environment(
            stack_name=environment.stack_name,
            region=environment.region,
            client={"endpoint_url": endpoint} if endpoint and environment.cloud == "embedded" else None,
        )
        problems = guard(environment, found.environment)
        unknown = found.state in ("unmarked", "not checked")
        notes = (f"changes are not checked: {found.why}",) if unknown else ()
    return GuardReport(
        errors=tuple(str(problem) for problem in problems if problem.severity == "error"),
        notes=(*notes, *(str(problem) for problem in problems if problem.severity == "warning")),
    )
