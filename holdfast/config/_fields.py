"""
The kinds of values in an environment file: a type, its limits, and how both are said to a person.

Limits are the service's own, from botocore's API models unless a field says otherwise.
"""

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from holdfast.catalog import instance_types

NODES_PER_GROUP = 6758
NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
REGION = r"^[a-z]{2}(-[a-z]+)+-\d$"
SERVICE_NAME = r"^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"


@dataclass(frozen=True)
class Allowed:
    """What a value may be, in words, and one example of it. Refusals print both."""

    text: str
    example: object
    closest: Callable[[object], object | None] = lambda _value: None
    """What may have been meant by a refused value, if that can be told."""


def _refused() -> PydanticCustomError:
    return PydanticCustomError("refused", "not allowed here")


def _cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        raise _refused() from None
    if not 16 <= network.prefixlen <= 28 or "/" not in value:
        raise _refused()
    return value


def _instance_type(value: str) -> str:
    if value not in instance_types():
        raise _refused()
    return value


def _closest_instance_type(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    name = value if value.startswith("ml.") else f"ml.{value}"
    return closest_word(name.lower(), instance_types())


def closest_word(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` most resembles, if any does."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def _number_in_words(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if re.fullmatch(r"\d{1,6}", word):
        return int(word)
    return NUMBER_WORDS.index(word) if word in NUMBER_WORDS else None


def _capacity_above(value: object) -> int | None:
    return -(-value // 2400) * 2400 if isinstance(value, int) and value > 0 else None


def _without_host_bits(value: object) -> str | None:
    try:
        network = ipaddress.IPv4Network(value, strict=False) if isinstance(value, str) else None
    except ValueError:
        return None
    return str(network) if network is not None and 16 <= network.prefixlen <= 28 else None


def _capacity(value: int) -> int:
    if value != 1200 and (value <= 0 or value % 2400):
        raise _refused()
    return value


def _clean_path(value: str) -> str:
    if any(part in ("", ".", "..") for part in value.split("/")[1:]):
        raise _refused()
    return value


EnvironmentName = Annotated[
    str,
    Field(pattern=r"^[a-z](-?[a-z0-9])*$", max_length=24),
    Allowed("1 to 24 lower-case letters, digits and single hyphens, starting with a letter", "local"),
]
ServiceName = Annotated[
    str,
    Field(pattern=SERVICE_NAME, max_length=63),
    Allowed("1 to 63 letters, digits and hyphens, beginning and ending with a letter or digit", "workers"),
]
Account = Annotated[
    str, Field(pattern=r"^\d{12}$"), Allowed("the 12 digits of an AWS account, in quotes", "123456789012")
]
Region = Annotated[str, Field(pattern=REGION), Allowed("the name of an AWS region", "us-west-2")]
AvailabilityZone = Annotated[
    str,
    Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d[a-z]$"),
    Allowed("the name of an availability zone: a region and a letter", "us-west-2a"),
]
Cidr = Annotated[
    str,
    AfterValidator(_cidr),
    Allowed("an IPv4 block from /16 to /28 whose host bits are zero", "10.1.0.0/16", _without_host_bits),
]
InstanceTypeName = Annotated[
    str,
    AfterValidator(_instance_type),
    Allowed("an instance type that HyperPod offers", "ml.p5.48xlarge", _closest_instance_type),
]
NodeCount = Annotated[
    int, Field(ge=0, le=NODES_PER_GROUP), Allowed(f"a whole number from 0 to {NODES_PER_GROUP}", 4, _number_in_words)
]
ThreadsPerCore = Annotated[int, Field(ge=1, le=2), Allowed("1 or 2", 1, _number_in_words)]
VolumeGib = Annotated[
    int, Field(ge=1, le=16384), Allowed("a whole number of GiB from 1 to 16384", 500, _number_in_words)
]
CapacityGib = Annotated[int, AfterValidator(_capacity), Allowed("1200, or a multiple of 2400", 1200, _capacity_above)]
AbsolutePath = Annotated[
    str,
    Field(pattern=r"^/[A-Za-z0-9._/-]+$", max_length=1024),
    AfterValidator(_clean_path),
    Allowed("an absolute path of letters, digits, '.', '_', '-' and '/', without '..' and '/' at its end", "/fsx"),
]
FileSystemPath = Annotated[
    str,
    Field(pattern=r"^/([A-Za-z0-9._/-]+)?$", max_length=4096),
    AfterValidator(lambda value: value if value == "/" else _clean_path(value)),
    Allowed("a path that begins with '/' in the file system, without '..' and '/' at its end", "/data"),
]
Prefix = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", max_length=900),
    Allowed("a prefix of keys in the data bucket, without '/' at its ends", "data"),
]
UserName = Annotated[
    str,
    Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$"),
    Allowed("1 to 32 lower-case letters, digits, '_' and '-', beginning with a letter or '_'", "trainer"),
]
UserId = Annotated[int, Field(ge=1001, le=59999), Allowed("a whole number from 1001 to 59999", 2000, _number_in_words)]
Repository = Annotated[
    str,
    Field(pattern=r"^[a-z0-9]+([._/-][a-z0-9]+)*$", min_length=2, max_length=256),
    Allowed("the name of an ECR repository in this account and region", "holdfast-training"),
]
