"""``holdfast-agent replay``: verdicts on recorded logs."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast_agent.replay import Word, replayed
from holdfast_agent.verdicts import Policy
from holdfast_common import plain

_COLUMNS = ("time", "line", "incident", "fault", "code", "device", "severity", "remedy", "when")
_LONGEST_CELL = 40


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="log of one node: kmsg, dmesg, syslog, journal JSON, or a recording; gzip is accepted",
    )
    parser.add_argument("--json-lines", action="store_true", help="print one JSON object per recognised signal")
    parser.add_argument("--policy", metavar="ROWS", help="rows over the shipped policy, one JSON object per line")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0, or 2 if a file could not be read; the others are still replayed."""
    try:
        code = _replay(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _replay(arguments: argparse.Namespace) -> int:
    policy, code = Policy.standard(), 0
    if arguments.policy:
        try:
            text = Path(arguments.policy).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return _unreadable(arguments.policy, error, "name a file of rows")
        policy, problems = policy.extended(text)
        for problem in problems:
            print(f"holdfast-agent: {arguments.policy}: {problem}; using the other rows", file=sys.stderr)
    for file in arguments.files:
        words = replayed(Path(file), policy=policy)
        try:
            if arguments.json_lines:
                for word in words:
                    sys.stdout.write(json.dumps(word.as_json()) + "\n")
            else:
                _show(file, words)
        except BrokenPipeError:
            raise
        except OSError as error:
            sys.stdout.flush()
            code = _unreadable(file, error, "name an existing log")
    return code


def _unreadable(file: str, error: Exception, advice: str) -> int:
    reason = getattr(error, "strerror", None) or error
    print(f"holdfast-agent: cannot read {file}: {reason}; {advice}", file=sys.stderr)
    return 2


def _show(file: str, words: "Iterator[Word]") -> None:
    rows, last = [], {}
    for word in words:
        verdict = word.verdict
        remedy = "withdrawn" if verdict.withdrawn else verdict.remedy.value
        rows.append(
            (
                word.time,
                str(word.line),
                verdict.incident,
                verdict.fault,
                "" if verdict.code is None else str(verdict.code),
                verdict.device,
                verdict.severity.value,
                remedy,
                f"{verdict.when.value}, check --deep" if verdict.check else verdict.when.value,
            )
        )
        last[verdict.incident] = remedy
    print(f"{file}: {len(rows)} signals, {len(last)} incidents")
    if not rows:
        return
    cells = [_COLUMNS, *(tuple(cell[:_LONGEST_CELL] for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    for row in cells:
        print(plain("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()))
    asked = sorted({(remedy, incident) for incident, remedy in last.items() if remedy not in ("none", "withdrawn")})
    print("  final remedies: " + (", ".join(f"{remedy} ({incident})" for remedy, incident in asked) or "nothing"))
