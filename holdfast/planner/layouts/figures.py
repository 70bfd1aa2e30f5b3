"""Bytes and seconds of one layout, each with its formula."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.catalog.goodput import Sourced
from holdfast.planner.layouts.sizes import Hardware, Layout
from holdfast_common.placement import BLOCKS


@dataclass(frozen=True, kw_only=True)
class Figure:
    title: str
    value: float
    unit: str
    formula: str
    source: str


def figures(parameters: float, layout: Layout, hardware: Hardware, values: Mapping[str, Sourced]) -> dict[str, Figure]:
    """Compute memory and times of copies of one rank's part. GB are 10^9 bytes; what is lost is one node."""
    shards, per_node = layout.shards, min(hardware.accelerators, layout.ranks)
    gb = parameters * values["state_bytes"].value / shards / 1e9
    efa_gb_s = hardware.network_gbps / 8 / hardware.accelerators
    blocks = BLOCKS * per_node

    def timed(title: str, amount: float, rate: float, source: str) -> Figure:
        formula = f"{amount:,.4g} GB / {rate:,.4g} GB/s"
        return Figure(title=title, value=amount / rate, unit="s", formula=formula, source=source)

    def memory(title: str, value: float, formula: str, source: str) -> Figure:
        return Figure(title=title, value=value, unit="GB", formula=formula, source=source)

    flow, placed = values["flow_gbps"], values["placed_flow_gbps"]
    pinned, pageable = values["pinned_gb_s"], values["pageable_gb_s"]
    network = f"{hardware.instance_type} in EC2 DescribeInstanceTypes"
    return {
        "state_gb": memory(
            "state of a rank",
            gb,
            f"{parameters:,.4g} x {values['state_bytes'].value:g} B / {shards}",
            values["state_bytes"].source,
        ),
        "training_gb": memory(
            "training memory of a rank",
            parameters * values["training_bytes"].value / shards / 1e9,
            f"{parameters:,.4g} x {values['training_bytes'].value:g} B / {shards}",
            values["training_bytes"].source,
        ),
        "pinned_s": timed("GPU to page-locked memory", gb, pinned.value, pinned.source),
        "pageable_s": timed("GPU to pageable memory", gb, pageable.value, pageable.source),
        "flow_s": timed("one TCP flow", gb, flow.value / 8, flow.source),
        "placed_flow_s": timed("one TCP flow in a placement group", gb, placed.value / 8, placed.source),
        "address_s": timed("all ranks of a node over one address", gb * per_node, hardware.card_gbps / 8, network),
        "efa_s": timed("EFA", gb, efa_gb_s, f"network of {network}, divided among its GPUs"),
        "host_gb": memory(
            "host memory of a node for snapshots",
            gb * blocks,
            f"{BLOCKS} x {gb:,.4g} GB x {per_node} ranks",
            "two blocks of the rank's own and two of the rank that it keeps (holdfast_common.placement)",
        ),
        "pinned_host_gb": memory(
            "the same, page-locked",
            _power_of_two(gb * 1e9) * blocks / 1e9,
            "each block rounded up to a power of two",
            "PyTorch, CachingHostAllocator",
        ),
    }


def _power_of_two(size: float) -> int:
    return 1 << max(0, (max(1, round(size)) - 1).bit_length())


def refusal(found: Mapping[str, Figure], hardware: Hardware, values: Mapping[str, Sourced], *, snapshots: bool) -> str:
    """Reason why a layout does not fit the instance type, with what fits; empty for none."""
    limit = hardware.accelerator_gb * (1 - values["activation_share"].value)
    training, host = found["training_gb"].value, found["pinned_host_gb"].value
    if training > limit:
        return (
            f"got {training:,.1f} GB of training memory per rank on {hardware.instance_type}; allowed: {limit:,.1f} GB "
            f"({1 - values['activation_share'].value:.0%} of a GPU of {hardware.accelerator_gb:,.1f} GB); "
            "use more shards, or GPUs with more memory"
        )
    if snapshots and host >= hardware.host_gb:
        return (
            f"got {host:,.0f} GB of page-locked memory per node for snapshots on {hardware.instance_type}; allowed: "
            f"less than its {hardware.host_gb:,.0f} GB; use more shards, or copies on other nodes (hsdp)"
        )
    return ""
