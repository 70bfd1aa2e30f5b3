"""
Runs the torchtitan recipe on CPUs: ``recipe_program`` with stand-ins for what torchtitan asks a GPU for.

Stand-ins: the device and its memory; plain causal attention, since flex attention has no backward on a CPU; and sums
of gradients without a factor, since gloo has none.
Everything else is torchtitan's own.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from torch.nn.functional import scaled_dot_product_attention
from torchtitan.tools import utils


class Host:
    """``torch.cpu``, with the questions that only ``torch.cuda`` answers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def current_device(self) -> int:
        return 0

    def get_device_name(self, device: torch.device) -> str:
        return "host"

    def get_device_properties(self, device: torch.device) -> Any:
        return SimpleNamespace(total_memory=1 << 30)

    def reset_peak_memory_stats(self) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def memory_stats(self, device: torch.device) -> dict[str, int]:
        return {}


utils.device_type, utils.device_module = "cpu", Host()  # before the rest of torchtitan takes them over by name

from torchtitan.models.common.attention import FlexAttention  # noqa: E402
from torchtitan.models.common.decoder import Decoder  # noqa: E402


def causal(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None, enable_gqa: bool, **_: Any) -> tuple[Tensor, Any]:
    """Of sequences that are one document each, as the recipe's are."""
    out = scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=enable_gqa)
    return out, SimpleNamespace(lse=None)


def uncompiled_mask(length: int) -> BlockMask:
    """What the trainer hands to attention; the stand-in leaves it."""
    return create_block_mask(lambda _, __, q, k: q >= k, None, None, length, length, device="cpu")


def with_plain_sums(module: FSDPModule, factor: float) -> None:
    """torchtitan divides by the tokens of all ranks itself, so its factor is 1."""
    divide(module, factor)
    module.set_force_sum_reduction_for_comms(True)


divide = FSDPModule.set_gradient_divide_factor
FSDPModule.set_gradient_divide_factor = with_plain_sums
FlexAttention._compiled_flex_attn = staticmethod(causal)
Decoder.get_attention_masks = lambda self, positions: uncompiled_mask(positions.shape[1])

if __name__ == "__main__":
    from recipe_program import main

    main()
