"""For each alert rule: series with which it fires, and series with which it must not; values are promtool's."""

from collections.abc import Mapping
from dataclasses import dataclass

GPU = '{gpu="3", instance="ip-10-1-0-12"}'
NODE = '{instance="ip-10-1-0-12"}'
DISK = '{instance="ip-10-1-0-12", mountpoint="/", fstype="ext4"}'
DETECTOR = '{instance="ip-10-1-0-12", detector="mounts", part="/fsx"}'
LUSTRE = '{instance="ip-10-1-0-12", mountpoint="/fsx", fstype="lustre"}'

Series = Mapping[str, str]
"""Name with labels -> values, one for each half minute."""


@dataclass(frozen=True, kw_only=True)
class AlertCase:
    """
    One rule.

    Args:
        fires: With these it fires at ``at``, and does not half a minute before.
        quiet: With these it never does, for half an hour.
    """

    fires: Series
    at: str
    before: str
    quiet: Series


def disk(*, free: str) -> Series:
    return {f"node_filesystem_avail_bytes{DISK}": free, f"node_filesystem_size_bytes{DISK}": "100x60"}


def lustre(*, free: str) -> Series:
    return {f"node_filesystem_avail_bytes{LUSTRE}": free, f"node_filesystem_size_bytes{LUSTRE}": "100x60"}


ALERTS = {
    "GpuTemperatureHigh": AlertCase(
        fires={f"DCGM_FI_DEV_GPU_TEMP{GPU}": "81x60"},
        before="4m30s",
        at="5m",
        quiet={f"DCGM_FI_DEV_GPU_TEMP{GPU}": "80x60"},
    ),
    "GpuTemperatureCritical": AlertCase(
        fires={f"DCGM_FI_DEV_GPU_TEMP{GPU}": "86x60"},
        before="1m30s",
        at="2m",
        quiet={f"DCGM_FI_DEV_GPU_TEMP{GPU}": "86 86 86 85x60"},
    ),
    "GpuThermalThrottling": AlertCase(
        fires={f"DCGM_FI_DEV_THERMAL_VIOLATION{GPU}": "0+1000x60"},
        before="5m",
        at="5m30s",
        quiet={f"DCGM_FI_DEV_THERMAL_VIOLATION{GPU}": "5000x60"},
    ),
    "GpuDoubleBitError": AlertCase(
        fires={f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{GPU}": "0 0 0 0 1x60"},
        before="1m30s",
        at="2m",
        quiet={f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{GPU}": "7x60"},
    ),
    "GpuRowRemapFailure": AlertCase(
        fires={f"DCGM_FI_DEV_ROW_REMAP_FAILURE{GPU}": "0 0 1x60"},
        before="30s",
        at="1m",
        quiet={f"DCGM_FI_DEV_ROW_REMAP_FAILURE{GPU}": "0x60"},
    ),
    "GpuXid": AlertCase(
        fires={f"DCGM_FI_DEV_XID_ERRORS{GPU}": "0 0 79x60"},
        before="30s",
        at="1m",
        quiet={f"DCGM_FI_DEV_XID_ERRORS{GPU}": "0 0 45x60", 'DCGM_FI_DEV_XID_ERRORS{gpu="4"}': "79x60"},
    ),
    "NvlinkErrors": AlertCase(
        fires={f"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{GPU}": "0 0 1x60"},
        before="30s",
        at="1m",
        quiet={
            f"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{GPU}": "3x60",
            f"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{GPU}": "9x60",
        },
    ),
    "EfaReceiveDrops": AlertCase(
        fires={f"node_amazonefa_rx_drops{NODE}": "0x20 90+90x60"},
        before="16m30s",
        at="17m",
        quiet={f"node_amazonefa_rx_drops{NODE}": "0+30x60"},
    ),
    "EfaReadErrors": AlertCase(
        fires={f"node_amazonefa_rdma_read_wr_err{NODE}": "0+1x60"},
        before="5m",
        at="5m30s",
        quiet={f"node_amazonefa_rdma_read_wr_err{NODE}": "12x60"},
    ),
    "DiskAlmostFull": AlertCase(
        fires=disk(free="9x60"), before="9m", at="10m", quiet={**disk(free="10x60"), **lustre(free="1x60")}
    ),
    "LustreAlmostFull": AlertCase(
        fires=lustre(free="19x60"), before="9m", at="10m", quiet={**lustre(free="20x60"), **disk(free="1x60")}
    ),
    "DetectorLost": AlertCase(
        fires={f"holdfast_detector_lost{DETECTOR}": "1x60"},
        before="30s",
        at="1m",
        quiet={f"holdfast_detector_lost{DETECTOR}": "1 1 stale", f"holdfast_detector_hung{DETECTOR}": "1x60"},
    ),
}
