"""Colours of the states of AWS, Slurm and Kubernetes."""

from rich.text import Text

GOOD = frozenset(
    {
        "InService", "Running", "AVAILABLE", "CREATE_COMPLETE", "UPDATE_COMPLETE", "idle", "allocated", "RUNNING",
        "COMPLETED", "Complete", "Succeeded", "Ready",
    }
)  # fmt: skip
BAD = (
    "FAILED", "ROLLBACK", "Failure", "Failed", "down", "drain", "fail", "absent", "TIMEOUT", "OUT_OF_MEMORY",
    "NODE_FAIL", "DEADLINE", "BOOT_FAIL", "NotReady",
)  # fmt: skip


def coloured(state: str) -> Text:
    if state in GOOD:
        return Text(state, style="green")
    return Text(state, style="red" if any(word in state for word in BAD) else "yellow")
