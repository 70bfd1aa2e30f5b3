"""A job of the runtime whose ranks share one GPU; writes a digest of all parameters at its end."""

import os
import sys
from pathlib import Path

os.environ["NCCL_HOSTID"] = f"holdfast-{os.getpid()}"

import torch
from torch import nn

import holdfast_runtime as holdfast
from holdfast_runtime.inprocess import digest_of


def main() -> None:
    folder, layout, name, steps = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    device = torch.device("cuda", 0) if name == "cuda" else torch.device("cpu")
    torch.set_num_threads(1)
    if layout == "sharded":
        holdfast.init_process_group("gloo")  # which takes tensors of a GPU, too
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.Dropout(0.1), nn.ReLU(), nn.Linear(256, 8)).to(device)
    if layout == "sharded":
        from torch.distributed.fsdp import fully_shard

        fully_shard(model)
    run = holdfast.Run(model, torch.optim.AdamW(model.parameters(), lr=1e-3), bucket_bytes=1 << 14)
    for step in run.steps(steps):
        with step:
            seed = 1000 * step.number + run.data_rank
            inputs = torch.randn(32, 64, generator=torch.Generator().manual_seed(seed)).to(device)
            loss = model(inputs).square().mean()
            loss.backward()
            step.update(loss)
    tensors = [getattr(parameter, "_local_tensor", parameter).detach() for parameter in model.parameters()]
    (folder / f"rank{run.rank}.digest").write_text(str(digest_of(tensors)))


if __name__ == "__main__":
    main()
