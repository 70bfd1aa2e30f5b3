"""Model, layout and instance type of a plan, as the user names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.catalog import InstanceType
from holdfast.catalog.goodput import Sourced
from holdfast.planner.model import PlanError

KINDS = ("fsdp=RANKS", "hsdp=SHARDSxCOPIES", "ddp=RANKS")
MOST_RANKS = 1 << 16
"""Our choice: where copies live is computed rank by rank."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Ranks as a mesh of copies, each of which has all shards: rank = copy x shards + shard."""

    shards: int
    copies: int

    @property
    def ranks(self) -> int:
        return self.shards * self.copies

    @property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Ranks that have the same shard."""
        return tuple(tuple(range(shard, self.ranks, self.shards)) for shard in range(self.shards))


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """Instances of one type."""

    instance_type: str
    accelerators: int
    accelerator_gb: float
    host_gb: float
    network_gbps: float
    """Of an instance."""
    card_gbps: float
    """Of one of its addresses."""


def hardware_of(kind: InstanceType) -> Hardware:
    """Raise PlanError for a type without GPUs, and for one whose memory or network is not known."""
    if not (kind.accelerator_mib and kind.network_gbps and kind.card_gbps):
        raise PlanError(
            f"got {kind.name}; allowed: an instance type with GPUs whose memory and network are known; give "
            "--instance-type, such as ml.p5.48xlarge"
        )
    return Hardware(
        instance_type=kind.name,
        accelerators=kind.accelerators,
        accelerator_gb=kind.accelerator_mib * (1 << 20) / 1e9,
        host_gb=kind.memory_gib * (1 << 30) / 1e9,
        network_gbps=kind.network_gbps,
        card_gbps=kind.card_gbps,
    )


def layout_of(text: str) -> Layout:
    """Parse a layout. Raises: PlanError: another form."""
    found = re.fullmatch(r"(fsdp|ddp|hsdp)=([1-9]\d{0,6})(?:x([1-9]\d{0,6}))?", text)
    if found is None or (found[1] == "hsdp") != (found[3] is not None):
        raise PlanError(f"got --layout {text}; allowed: {', '.join(KINDS)}; give one, such as hsdp=64x32")
    first, second = int(found[2]), int(found[3] or 1)
    if first * second > MOST_RANKS:
        raise PlanError(
            f"got --layout {text}, {first * second:,} ranks; allowed: at most {MOST_RANKS:,}; use fewer ranks"
        )
    return Layout(shards=1, copies=first) if found[1] == "ddp" else Layout(shards=first, copies=second)


def parameters_of(text: str, models: Mapping[str, Sourced]) -> Sourced:
    """Parse the size of a model. Raises: PlanError: neither a known name nor a number."""
    if text in models:
        return models[text]
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([bm])", text)
    if found is None or not float(found[1]):
        raise PlanError(
            f"got --model {text}; allowed: {', '.join(models)} (Llama 3), or a number of parameters in millions or "
            "billions; give one, such as 13b"
        )
    return Sourced(value=float(found[1]) * {"b": 1e9, "m": 1e6}[found[2]], source="given", date="")
