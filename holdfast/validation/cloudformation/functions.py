"""Functions of CloudFormation that depend on their arguments only (template reference, each under its name)."""

import ipaddress
import json
from typing import Any

from holdfast.validation.cloudformation.unresolved import UNRESOLVED

_MOST_BLOCKS = 256
"""``Fn::Cidr`` gives 1 to 256 blocks."""


def cidr(argument: object) -> Any:
    """``Fn::Cidr``: so many blocks with so many host bits, from the start of a block."""
    if not (isinstance(argument, list) and len(argument) in (2, 3)):
        return UNRESOLVED
    numbers = [_whole(each) for each in argument[1:]]
    count = numbers[0]
    bits = numbers[1] if len(numbers) == 2 else 0
    if not isinstance(argument[0], str) or count is None or bits is None or not 1 <= count <= _MOST_BLOCKS:
        return UNRESOLVED
    try:
        block = ipaddress.ip_network(argument[0], strict=False)
        prefix = block.max_prefixlen - bits
        if not 0 <= prefix - block.prefixlen <= block.max_prefixlen or 2 ** (prefix - block.prefixlen) < count:
            return UNRESOLVED
        subnets = block.subnets(new_prefix=prefix)
        return [str(next(subnets)) for _ in range(count)]
    except ValueError:
        return UNRESOLVED


def length(argument: object) -> Any:
    return len(argument) if isinstance(argument, list) else UNRESOLVED


def json_text(argument: object) -> Any:
    if not isinstance(argument, dict | list):
        return UNRESOLVED
    try:
        return json.dumps(argument, separators=(",", ":"))
    except (TypeError, ValueError):  # something in it is not known
        return UNRESOLVED


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return int(value) if str(value).isdigit() and len(str(value)) < 5 else None
