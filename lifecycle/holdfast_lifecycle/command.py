"""
Command: choose steps, report results, exit code.

People read standard output (HyperPod puts it into CloudWatch), programs read lifecycle.jsonl on the node, and the
cluster's timeline reads events. On failure the summary comes last, because failure messages show the last lines.
"""

import json
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from holdfast_common import kinds
from holdfast_lifecycle.model import HOOKS, Context, LifecycleError, Step, load_context, plan
from holdfast_lifecycle.runner import NOT_STARTED, Result, Runner
from holdfast_lifecycle.steps import STEPS

LOG_PATH = "/var/log/holdfast/lifecycle.jsonl"


class _Reporter:
    def __init__(self, context: Context, *, root_log: Path) -> None:
        root_log.parent.mkdir(parents=True, exist_ok=True)
        root_log.parent.chmod(0o755)
        self._log = root_log
        self.events = context.event_log()

    def __call__(self, result: Result) -> None:
        remark = result.remark or result.seen
        _say(f"{result.step}: {result.outcome} in {result.duration_s:.2f} s" + (f" ({remark})" if remark else ""))
        with self._log.open("a") as file:
            file.write(json.dumps({"time_ns": time.time_ns(), **result._asdict()}) + "\n")
        self.events.write(
            kind=kinds.STEP_FINISHED if result.succeeded else kinds.STEP_FAILED,
            evidence=result.seen or result.remark,
            action=result.action,
            duration_s=result.duration_s,
            detail={"step": result.step, "outcome": result.outcome},
        )


def main(arguments: Sequence[str], *, steps: Sequence[Step] = STEPS, root: Path = Path("/")) -> int:
    """Run the lifecycle; 0 on success, 1 if a step failed, 2 on wrong usage."""
    parser = ArgumentParser(prog="holdfast_lifecycle", description="Prepare this node: idempotent steps, in parallel.")
    parser.add_argument("--hook", choices=HOOKS, required=True, help="lifecycle hook; set by the script")
    parser.add_argument("--config", type=Path, required=True, help="config.json of the lifecycle bundle")
    parser.add_argument("--plan", action="store_true", help="print the steps for this node and change nothing")
    parser.add_argument("--only", metavar="STEP", default="", help="run this step alone, taking its needs as met")
    parsed = parser.parse_args(arguments)
    try:
        context = load_context(config=parsed.config, hook=parsed.hook, root=root)
        chosen = plan(steps, role=context.role, hook=context.hook, only=parsed.only)
    except LifecycleError as error:
        _say(f"failed before the first step: {error}")
        return 1
    if parsed.only and not chosen:
        _say(
            f"failed before the first step: step '{parsed.only}' is not for a {context.role} node under {context.hook}"
        )
        return 1
    if parsed.plan:
        for step in chosen:
            after = f" after {', '.join(step.needs)}" if step.needs else ""
            _say(f"would run {step.name}{after}, for at most {step.timeout_s:g} s")
        return 0
    return _run(context, chosen)


def _run(context: Context, steps: Sequence[Step]) -> int:
    reporter = _Reporter(context, root_log=context.path(LOG_PATH))
    place = f"{context.role}, group {context.instance_group}, {context.address}"
    _say(f"{context.instance_id} ({place}) starts {context.hook}")
    detail = {"role": context.role, "hook": context.hook}
    reporter.events.write(kind=kinds.LIFECYCLE_STARTED, detail=detail)
    began = time.monotonic()
    results = Runner(context=context, report=reporter).run(steps)
    duration_s = time.monotonic() - began
    failed = [result for result in results if not result.succeeded]
    reporter.events.write(
        kind=kinds.LIFECYCLE_FINISHED,
        evidence="; ".join(f"{result.step}: {result.seen}" for result in failed),
        duration_s=duration_s,
        detail={"outcome": "failed" if failed else "succeeded", "steps": len(results)},
    )
    if not failed:
        _say(f"{context.instance_id} is ready: {len(results)} steps in {duration_s:.2f} s")
        return 0
    for line in summary(context, failed):
        _say(line)
    return 1


def summary(context: Context, failed: Sequence[Result]) -> list[str]:
    causes = [result for result in failed if result.outcome != NOT_STARTED]
    skipped = [result.step for result in failed if result.outcome == NOT_STARTED]
    lines = [f"{context.instance_id} is not ready: {len(causes)} of its steps failed"]
    if skipped:
        lines.append(f"not started because of these: {', '.join(skipped)}")
    for result in causes:
        lines += [
            f"failed step: {result.step}",
            f"  expected: {result.expected}",
            f"  seen: {result.seen}",
            f"  to do: {result.action}",
        ]
    return lines


def _say(line: str) -> None:
    print(f"lifecycle: {line}", flush=True)
