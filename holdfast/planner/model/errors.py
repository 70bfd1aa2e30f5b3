class PlanError(ValueError):
    """Impossible value; the message has value, allowed values and remedy."""


def check_target(share: float) -> None:
    """Refuse a goodput target (a share) outside 0 to 1. Raises: PlanError."""
    require(
        0 < share < 1,
        "the goodput target",
        f"{100 * share:.4g} %",
        "more than 0 % and less than 100 %",
        "95 % is a common target",
    )


def require(condition: bool, what: str, given: object, allowed: str, fix: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Check a value. Raises: PlanError: ``condition`` is false."""
    if not condition:
        raise PlanError(f"{what} is {given}; allowed: {allowed}; {fix}")
