"""Files that somebody broke: seeded changes to the text, or to one value, of a file that is right."""

import copy
import json
import re
from random import Random
from typing import Any

DEEP = 3_000
SCALARS = (
    "9" * 400, "9" * 5_000, "1e400", "-1e400", ".nan", "-.inf", "0x" + "f" * 300, "0o17", "1_000", "1:30:00", "~",
    "yes", "2026-01-01", "9999-99-99", "2026-01-01T25:61:00Z", "0001-01-01T00:00:00+14:00", "!!binary aGk=",
    "!!binary '*'", "!!set {a, b}", "!!omap [a: 1]", "!!python/object:os.system {}", "!!timestamp 'x'", "!!int 'x'",
    "!!float ''", "!Ref x", "!Sub '${'", "*nobody", "&a [*a]", "'\\ud800'", '"\\ud800"', '"\\0"', '"\\u202e\\u2066x"',
    "|", ">-", "=", "<<", "''", '"', "[" * DEEP, "{" * DEEP, "{a: " * DEEP, "- " * DEEP, "[" * 50 + "]" * 50,
    "{? [a]: b}", "{1: 2, 1: 3}", "{~: 1}", "{2026-01-01: 1}", "{1.5: x, true: y}", "-0", "1e-400", "0" * 300,
    "x" * 20_000, "\u00e4\u4e2d\U0001f600",
)  # fmt: skip
PIECES = (
    "\0", "\x07", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\u202e", "\r", "\t", "\n", "\n\n---\n", "\n...\n",
    "%YAML 9.9\n", ": ", "- ", "? ", "&a ", "*a", "<<: ", "!", "!!", "#", "{", "}", "[", "]", '"', "'", "|", ">", ",",
    "\\", "\ud800",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**18, 10**300, 10**400, 1e308, -1e308, 5e-324, float("nan"), float("inf"), "", "\0",
    "\ud800", "\u202e\u2066", "\x1b[2J\r", "[/x]", "x" * 5_000, "1", "-", "../..", "a,b,,c", ",", [], {}, [[]],
    {"": ""}, ["a", 1], {"a": {"b": [None]}}, 2**53, 2**63, -(2**63), 1.5, "nan",
)  # fmt: skip
BOMB = "b0: &b0 [x, x]\n" + "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 12))


def broken_text(text: str, chance: Random) -> bytes:
    """A YAML file or any other with a few changes; bytes, since some of them are no text."""
    for _ in range(chance.randint(1, 4)):
        text = _changed(text, chance)
    content = held(text)
    if chance.random() < 0.1:
        at = chance.randrange(len(content) + 1)
        content = content[:at] + bytes([chance.randrange(256)]) + content[at + chance.randrange(2) :]
    return content


def held(text: str) -> bytes:
    """As a file has it; halves of characters, which are no text, too."""
    return text.encode("utf-8", "surrogatepass")


def broken_value(value: Any, chance: Random) -> Any:
    """A JSON value with one to three of its places replaced, added or taken away."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        holder = value
        while isinstance(holder, (dict, list)) and holder:
            key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
            inner = holder[key]
            if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.3:
                _change_at(holder, key, chance)
                break
            holder = inner
    return value


def _change_at(holder: Any, key: Any, chance: Random) -> None:
    new, how = copy.deepcopy(chance.choice(VALUES)), chance.random()
    if how < 0.15:
        del holder[key]
    elif how < 0.3 and isinstance(holder, dict):
        holder[chance.choice(("", "\ud800", "x" * 300, "step", "nodes", "Ref", "Fn::If"))] = new
    elif how < 0.4 and isinstance(holder, list):
        holder.append(new)
    else:
        holder[key] = new


def _changed(text: str, chance: Random) -> str:
    at, how = chance.randrange(len(text) + 1), chance.random()
    if how < 0.45:
        places = [found.span(1) for found in re.finditer(r"[:-] +([^\s\[{#&*|>][^\n]*)", text)]
        if places:
            start, end = chance.choice(places)
            return text[:start] + chance.choice(SCALARS) + text[end:]
    if how < 0.7:
        return text[:at] + chance.choice(PIECES) + text[at:]
    if how < 0.8:
        return text[:at] + text[at + chance.choice((1, 5, 80, 1000)) :]
    if how < 0.98:
        lines = text.split("\n")
        first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines.insert(second, lines[first] if chance.random() < 0.7 else lines.pop(first))
        return "\n".join(lines)
    return f"{text}\n{BOMB}"
