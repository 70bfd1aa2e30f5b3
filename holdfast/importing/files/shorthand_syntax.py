"""
The shorthand of the AWS CLI: ``Subnets=subnet-1,subnet-2,SecurityGroupIds=sg-1``.

AWS CLI user guide, "Using shorthand syntax with the AWS CLI": pairs of key and value with commas between them, lists as
``key=[a,b]`` or ``key=a,b``, objects as ``key={a=b}``, quotes around what holds a comma.
"""

import re
from typing import Any

from holdfast.importing.files.json import NotUsableError

KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9_.-]*)\s*=\s*")
PLAIN = re.compile(r"[^,\[\]{}'\"]*")
QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
DEEPEST = 20


def shorthand(text: str, shape: Any, *, origin: str) -> Any:
    """Parse a text in shorthand, with types of botocore's ``shape``. Raises: NotUsableError: not shorthand."""
    reader = _Reader(text, origin)
    value = reader.pairs(depth=0)
    reader.end()
    return of_kind(value, shape)


def of_kind(value: Any, shape: Any) -> Any:
    """Convert texts to numbers, truth values and lists by the shape."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        return {key: of_kind(item, shape.members[key]) if key in shape.members else item for key, item in value.items()}
    if kind == "map" and isinstance(value, dict):
        return {key: of_kind(item, shape.value) for key, item in value.items()}
    if kind == "list":
        items = value if isinstance(value, list) else [value]
        return [of_kind(item, shape.member) for item in items]
    if kind == "integer" and isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        return int(value)
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    return value


class _Reader:
    def __init__(self, text: str, origin: str) -> None:
        self._text, self._origin, self._at = text, origin, 0

    def pairs(self, *, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            key = KEY.match(self._text, self._at)
            if key is None:
                raise self._wrong("a name and '='")
            if key[1] in found:
                raise NotUsableError(f"{self._origin}: {key[1]} stands twice in one object; remove one of the two")
            self._at = key.end()
            found[key[1]] = self._values(depth)
            if not self._skip(","):
                return found

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise self._wrong("a comma or the end")

    def _values(self, depth: int) -> Any:
        values = [self._value(depth)]
        while self._ahead() == "," and not KEY.match(self._text, self._at + 1):
            self._at += 1
            values.append(self._value(depth))
        return values if len(values) > 1 else values[0]

    def _value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise NotUsableError(f"{self._origin} is nested too deeply")
        if self._skip("{"):
            value: Any = {} if self._ahead() == "}" else self.pairs(depth=depth + 1)
            self._expect("}")
            return value
        if self._skip("["):
            return self._list(depth + 1)
        quoted = QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return re.sub(r"\\(.)", r"\1", quoted[1] if quoted[1] is not None else quoted[2])
        plain = PLAIN.match(self._text, self._at)
        assert plain is not None  # it matches nothing, too
        self._at = plain.end()
        return plain[0].strip()

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while self._ahead() != "]":
            items.append(self._value(depth))
            if not self._skip(","):
                break
        self._expect("]")
        return items

    def _ahead(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _skip(self, sign: str) -> bool:
        there = self._ahead() == sign
        self._at += there
        return there

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self._wrong(repr(sign))

    def _wrong(self, expected: str) -> NotUsableError:
        rest = self._text[self._at :][:30] or "the end"
        return NotUsableError(f"{self._origin}: no shorthand: {expected} should stand where there is {rest}")
