"""``holdfast-agent check``: check this node once, with ``--deep`` under load."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast_agent.burn_in import IDLE, JOINING, TURNS, Trial, burn_in, medians, slower, turn
from holdfast_agent.commands.configured import configured, declare_configuration
from holdfast_agent.configuration import Configuration
from holdfast_agent.service import CheckResult, check_once
from holdfast_common import visible


def declare(parser: argparse.ArgumentParser) -> None:
    declare_configuration(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--deep", action="store_true", help="run load tests, too")
    parser.add_argument("--seconds", type=float, metavar="N", help="seconds of load; default: burn_in.seconds")
    parser.add_argument("--idle", action="store_true", help="run at the lowest priority")
    parser.add_argument("--peers", metavar="DIR", help="folder with reports of nodes of the same type, for comparison")
    parser.add_argument("--disk", metavar="DIR", default="/var/tmp", help="folder for the disk test; default: /var/tmp")  # noqa: S108


def run(arguments: argparse.Namespace) -> int:
    """Exit codes 0: healthy; 1: problems found; 2: no result, or wrong usage."""
    configuration = configured(arguments)
    if configuration is None:
        return 2
    mistake = _mistake(arguments)
    if mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    if arguments.idle:
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with turn(Path(TURNS, IDLE if arguments.idle else JOINING)) if arguments.deep else contextlib.nullcontext():
        looked = check_once(configuration)
        others = medians(Path(arguments.peers)) if arguments.peers else {}
        trials = _trials(arguments, configuration, others) if arguments.deep else []
    report = _report(looked, trials, others)
    print(json.dumps(report) if arguments.json else visible(_text(report)))
    return 1 if report["problems"] else 0 if report["looked"] else 2


def _mistake(arguments: argparse.Namespace) -> str:
    if not arguments.deep and (arguments.seconds is not None or arguments.peers):
        return "--seconds and --peers require --deep; add it"
    if arguments.seconds is not None and not 0.1 <= arguments.seconds <= 86_400:
        return f"--seconds must be from 0.1 to 86400, got {arguments.seconds:g}"
    return ""


def _trials(
    arguments: argparse.Namespace, configuration: Configuration, others: "Mapping[str, tuple[float, int]]"
) -> "list[Trial]":
    trials = burn_in(
        seconds=configuration.burn_in_seconds if arguments.seconds is None else arguments.seconds,
        folder=Path(arguments.disk),
        nvml_library=configuration.nvml_library,
        gpus_expected=configuration.gpus_expected,
        fabric_root=configuration.fabric_root,
        others=others,
    )
    return list(trials)


def _report(looked: CheckResult, trials: "list[Trial]", others: "Mapping[str, tuple[float, int]]") -> "dict[str, Any]":
    figures = {name: value for trial in trials for name, value in trial.figures.items()}
    problems = [f"{one['fault']} {one['device']}: {' '.join(one['evidence'][-1:])}".strip() for one in looked.incidents]
    tried = [f"{trial.name}: {problem}" for trial in trials for problem in trial.problems]
    tried += slower(figures, others)
    problems += tried
    return {
        "healthy": not problems and bool(looked.supported),
        "problems": problems,
        "trial_problems": tried,
        "figures": figures,
        "looked": list(looked.supported),
        "not_supported": dict(looked.unsupported),
        "skipped": {trial.name: trial.skipped for trial in trials if trial.skipped},
        "incidents": looked.incidents,
    }


def _text(report: "dict[str, Any]") -> str:
    lines = [f"problem: {problem}" for problem in report["problems"]]
    lines += [f"{name}: {value:g}" for name, value in sorted(report["figures"].items())]
    lines += [f"{name}: not supported: {why}" for name, why in report["not_supported"].items()]
    lines += [f"{name}: skipped: {why}" for name, why in report["skipped"].items()]
    found = f"{len(report['problems'])} problems" if report["problems"] else "nothing found"
    lines.append(f"{found}; checked {', '.join(report['looked']) or 'nothing'}")
    return "\n".join(lines)
