"""
Stack status in words, after a failed deployment and where no update can start. Pure.

Source: CloudFormation user guide, using-cfn-updating-stacks-continueupdaterollback.
"""

ROLLED_BACK = "UPDATE_ROLLBACK_COMPLETE"
STUCK = "UPDATE_ROLLBACK_FAILED"


def after_failure(stack: str, *, status: str) -> str:
    if status == ROLLED_BACK:
        what = "it is unchanged; correct the cause and run holdfast up again"
    elif status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
        what = "nothing is deployed; correct the cause and run holdfast up again"
    elif status == STUCK:
        what = stuck(stack)
    else:
        what = f"see: aws cloudformation describe-stack-events --stack-name {stack}"
    return f"stack {stack} is in {status}: {what}"


def is_under_way(status: str) -> bool:
    """Return True while an operation runs that refuses others."""
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"


def stuck(stack: str) -> str:
    """Return why no update can start in ``UPDATE_ROLLBACK_FAILED``, and what to do."""
    return (
        "an update failed, and so did its rollback, so it accepts no update; correct the cause of the failed rollback, "
        f"then run: aws cloudformation continue-update-rollback --stack-name {stack}"
    )
