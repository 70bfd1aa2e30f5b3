"""Numbers of a node beside those of a healthy one, from the health agent and /proc."""

import math
from collections.abc import Mapping, Sequence

_SHOWN: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("GPU temperature", ("DCGM_FI_DEV_GPU_TEMP",), "°C"),
    ("reasons for lower clocks", ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",), ""),
    ("PCIe lanes missing", ("pcie_lanes_missing",), ""),
    ("ECC errors beyond correction", ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",), ""),
    ("last Xid", ("DCGM_FI_DEV_XID_ERRORS",), ""),
    ("swap in use", ("swap_used_mib",), "MiB"),
    ("fullest file system", ("disk_used_percent",), "%"),
    ("EFA retransmits and timeouts",
     ("node_amazonefa_retrans_pkts", "node_amazonefa_retrans_timeout_events",
      "node_amazonefa_impaired_remote_conn_events", "node_amazonefa_unresponsive_remote_events"), ""),
    ("load per core", ("load_per_core",), ""),
)  # fmt: skip
"""Name, metrics of which the largest counts, and unit."""


def side_by_side(odd: str, healthy: str, numbers: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """Return a line for each number that the odd node has; ``numbers``: by node and metric, a value per device."""
    if not healthy or healthy == odd:
        return []
    found = []
    for name, metrics, unit in _SHOWN:
        own, other = _worst(numbers.get(odd, {}), metrics), _worst(numbers.get(healthy, {}), metrics)
        if own is not None:
            beside = "unknown" if other is None else _shown(other, unit)
            mark = " (!)" if other is not None and own > other * 1.2 and own - other > 1 else ""
            found.append(f"{name}: {_shown(own, unit)} on {odd}, {beside} on {healthy}{mark}")
    return found


def _worst(numbers: Mapping[str, Sequence[float]], metrics: Sequence[str]) -> float | None:
    values = [one for metric in metrics for one in numbers.get(metric, ()) if math.isfinite(one)]
    return max(values, default=None)


def _shown(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".strip()
