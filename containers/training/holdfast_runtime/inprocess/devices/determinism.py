"""Settings with which a GPU computes the same bits from the same numbers, on the same kind of GPU."""

import os
from collections.abc import MutableMapping

import torch

from holdfast_runtime.groups import UnsupportedError

FIXED = {"CUBLAS_WORKSPACE_CONFIG": (":4096:8", ":16:8"), "TORCHINDUCTOR_DETERMINISTIC": ("1",)}
"""Allowed values, the first where the job has none: cuBLAS, "Results Reproducibility"; torch's inductor."""
CHOSEN = {
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_MIN_NCHANNELS": "16",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_NVLS_ENABLE": "0",
}
"""The order of NCCL's sums, which may be any, as long as all generations have the same one."""


def deterministic(*, environment: MutableMapping[str, str] = os.environ) -> None:
    """
    Have torch, cuBLAS, cuDNN, inductor and NCCL compute the same bits in each run. Call it before the GPU is used.

    An operation without such a kernel raises RuntimeError where it is called, as
    ``torch.use_deterministic_algorithms`` has it.

    Raises:
        UnsupportedError: the environment has a value of another kind, or cuBLAS has begun without one.
    """
    for name, allowed in FIXED.items():
        found = environment.get(name)
        if found is None and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            raise UnsupportedError(
                f"got no {name} while the GPU is in use already; allowed: {allowed[0]}; call "
                "holdfast_runtime.deterministic() before anything is on the GPU"
            )
        if found is not None and found not in allowed:
            raise UnsupportedError(f"got {name}={found}; allowed: {', '.join(allowed)}; remove it, or set one of them")
        environment.setdefault(name, allowed[0])
    for name, value in CHOSEN.items():
        environment.setdefault(name, value)
    torch.use_deterministic_algorithms(mode=True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    # Their backward passes add in any order; flash attention has one that does not.
    torch.backends.cuda.enable_mem_efficient_sdp(enabled=False)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)
