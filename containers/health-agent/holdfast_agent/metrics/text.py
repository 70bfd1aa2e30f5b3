"""Prometheus's text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). Pure."""

import math

from holdfast_agent.metrics.names import NAMES
from holdfast_agent.signals import Numbers

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(numbers: Numbers) -> str:
    """All numbers grouped by name, with help and type before them."""
    lines: list[str] = []
    last = ""
    for (name, labels), value in sorted(numbers.items()):
        if name != last:
            last = name
            kind, text = NAMES.get(name, ("untyped", ""))
            if text:
                lines.append(f"# HELP {name} {text}")
            lines.append(f"# TYPE {name} {kind}")
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        lines.append(f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}")
    return "\n".join(lines) + "\n" if lines else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
