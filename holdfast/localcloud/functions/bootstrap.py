"""
First program of a function's process: calls the handler and reports its end.

Run as a script inside the sandbox, without Holdfast: standard library only. The event is on standard input.
"""

import importlib
import json
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any

TASK_ROOT, LAYERS = "/var/task", "/opt/python"


@dataclass(frozen=True, kw_only=True)
class LambdaContext:
    """Context of a handler (Lambda developer guide, python-context)."""

    function_name: str
    function_version: str
    invoked_function_arn: str
    memory_limit_in_mb: int
    aws_request_id: str
    log_group_name: str
    log_stream_name: str
    ends_at: float
    """By the clock that no one sets, in seconds."""
    identity: None = None
    client_context: None = None

    def get_remaining_time_in_millis(self) -> int:
        return max(int((self.ends_at - time.monotonic()) * 1000), 0)


def main() -> int:
    """Run the handler; exit code 0 if it returned."""
    given: dict[str, Any] = json.load(sys.stdin.buffer)
    sys.path[:0] = [TASK_ROOT, LAYERS]
    module, _, name = given["handler"].rpartition(".")
    try:
        handler = getattr(importlib.import_module(module.replace("/", ".")), name)
        handler(given["event"], LambdaContext(**given["context"]))
    except SystemExit as error:
        print(f"[ERROR] Runtime.ExitError: the handler ended its process with {error.code}", flush=True)
        return 1
    except BaseException as error:  # noqa: BLE001 - as Lambda's runtime, which reports what it was
        lines = "".join(traceback.format_exception(error))
        print(f"[ERROR] {type(error).__name__}: {error}\n{lines}", end="", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
