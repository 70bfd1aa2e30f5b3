"""
Field types of numbers, paths and names, with limits and messages.

Limits are the service's own, from botocore's API models unless a field states otherwise.
"""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from holdfast.catalog import bounds, steps
from holdfast.config.refusals import Allowed, in_letters_of, number_in_words, refused

LUSTRE = "PERSISTENT_2"
"""The deployment type that Holdfast makes."""
_COUNT, _VOLUME, _HOME = bounds("instance_count"), bounds("volume_gib"), bounds("openzfs_capacity_gib")
_WAIT, _ASSOCIATIONS = bounds("wait_interval_s"), bounds("data_repository_associations")
_RESTRICTED_CAPACITY = bounds("restricted_lustre_capacity_gib")
_RESTRICTED_THROUGHPUT = bounds("restricted_lustre_throughput_mbps_per_tib")
_CAPACITY, _IOPS = steps("lustre_capacity_gib")[LUSTRE], steps("lustre_metadata_iops")[LUSTRE]


def _cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        raise refused() from None
    if not 16 <= network.prefixlen <= 28 or "/" not in value:
        raise refused()
    return value


def _part_of_internet(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError:
        raise refused() from None
    if network.prefixlen == 0:
        raise refused()
    return value


def _without_host_bits(value: object) -> str | None:
    try:
        network = ipaddress.IPv4Network(value, strict=False) if isinstance(value, str) else None
    except ValueError:
        return None
    return str(network) if network is not None and 16 <= network.prefixlen <= 28 else None


def _capacity(value: int) -> int:
    if not _CAPACITY.has(value):
        raise refused()
    return value


def _capacity_above(value: object) -> int | None:
    number = re.match(r"\d{1,9}", value) if isinstance(value, str) else None
    capacity = int(number[0]) if number else value
    return _CAPACITY.step_above(capacity) if isinstance(capacity, int) and capacity > 0 else None


def _iops_above(value: object) -> int | None:
    return _IOPS.step_above(value) if isinstance(value, int) and value > 0 else None


def _metadata_iops(value: int) -> int:
    if not _IOPS.has(value):
        raise refused()
    return value


def _clean_path(value: str) -> str:
    if any(part in ("", ".", "..") for part in value.split("/")[1:]):
        raise refused()
    return value


def _plain_path(value: object) -> str | None:
    """The path without empty parts, if they are all that is wrong."""
    parts = [part for part in value.split("/") if part] if isinstance(value, str) else []
    plain = parts and all(re.fullmatch(r"[A-Za-z0-9._-]+", part) and part not in (".", "..") for part in parts)
    return f"/{'/'.join(parts)}" if plain else None


_NAME = r"^[a-z](-?[a-z0-9])*$"
EnvironmentName = Annotated[
    str,
    Field(pattern=_NAME, max_length=24),
    Allowed(
        "1 to 24 lower-case letters, digits and single hyphens, starting with a letter",
        "local",
        in_letters_of(_NAME, longest=24),
    ),
]
Cidr = Annotated[
    str,
    AfterValidator(_cidr),
    Allowed("an IPv4 block from /16 to /28 whose host bits are zero", "10.1.0.0/16", _without_host_bits, code="HF214"),
]
NodeCount = Annotated[
    int,
    Field(ge=_COUNT.least, le=_COUNT.most),
    Allowed(f"a whole number from {_COUNT}", 4, number_in_words, code="HF105"),
]
ThreadsPerCore = Annotated[int, Field(ge=1, le=2), Allowed("1 or 2", 1, number_in_words)]
VolumeGib = Annotated[
    int,
    Field(ge=_VOLUME.least, le=_VOLUME.most),
    Allowed(f"a whole number of GiB from {_VOLUME}", 500, number_in_words, code="HF601"),
]
CapacityGib = Annotated[
    int, AfterValidator(_capacity), Allowed(str(_CAPACITY), _CAPACITY.small[0], _capacity_above, code="HF608")
]
AbsolutePath = Annotated[
    str,
    Field(pattern=r"^/[A-Za-z0-9._/-]+$", max_length=1024),
    AfterValidator(_clean_path),
    Allowed(
        "an absolute path of letters, digits, '.', '_', '-' and '/', without '..' and '/' at its end",
        "/fsx",
        _plain_path,
        code="HF604",
    ),
]
FileSystemPath = Annotated[
    str,
    Field(pattern=r"^/([A-Za-z0-9._/-]+)?$", max_length=4096),
    AfterValidator(lambda value: value if value == "/" else _clean_path(value)),
    Allowed(
        "a path that begins with '/' in the file system, without '//', '..' and '/' at its end",
        "/data",
        _plain_path,
        code="HF618",
    ),
]
Prefix = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", max_length=900),
    Allowed("a prefix of keys in the data bucket, without '/' at its ends", "data"),
]
UserName = Annotated[
    str,
    Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$"),
    Allowed("1 to 32 lower-case letters, digits, '_' and '-', beginning with a letter or '_'", "trainer", code="HF516"),
]
UserId = Annotated[
    int, Field(ge=1001, le=59999), Allowed("a whole number from 1001 to 59999", 2000, number_in_words, code="HF516")
]
CidrList = Annotated[
    tuple[
        Annotated[
            str,
            AfterValidator(_part_of_internet),
            Allowed("an IPv4 block whose host bits are zero, and not the whole internet", "203.0.113.0/24"),
        ],
        ...,
    ],
    Field(strict=False),
    Allowed("a list of IPv4 blocks", [], code="HF318"),
]
WaitSeconds = Annotated[
    int,
    Field(ge=_WAIT.least, le=_WAIT.most),
    Allowed(f"a whole number of seconds from {_WAIT}", 600, number_in_words),
]
Percentage = Annotated[int, Field(ge=0, le=100), Allowed("a whole number from 0 to 100", 20, number_in_words)]
PartOfWhole = Annotated[int, Field(ge=1, le=99), Allowed("a whole number from 1 to 99", 10, number_in_words)]
BatchSize = Annotated[
    int, Field(ge=1, le=_COUNT.most), Allowed("a whole number from 1", 1, number_in_words, code="HF710")
]
MetadataIops = Annotated[
    int,
    AfterValidator(_metadata_iops),
    Allowed(str(_IOPS), _IOPS.small[-1], _iops_above, code="HF623"),
]
HomeCapacityGib = Annotated[
    int,
    Field(ge=_HOME.least, le=_HOME.most),
    Allowed(f"a whole number of GiB from {_HOME}", 512, number_in_words, code="HF626"),
]
RestrictedCapacityGib = Annotated[
    int,
    Field(ge=_RESTRICTED_CAPACITY.least, le=_RESTRICTED_CAPACITY.most),
    Allowed(
        f"a whole number of GiB from {_RESTRICTED_CAPACITY}", _RESTRICTED_CAPACITY.least, number_in_words, code="HF628"
    ),
]
RestrictedThroughput = Annotated[
    int,
    Field(ge=_RESTRICTED_THROUGHPUT.least, le=_RESTRICTED_THROUGHPUT.most),
    Allowed(
        f"a whole number of MB/s per TiB from {_RESTRICTED_THROUGHPUT}",
        _RESTRICTED_THROUGHPUT.least,
        number_in_words,
        code="HF628",
    ),
]
Paths = Annotated[
    tuple[FileSystemPath, ...],
    Field(max_length=_ASSOCIATIONS.most, strict=False),
    Allowed(f"a list of at most {_ASSOCIATIONS.most} paths in the file system", []),
]
_RelativePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]+$", max_length=1024)]
ScriptPath = Annotated[_RelativePath, Allowed("the path of a script, from the folder of this file", "scripts/tune.sh")]
FolderPath = Annotated[_RelativePath, Allowed("the path of a folder, from that of this file", "charts")]
ScriptPaths = Annotated[tuple[ScriptPath, ...], Field(strict=False), Allowed("a list of paths of scripts", [])]
EmailAddresses = Annotated[
    tuple[
        Annotated[
            str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$"), Allowed("an e-mail address", "oncall@example.com")
        ],
        ...,
    ],
    Field(strict=False),
    Allowed("a list of e-mail addresses", []),
]
HostName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"),
    Allowed("the host name of a database", "slurm.cluster-abc.us-west-2.rds.amazonaws.com"),
]
Port = Annotated[int, Field(ge=1, le=65535), Allowed("a whole number from 1 to 65535", 3306, number_in_words)]
DatabaseName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$"),
    Allowed("1 to 63 letters, digits and '_', beginning with a letter", "slurm_acct_db"),
]
Weight = Annotated[int, Field(ge=0, le=100), Allowed("a whole number from 0 to 100", 50, number_in_words)]
BorrowPercentage = Annotated[int, Field(ge=1, le=500), Allowed("a whole number from 1 to 500", 50)]
Minutes = Annotated[int, Field(ge=5, le=1440), Allowed("a whole number of minutes from 5 to 1440", 30, number_in_words)]
Seconds = Annotated[
    int, Field(ge=1, le=604800), Allowed("a whole number of seconds from 1 to 604800", 600, number_in_words)
]
Share = Annotated[
    float, Field(gt=0, le=1), Allowed("a number above 0 and at most 1", 0.1, number_in_words, code="HF730")
]
_TAKEN_PORTS = {6817: "slurmctld", 6818: "slurmd", 6819: "slurmdbd", 10250: "the kubelet", 10256: "kube-proxy"}


def _free_port(port: int) -> int:
    if port in _TAKEN_PORTS:
        raise ValueError(f"{port} is the port of {_TAKEN_PORTS[port]}")
    return port


OwnPort = Annotated[
    int,
    Field(ge=1024, le=65535),
    AfterValidator(_free_port),
    Allowed("a whole number from 1024 to 65535, and no port of Slurm or Kubernetes", 9464, number_in_words),
]
"""One that a program without CAP_NET_BIND_SERVICE can listen at."""
BurnInSeconds = Annotated[
    int,
    Field(ge=0, le=30 * 60),
    Allowed("a whole number of seconds from 0 to 1800", 120, number_in_words, code="HF731"),
]
SettingPath = Annotated[
    str,
    Field(pattern=r"^[a-z_]+(\.[A-Za-z0-9_-]+)*$", max_length=256),
    Allowed("the path of a setting; groups, datasets and users by name", "cluster.name"),
]
SettingPaths = Annotated[tuple[SettingPath, ...], Field(strict=False), Allowed("a list of paths of settings", [])]
FindingCode = Annotated[str, Field(pattern=r"^HF\d{3}$"), Allowed("the code of a finding", "HF201")]
Reason = Annotated[
    str, Field(min_length=10, max_length=500), Allowed("a reason of 10 characters or more", "agreed with ...")
]
